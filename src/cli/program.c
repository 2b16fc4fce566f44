/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX (256u << 10)
#define LOOK_MS 20 /* how often is looked whether it has ended */

extern char **environ;

/* `write_end` < 0: the output is not collected. */
static bool start(const struct program *p, int write_end, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int to = write_end >= 0 ? write_end : p->out_fd > 0 ? p->out_fd : STDERR_FILENO;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (p->is_silent)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    else
        posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    if (write_end >= 0)
        posix_spawn_file_actions_adddup2(&actions, write_end, STDERR_FILENO);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attr, 0);
    int failed =
        posix_spawnp(ret_pid, p->argv[0], &actions, &attr, (char *const *)p->argv, environ);
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

/* The process stays a zombie, so its group can still be killed. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

/* Collects output until the program has ended.  A process that it left behind may hold the pipe
 * open, so its end is not waited for.  false: the deadline came first. */
static bool wait_end(pid_t pid, int output, int64_t until, struct buf *out)
{
    struct pollfd p = {.fd = output, .events = POLLIN};

    for (;;) {
        bool ended = has_ended(pid); /* before the poll: then the pipe has its last bytes */
        (void)poll(&p, 1, ended ? 0 : LOOK_MS);
        if (p.revents & POLLIN)
            take_output(output, out);
        else if (ended)
            return true;
        else if (p.revents)
            p.fd = -1; /* closed */
        p.revents = 0;
        if (clock_mono_ms() >= until)
            return has_ended(pid);
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

enum program_end program_run(struct program *p)
{
    int64_t until = clock_mono_ms() + p->timeout_ms;
    int ends[2] = {-1, -1};
    pid_t pid;

    if (p->out && pipe2(ends, O_CLOEXEC) != 0)
        return PROGRAM_MISSING;
    bool started = start(p, ends[1], &pid), ended = true;
    if (ends[1] >= 0)
        close(ends[1]);
    if (started) {
        ended = wait_end(pid, ends[0], until, p->out);
        if (!ended)
            kill(-pid, SIGKILL);
        p->status = reap(pid);
    }
    if (ends[0] >= 0)
        close(ends[0]);
    return !started ? PROGRAM_MISSING : ended ? PROGRAM_EXITED : PROGRAM_LATE;
}
