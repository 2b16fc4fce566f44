/* SPDX-License-Identifier: Apache-2.0 */
/* What the loads have in common: a clock, sending whole, reading heads, latencies. */
#ifndef HOLDFAST_BENCH_CLIENT_H
#define HOLDFAST_BENCH_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SLOTS 1000000 /* one per microsecond; the last holds everything slower */

struct latencies {
    uint64_t n;
    uint32_t slots[SLOTS];
};

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void latency_add(struct latencies *l, uint64_t ns)
{
    uint64_t us = ns / 1000;
    l->slots[us < SLOTS ? us : SLOTS - 1]++;
    l->n++;
}

static inline uint64_t latency_percentile(const struct latencies *l, double part)
{
    uint64_t wanted = (uint64_t)((double)l->n * part), seen = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        seen += l->slots[i];
        if (seen > wanted)
            return i;
    }
    return SLOTS - 1;
}

static inline void send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t wrote = send(fd, data, n, MSG_NOSIGNAL);
        if (wrote < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (wrote <= 0) {
            fprintf(stderr, "send: %s\n", strerror(errno));
            exit(1);
        }
        data += wrote;
        n -= (size_t)wrote;
    }
}

/* Copies the value of a response header; false when absent. */
static inline bool header_value(const char *head, const char *name, char *ret, size_t max)
{
    const char *at = strcasestr(head, name);
    if (!at)
        return false;
    at += strlen(name);
    at += strspn(at, " ");
    snprintf(ret, max, "%.*s", (int)strcspn(at, "\r"), at);
    return true;
}

/* A connection to 127.0.0.1, or the end of the program. */
static inline int connect_local(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("connect");
        exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

#endif
