/* SPDX-License-Identifier: Apache-2.0 */
/* A minder stands between the keeper and one child: keeper → minder → child → its descendants.
 *
 * It is a subreaper, so every descendant of the child stays below it, even after forks, setsid() or
 * the death of its parents.  With one subreaper for all children, orphans of different children
 * could not be told apart.  When the child ends, or on a signal from the keeper, or when the keeper
 * dies, the minder kills every process below it.
 *
 * The minder never reaps the child itself.  It leaves the zombie, which the kernel then hands to
 * the keeper.  So the keeper gets the true wait status, and may signal the child's group until it
 * learns of the end, without the risk of a reused pid.
 *
 * Forks here are _Fork(): libraries of Holdfast may have installed fork handlers, which
 * would close descriptors by numbers that the keeper now uses for its pipes.
 *
 * This file also holds the steps of the child between fork and exec.  No shell, no inherited
 * descriptors. */
#include "upstream/keeper_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_PATH_MAX 4096
#define CHILD_NOFILE_SOFT 1024 /* select() in old programs breaks above */
#define CHILD_NOFILE_HARD 65536
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
enum { STATUS_FD = 3 };

static void status_write(int fd, pid_t pid, enum keeper_stage stage, int errnum)
{
    struct minder_record record = {.pid = pid, .stage = stage, .errnum = errnum};
    ssize_t n = write(fd, &record, sizeof(record));
    (void)n; /* on failure the keeper is gone, and PDEATHSIG follows */
}

static never_returns void child_fail(enum keeper_stage stage, int errnum)
{
    status_write(STATUS_FD, 0, stage, errnum);
    _exit(127);
}

/* Leaves stdio, the status pipe at 3 (closed by exec), and nothing else. */
static bool child_setup_fds(const struct minder_plan *plan)
{
    return dup2(plan->in, 0) >= 0 && dup2(plan->out, 1) >= 0 && dup2(plan->err, 2) >= 0 &&
           dup3(plan->status, STATUS_FD, O_CLOEXEC) >= 0 && close_range(STATUS_FD + 1, ~0U, 0) == 0;
}

static bool child_setup_limits(void)
{
    const struct rlimit no_core = {0, 0};
    struct rlimit nofile;
    if (setrlimit(RLIMIT_CORE, &no_core) || getrlimit(RLIMIT_NOFILE, &nofile))
        return false;
    if (nofile.rlim_max > CHILD_NOFILE_HARD)
        nofile.rlim_max = CHILD_NOFILE_HARD;
    nofile.rlim_cur = nofile.rlim_max < CHILD_NOFILE_SOFT ? nofile.rlim_max : CHILD_NOFILE_SOFT;
    return setrlimit(RLIMIT_NOFILE, &nofile) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* By the system call: glibc reserves signals 32 and 33 and refuses to reset them, but a parent that
 * used posix_spawn (make does) leaves both ignored. */
static void child_reset_signals(void)
{
    const struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } fresh = {.handler = SIG_DFL};
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        /* Fails for KILL and STOP. */
        syscall(SYS_rt_sigaction, s, &fresh, NULL, sizeof(fresh.mask));
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static const char *child_path_variable(char **env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return DEFAULT_PATH;
}

/* Returns only on failure. */
static void child_exec_file(const char *file, const struct minder_plan *plan)
{
    execve(file, plan->argv, plan->env);
    if (errno == ENOENT && access(file, F_OK) == 0)
        child_fail(KEEPER_STAGE_INTERPRETER, ENOENT);
}

/* The search of execvp(), but in the child's own PATH.  An empty element does not mean the current
 * directory, and unknown files are not handed to a shell. */
static never_returns void child_exec_in_path(const struct minder_plan *plan)
{
    const char *rest = child_path_variable(plan->env);
    char file[CHILD_PATH_MAX];
    bool denied = false;
    while (*rest) {
        int n = (int)strcspn(rest, ":");
        int len = snprintf(file, sizeof(file), "%.*s/%s", n, rest, plan->argv[0]);
        rest += rest[n] ? n + 1 : n;
        if (n == 0 || len >= (int)sizeof(file))
            continue;
        child_exec_file(file, plan);
        denied |= errno == EACCES && access(file, F_OK) == 0;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            child_fail(KEEPER_STAGE_EXEC, errno);
    }
    child_fail(denied ? KEEPER_STAGE_EXEC : KEEPER_STAGE_FIND, denied ? EACCES : ENOENT);
}

static never_returns void child_become(const struct minder_plan *plan)
{
    if (!child_setup_fds(plan)) {
        status_write(plan->status, 0, KEEPER_STAGE_SETUP, errno);
        _exit(127);
    }
    /* A session, not only a group: the child gets no terminal to read passwords from or to be
     * stopped by. */
    if (setsid() < 0 || !child_setup_limits())
        child_fail(KEEPER_STAGE_SETUP, errno);
    if (*plan->cwd && chdir(plan->cwd))
        child_fail(KEEPER_STAGE_CHDIR, errno);
    child_reset_signals();
    if (!strchr(plan->argv[0], '/'))
        child_exec_in_path(plan);
    child_exec_file(plan->argv[0], plan);
    child_fail(KEEPER_STAGE_EXEC, errno);
}

static int64_t minder_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool minder_is_zombie(pid_t child)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == child;
}

