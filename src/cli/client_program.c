/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client_program.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX (256u << 10)

extern char **environ;

/* `write_end` < 0: the output goes to standard error. */
static bool start(const char *const *argv, int write_end, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, write_end < 0 ? 2 : write_end, 1);
    if (write_end >= 0)
        posix_spawn_file_actions_adddup2(&actions, write_end, 2);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attr, 0);
    int failed = posix_spawnp(ret_pid, argv[0], &actions, &attr, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return failed == 0;
}

static void take_output(int fd, struct buf *out)
{
    char bytes[4096];
    ssize_t n = read(fd, bytes, sizeof(bytes));

    if (n > 0 && out->n < OUTPUT_MAX)
        buf_add(out, bytes, (size_t)n);
}

/* Collects output until the program has ended.  A process that it left behind may hold the pipe open,
 * so its end is not waited for.  false: the deadline came first. */
static bool wait_end(int pidfd, int output, int64_t until, struct buf *out)
{
    struct pollfd p[2] = {{.fd = pidfd, .events = POLLIN}, {.fd = output, .events = POLLIN}};

    for (;;) {
        int64_t left = until - clock_mono_ms();
        int n = left > 0 ? poll(p, 2, (int)left) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        if (p[1].revents & POLLIN)
            take_output(output, out);
        else if (p[0].revents)
            return true;
        else
            p[1].fd = -1; /* closed; only the end is left */
    }
}

static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum program_end client_program_run(const char *const *argv, int64_t timeout_ms, struct buf *out,
                                    int *ret_status)
{
    int64_t until = clock_mono_ms() + timeout_ms;
    int ends[2] = {-1, -1};
    pid_t pid;

    if (out && pipe2(ends, O_CLOEXEC) != 0)
        return PROGRAM_MISSING;
    bool started = start(argv, ends[1], &pid);
    if (ends[1] >= 0)
        close(ends[1]);
    bool ended = true;
    if (started) {
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        ended = wait_end(pidfd, ends[0], until, out);
        if (!ended)
            kill(-pid, SIGKILL);
        if (pidfd >= 0)
            close(pidfd);
        *ret_status = reap(pid);
    }
    if (ends[0] >= 0)
        close(ends[0]);
    return !started ? PROGRAM_MISSING : ended ? PROGRAM_EXITED : PROGRAM_LATE;
}
