/* SPDX-License-Identifier: Apache-2.0 */
/* bench_streams PORT PATH N: idle event streams, and how fast a change reaches all of them.
 *
 * Makes N sessions by initialize, one connection each, and turns each connection into the GET
 * stream of its session.  Prints "open SECONDS" and waits for a line on its standard input, so that
 * memory can be looked at.  For each such line it calls the upstream's tool `change` on one more
 * connection and prints a line of JSON: microseconds from that call until the first, the middle and
 * the last stream had the notification.  At the end of its input it closes everything.
 *
 * Exit status 3 when the subject serves no streams (405). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define KEPT 1024         /* of what a stream said last; a notification is shorter */
#define AT_ONCE 64        /* connections that are being opened */
#define PATIENCE_MS 60000 /* without anything happening */

enum state { INITIALIZING, OPENING, STREAMING };

struct stream {
    int fd;
    enum state state;
    unsigned told; /* notifications seen */
    size_t n;
    char in[KEPT + 1];
};

static int port, epoll_fd;
static const char *path;
static unsigned n_streams, n_open, n_told;
static uint64_t *told_us; /* of one round, in order of arrival */

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000;
}

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "%s: %.300s\n", what, detail);
    exit(1);
}

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("connect", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* All requests are short: the kernel takes them whole. */
static void say(int fd, const char *method, const char *lines, const char *body)
{
    char out[2048];
    int n = snprintf(out, sizeof out,
                     "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                     "%sContent-Length: %zu\r\n\r\n%s",
                     method, path, port, lines, strlen(body), body);
    if (send(fd, out, (size_t)n, MSG_NOSIGNAL) != n)
        fail("send", strerror(errno));
}

static void begin(struct stream *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
    s->fd = dial();
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->fd, &event);
    say(s->fd, "POST", "Accept: application/json, text/event-stream\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}"
        "}");
}

/* The session that initialize gave; "" while the answer is not whole. */
static void find_session(const struct stream *s, char *ret, size_t max)
{
    const char *at = strcasestr(s->in, "\r\nmcp-session-id:");
    const char *end = strstr(s->in, "\r\n\r\n");
    const char *length = strcasestr(s->in, "\r\ncontent-length:");

    ret[0] = '\0';
    if (!end || !length)
        return;
    if (s->n < (size_t)(end - s->in) + 4 + strtoul(length + 17, NULL, 10))
        return;
    if (!at || strncmp(s->in, "HTTP/1.1 200", 12) != 0)
        fail("initialize", s->in);
    at += 17;
    at += strspn(at, " ");
    snprintf(ret, max, "%.*s", (int)strcspn(at, "\r"), at);
}

static void open_stream(struct stream *s)
{
    char session[200], lines[512];

    find_session(s, session, sizeof session);
    if (!session[0])
        return;
    snprintf(lines, sizeof lines,
             "Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n"
             "MCP-Protocol-Version: 2025-11-25\r\n",
             session);
    s->state = OPENING;
    s->n = 0;
    say(s->fd, "GET", lines, "");
}

static void check_opened(struct stream *s)
{
    char *end = strstr(s->in, "\r\n\r\n");
    if (!end)
        return;
    if (strncmp(s->in, "HTTP/1.1 405", 12) == 0)
        exit(3);
    if (strncmp(s->in, "HTTP/1.1 200", 12) != 0)
        fail("GET", s->in);
    s->state = STREAMING;
    s->n = 0;
    n_open++;
}

static void listen_on(struct stream *s)
{
    static const char news[] = "list_changed";
    char *at = memmem(s->in, s->n, news, sizeof news - 1);
    size_t rest;

    if (!at) { /* it may be cut in two: keep the end */
        rest = s->n < sizeof news ? s->n : sizeof news;
        memmove(s->in, s->in + s->n - rest, rest);
        s->n = rest;
        return;
    }
    if (n_told < n_streams)
        told_us[n_told] = now_us();
    n_told++;
    s->told++;
    s->n = 0;
}

static void on_readable(struct stream *s)
{
    ssize_t got = recv(s->fd, s->in + s->n, KEPT - s->n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        fail("a stream was closed", got < 0 ? strerror(errno) : "end");
    s->n += (size_t)got;
    s->in[s->n] = '\0';
    if (s->state == INITIALIZING)
        open_stream(s);
    else if (s->state == OPENING)
        check_opened(s);
    else
        listen_on(s);
}

static void turn(void)
{
    struct epoll_event events[512];
    int n = epoll_wait(epoll_fd, events, 512, PATIENCE_MS);
    if (n == 0)
        fail("gave up", "nothing happened for a minute");
    for (int i = 0; i < n; i++)
        on_readable(events[i].data.ptr);
}

static void change(void)
{
    uint64_t began;
    char ignored[4096];
    int fd = dial();

    n_told = 0;
    began = now_us();
    say(fd, "POST", "Accept: application/json, text/event-stream\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"change\","
        "\"arguments\":{}}}");
    while (n_told < n_streams)
        turn();
    printf("{\"first_us\":%llu,\"middle_us\":%llu,\"last_us\":%llu}\n",
           (unsigned long long)(told_us[0] - began),
           (unsigned long long)(told_us[n_streams / 2] - began),
           (unsigned long long)(told_us[n_streams - 1] - began));
    fflush(stdout);
    if (recv(fd, ignored, sizeof ignored, 0) <= 0)
        fail("the call", "no answer");
    close(fd);
}

static void raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

int main(int argc, char **argv)
{
    char line[16];
    uint64_t began = now_us();
    unsigned begun = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: bench_streams PORT PATH N\n");
        return 2;
    }
    port = (int)strtol(argv[1], NULL, 10);
    path = argv[2];
    n_streams = (unsigned)strtoul(argv[3], NULL, 10);
    raise_files();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct stream *streams = calloc(n_streams, sizeof *streams);
    told_us = calloc(n_streams, sizeof *told_us);
    if (!streams || !told_us || n_streams == 0)
        return 2;
    while (n_open < n_streams) {
        while (begun < n_streams && begun - n_open < AT_ONCE)
            begin(&streams[begun++]);
        turn();
    }
    printf("open %.3f\n", (double)(now_us() - began) / 1e6);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        change();
    return 0;
}