/* Reaps orphans that ended, and stops at the child: true when the child has ended. */
static bool minder_child_has_ended(pid_t child)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0)
            break;
        if (info.si_pid == child)
            return true;
        waitpid(info.si_pid, NULL, WNOHANG);
    }
    return minder_is_zombie(child);
}

struct minder_pass {
    pid_t self, child;
    size_t orphans; /* direct children beside the child, alive or not */
};

static bool minder_is_below(void *arg, const struct tree_process *p)
{
    struct minder_pass *pass = arg;
    if (p->parent != pass->self)
        return false;
    if (p->pid != pass->child) {
        pass->orphans++;
        if (!p->living)
            waitpid(p->pid, NULL, WNOHANG); /* else it would count in every pass */
    }
    return true;
}

/* Repeats until a pass that began after the child's end has found nothing beside it (keeper_tree.c
 * says why that is proof).  The child's zombie goes to the keeper, which reaps it. */
static void minder_kill_all(pid_t child)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int64_t until = minder_now_ms() + KEEPER_END_MS;
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while (minder_now_ms() < until) {
        struct minder_pass pass = {.self = getpid(), .child = child};
        bool ended = minder_is_zombie(child);
        kill(-child, SIGKILL); /* all at once: a fork bomb cannot escape its own group */
        tree_kill(minder_is_below, &pass);
        if (ended && pass.orphans == 0)
            return;
        sigtimedwait(&chld, NULL, &pause);
    }
}

static never_returns void minder_watch(pid_t child)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, MINDER_END_SIGNAL);
    while (!minder_child_has_ended(child))
        if (sigwaitinfo(&set, NULL) == MINDER_END_SIGNAL)
            break;
    minder_kill_all(child);
    _exit(0);
}

static never_returns void minder_main(const struct minder_plan *plan, pid_t keeper)
{
    prctl(PR_SET_PDEATHSIG, MINDER_END_SIGNAL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "holdfast-minder");
    if (getppid() != keeper) /* the keeper died before PDEATHSIG was set */
        _exit(1);
    pid_t child = _Fork();
    if (child == 0)
        child_become(plan);
    if (child < 0) {
        status_write(plan->status, 0, KEEPER_STAGE_FORK, errno);
        _exit(1);
    }
    for (char **pair = plan->env; *pair; pair++) /* only the child needs its secrets */
        explicit_bzero(*pair, strlen(*pair));
    status_write(plan->status, child, KEEPER_STAGE_NONE, 0);
    close_range(3, ~0U, 0); /* an open copy would delay end of file */
    minder_watch(child);
}

pid_t minder_fork(const struct minder_plan *plan)
{
    pid_t keeper = getpid();
    pid_t pid = _Fork();
    if (pid == 0)
        minder_main(plan, keeper);
    return pid;
}
