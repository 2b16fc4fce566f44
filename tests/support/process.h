/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the programs of tests/peers, waiting on the loop for what is to happen, and watching
 * processes by pidfd.  Every wait has a deadline, and its passing fails the test. */
#ifndef HOLDFAST_TESTS_PROCESS_H
#define HOLDFAST_TESTS_PROCESS_H

#include "test.h"

#include "config/config.h"
#include "io/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#define PEER_WAIT_MS 20000

/* $HOLDFAST_PEERS/NAME, or peers/NAME beside the test's own executable. */
static inline const char *peer_path(const char *name)
{
    static char path[PATH_MAX];
    const char *dir = getenv("HOLDFAST_PEERS");
    char self[PATH_MAX / 2] = "";
    if (dir) {
        snprintf(path, sizeof(path), "%s/%s", dir, name);
    } else {
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        assert_true(n > 0);
        *strrchr(self, '/') = '\0';
        snprintf(path, sizeof(path), "%s/peers/%s", self, name);
    }
    return path;
}

struct wait_ticks {
    int left;
};

static inline void wait_on_tick(void *arg)
{
    ((struct wait_ticks *)arg)->left--;
}

/* Turns the loop until `done` says so; false when `ms` have passed.  Ticks, so that `done` may also
 * look at what is outside the loop. */
static inline bool wait_for(struct loop *loop, bool (*done)(void *arg), void *arg, int ms)
{
    struct wait_ticks ticks = {.left = ms / 10};
    struct loop_timer *timer = loop_timer_new(loop, wait_on_tick, &ticks);
    bool happened;
    loop_timer_start(timer, 10, 10);
    while (!(happened = done(arg)) && ticks.left > 0)
        loop_turn(loop);
    loop_timer_free(timer);
    return happened;
}

/* A handle on a living process, so that its end cannot be confused with another's. */
static inline int process_watch(int pid)
{
    int fd = pidfd_open(pid, 0);
    assert_true(fd >= 0);
    return fd;
}

/* Whether it has ended, waiting at most `ms`; closes the handle when it has. */
static inline bool process_ended(int *pidfd, int ms)
{
    struct pollfd p = {.fd = *pidfd, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, ms);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    close(*pidfd);
    *pidfd = -1;
    return true;
}

/* A server run as peer_lines MODE [ARG]; static, so one at a time. */
static inline struct server_config *peer_server(const char *mode, const char *arg)
{
    static struct str args[2];
    static struct server_config server;
    args[0] = str_of(mode);
    args[1] = str_of(arg);
    server = (struct server_config){.name = STR("peer"),
                                    .kind = SERVER_STDIO,
                                    .command = str_of(peer_path("peer_lines")),
                                    .args = args,
                                    .n_args = arg ? 2 : 1};
    return &server;
}

#endif
