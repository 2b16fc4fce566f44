/* SPDX-License-Identifier: Apache-2.0 */
/* A throw-away Redis for a test program (tests/support/redis_server), gone with the process. */
#ifndef HOLDFAST_TESTS_REDIS_SERVER_H
#define HOLDFAST_TESTS_REDIS_SERVER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

struct redis_server {
    pid_t pid;
    int in, out;
    char url[256];
};

static inline void redis_server_line(struct redis_server *s, char *ret, size_t size)
{
    size_t n = 0;
    while (n < size - 1 && read(s->out, ret + n, 1) == 1 && ret[n] != '\n')
        n++;
    ret[n] = '\0';
}

/* `args` ends with NULL and begins after the program's name; false: there is none to start. */
static inline bool redis_server_try(struct redis_server *s, const char *const *args)
{
    static const char path[] = TEST_SUPPORT_DIR "/redis_server";
    const char *argv[16] = {path};
    char pid_line[32];
    int in[2], out[2], status = 0;
    for (size_t i = 0; args && args[i] && i < 14; i++)
        argv[i + 1] = args[i];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execv(path, (char *const *)argv);
        _exit(77);
    }
    close(in[0]);
    close(out[1]);
    s->in = in[1];
    s->out = out[0];
    redis_server_line(s, s->url, sizeof(s->url));
    if (s->url[0]) {
        redis_server_line(s, pid_line, sizeof(pid_line));
        return true;
    }
    close(s->in);
    close(s->out);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_int_equal(WEXITSTATUS(status), 77);
    return false;
}

/* Skips the test when there is none to start. */
static inline void redis_server_start(struct redis_server *s, const char *const *args)
{
    if (!redis_server_try(s, args))
        skip_because("no Redis to start");
}

/* "kill", "stop", "cont" or "start"; done when it returns. */
static inline void redis_server_order(struct redis_server *s, const char *order)
{
    char line[32];
    assert_true(dprintf(s->in, "%s\n", order) > 0);
    redis_server_line(s, line, sizeof(line));
    assert_string_equal(line, "ok");
}

static inline void redis_server_end(struct redis_server *s)
{
    int status = 0;
    close(s->in);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    close(s->out);
}

/* One that all tests of a program share; NULL: none can be started. */
static inline const char *redis_server_url(void)
{
    static struct redis_server shared;
    static bool tried, there;
    if (!tried) {
        tried = true;
        there = redis_server_try(&shared, NULL);
    }
    return there ? shared.url : NULL;
}

#endif
