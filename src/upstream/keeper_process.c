/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's own process: takes orders from one socket, starts children through minders, and
 * reports their ends.  When the socket closes, it kills all its descendants and exits.
 *
 * The zygote forks it.  It stays single-threaded, so it may fork.  Of Holdfast it keeps only the
 * socket, stderr, and the environment variables that children may see.
 *
 * The states of a child here: spawn → (minder forked) STARTING → status pipe ends → UP or FAILED →
 * minder and child reaped → gone.  The keeper sends `started` or `failed` when the status pipe
 * ends, and `exited` when both are reaped, which the minder delays until all below it are gone.
 * Any direct child of the keeper that is neither a minder nor a minded child is a stray of a minder
 * that was killed, and is killed too. */
#include "upstream/keeper_wire.h"

#include "base/fault.h"
#include "base/list.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SOCKET_FD = KEEPER_SOCKET_FD, SIGNAL_FD = 4 };
enum { STRAY_SWEEP_MS = 50 };

enum entry_state { ENTRY_STARTING, ENTRY_UP, ENTRY_FAILED };
struct entry {
    struct list link;
    uint32_t id;
    enum entry_state state;
    bool forgotten; /* Holdfast wants no more reports about it */
    pid_t minder;   /* 0 once reaped */
    pid_t child;    /* 0 until known, and once reaped */
    int wait_status;
    int status;  /* read end of the status pipe while STARTING, else -1 */
    int ends[3]; /* Holdfast's ends while STARTING, else -1 */
    struct minder_record failure;
};

struct keeper_process {
    struct list entries;
    size_t n_entries;
    char **base_env; /* the part of Holdfast's environment that children may see */
    char *request;   /* KEEPER_MAX_REQUEST + 1 bytes */
    struct pollfd *polls;
    bool strays; /* a descendant belongs to no entry: sweep again soon */
    bool closed; /* Holdfast is gone */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Blocks while Holdfast is slow to read.  Holdfast never waits for the keeper, so this cannot
 * deadlock. */
static void reply_send(struct keeper_process *k, const struct keeper_reply *reply, const int *fds,
                       size_t n_fds)
{
    struct iovec part = {.iov_base = (void *)reply, .iov_len = sizeof(*reply)};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control = {0};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_fds) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(SOCKET_FD, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        k->closed = true;
}

static void reply_failed(struct keeper_process *k, uint32_t id, enum keeper_stage stage, int errnum)
{
    struct keeper_reply reply = {.news = KEEPER_FAILED, .id = id, .stage = stage, .errnum = errnum};
    reply_send(k, &reply, NULL, 0);
}

static struct entry *entry_by_id(struct keeper_process *k, uint32_t id)
{
    list_each(&k->entries, it)
    {
        struct entry *e = list_entry(it, struct entry, link);
        if (e->id == id && !e->forgotten)
            return e;
    }
    return NULL;
}

static struct entry *entry_by_pid(struct keeper_process *k, pid_t pid)
{
    list_each(&k->entries, it)
    {
        struct entry *e = list_entry(it, struct entry, link);
        if (e->minder == pid || e->child == pid)
            return e;
    }
    return NULL;
}

static void entry_close(struct entry *e)
{
    close_fd(&e->status);
    for (int i = 0; i < 3; i++)
        close_fd(&e->ends[i]);
}

/* The status pipe has ended: the child runs its program, or never will. */
static void entry_report_start(struct keeper_process *k, struct entry *e)
{
    struct keeper_reply reply = {.news = KEEPER_STARTED, .id = e->id, .pid = e->child};
    bool started = e->child && e->failure.stage == KEEPER_STAGE_NONE;
    e->state = started ? ENTRY_UP : ENTRY_FAILED;
    if (!e->forgotten && started)
        reply_send(k, &reply, e->ends, 3);
    else if (!e->forgotten && e->failure.stage)
        reply_failed(k, e->id, e->failure.stage, e->failure.errnum);
    else if (!e->forgotten) /* the minder was killed before it could write */
        reply_failed(k, e->id, KEEPER_STAGE_FORK, ECHILD);
    entry_close(e);
}

/* Reads the records that the minder has written so far. */
static void entry_read_status(struct keeper_process *k, struct entry *e)
{
    while (e->status >= 0) {
        struct minder_record record;
        ssize_t n = read(e->status, &record, sizeof(record));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n != (ssize_t)sizeof(record))
            entry_report_start(k, e);
        else if (record.stage)
            e->failure = record;
        else
            e->child = record.pid;
    }
}

/* Pipes for stdio and status.  `ret_theirs` are the child's ends: stdin, stdout, stderr, status. */
static bool entry_open_pipes(struct entry *e, int ret_theirs[4])
{
    int fds[4][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    for (int i = 0; i < 4; i++) {
        if (pipe2(fds[i], O_CLOEXEC) == 0)
            continue;
        int errnum = errno;
        for (int j = 0; j < i; j++) {
            close(fds[j][0]);
            close(fds[j][1]);
        }
        errno = errnum;
        return false;
    }
    for (int i = 0; i < 4; i++)
        ret_theirs[i] = fds[i][i == 0 ? 0 : 1];
    for (int i = 0; i < 3; i++)
        e->ends[i] = fds[i][i == 0 ? 1 : 0];
    e->status = fds[3][0];
    fcntl(e->status, F_SETFL, O_NONBLOCK);
    return true;
}

/* Starts the minder; on failure sends `failed` and returns false. */
static bool entry_start(struct keeper_process *k, struct entry *e, struct minder_plan *plan)
{
    int theirs[4];
    if (!entry_open_pipes(e, theirs)) {
        reply_failed(k, e->id, KEEPER_STAGE_PIPE, errno);
        return false;
    }
    plan->in = theirs[0];
    plan->out = theirs[1];
    plan->err = theirs[2];
    plan->status = theirs[3];
    if (fault_hits("keeper.fork")) {
        errno = EAGAIN;
        e->minder = -1;
    } else {
        e->minder = minder_fork(plan);
    }
    int errnum = errno;
    for (int i = 0; i < 4; i++)
        close(theirs[i]);
    if (e->minder > 0)
        return true;
    entry_close(e);
    reply_failed(k, e->id, KEEPER_STAGE_FORK, errnum);
    return false;
}

/* Points strings[i] at the n NUL-terminated strings in the packet; false when there are fewer. */
static bool request_split(char *p, const char *end, char **strings, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *nul = memchr(p, '\0', (size_t)(end - p));
        if (!nul)
            return false;
        strings[i] = p;
        p = nul + 1;
    }
    return p == end;
}

/* strings: command, cwd, args, env. */
static void spawn_from(struct keeper_process *k, const struct keeper_request *r, char **strings)
{
    char **argv = xcalloc((size_t)r->n_args + 2, sizeof(char *));
    argv[0] = strings[0];
    memcpy(argv + 1, strings + 2, r->n_args * sizeof(char *));
    struct minder_plan plan = {
        .argv = argv,
        .cwd = strings[1],
        .env = child_env_build(k->base_env, strings + 2 + r->n_args, r->n_env),
    };
    struct entry *e = xcalloc(1, sizeof(*e));
    *e = (struct entry){.id = r->id, .status = -1, .ends = {-1, -1, -1}};
    if (entry_start(k, e, &plan)) {
        list_push(&k->entries, &e->link);
        k->n_entries++;
    } else {
        free(e);
    }
    free(plan.env);
    free(argv);
}

static void request_spawn(struct keeper_process *k, const struct keeper_request *r, size_t size)
{
    size_t n = 2 + (size_t)r->n_args + r->n_env;
    if (size > KEEPER_MAX_REQUEST || n > size - sizeof(*r)) {
        reply_failed(k, r->id, KEEPER_STAGE_REQUEST, E2BIG);
        return;
    }
    if (k->n_entries >= KEEPER_MAX_CHILDREN) {
        reply_failed(k, r->id, KEEPER_STAGE_LIMIT, EAGAIN);
        return;
    }
    char **strings = xcalloc(n, sizeof(char *));
    if (request_split(k->request + sizeof(*r), k->request + size, strings, n))
        spawn_from(k, r, strings);
    else
        reply_failed(k, r->id, KEEPER_STAGE_REQUEST, EINVAL);
    free(strings);
}

static void request_kill(struct keeper_process *k, const struct keeper_request *r,
                         size_t size unused_arg)
{
    struct entry *e = entry_by_id(k, r->id);
    if (!e)
        return;
    if (e->state == ENTRY_UP && e->child)
        kill(-e->child, r->signum);
    else if (e->minder)
        kill(e->minder, MINDER_END_SIGNAL); /* the child does not run its program yet */
}

static void request_forget(struct keeper_process *k, const struct keeper_request *r,
                           size_t size unused_arg)
{
    struct entry *e = entry_by_id(k, r->id);
    if (!e)
        return;
    e->forgotten = true;
    if (e->minder)
        kill(e->minder, MINDER_END_SIGNAL);
}

static void (*const request_verbs[])(struct keeper_process *, const struct keeper_request *,
                                     size_t) = {
    [KEEPER_SPAWN] = request_spawn,
    [KEEPER_KILL] = request_kill,
    [KEEPER_FORGET] = request_forget,
};

static void requests_read(struct keeper_process *k)
{
    struct keeper_request r;
    ssize_t n = recv(SOCKET_FD, k->request, KEEPER_MAX_REQUEST + 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < (ssize_t)sizeof(r)) {
        k->closed = true;
        return;
    }
    memcpy(&r, k->request, sizeof(r));
    if (r.verb < countof(request_verbs) && request_verbs[r.verb])
        request_verbs[r.verb](k, &r, (size_t)n);
    explicit_bzero(k->request, (size_t)n);
}

static void all_read_status(struct keeper_process *k)
{
    list_each(&k->entries, it) entry_read_status(k, list_entry(it, struct entry, link));
}

static void reaped(struct keeper_process *k, pid_t pid, int status)
{
    struct entry *e = entry_by_pid(k, pid);
    if (!e) { /* a stray, or a child that ended before its record was read */
        all_read_status(k);
        e = entry_by_pid(k, pid);
    }
    if (!e)
        return;
    if (pid == e->minder) {
        entry_read_status(k, e);
        e->minder = 0;
        k->strays = true;
    } else {
        entry_read_status(k, e); /* all writers are dead, so this reads to the end */
        e->child = 0;
        e->wait_status = status;
    }
}

/* `exited` is sent when minder and child are both reaped: then no descendant is left. */
static void drop_finished(struct keeper_process *k)
{
    list_each(&k->entries, it)
    {
        struct entry *e = list_entry(it, struct entry, link);
        struct keeper_reply reply = {.news = KEEPER_EXITED, .id = e->id, .status = e->wait_status};
        if (e->minder || e->child || e->status >= 0)
            continue;
        list_remove(&e->link);
        k->n_entries--;
        if (e->state == ENTRY_UP && !e->forgotten)
            reply_send(k, &reply, NULL, 0);
        free(e);
    }
}

/* A minder exits only when its child is a zombie, unless the minder itself was killed. */
static void end_unminded(struct keeper_process *k)
{
    list_each(&k->entries, it)
    {
        struct entry *e = list_entry(it, struct entry, link);
        if (!e->minder && e->child) {
            kill(-e->child, SIGKILL);
            kill(e->child, SIGKILL);
        }
    }
}

static void reap(struct keeper_process *k)
{
    struct signalfd_siginfo info;
    int status;
    ssize_t n = read(SIGNAL_FD, &info, sizeof(info));
    (void)n; /* one SIGCHLD may stand for several ends */
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG))
        reaped(k, pid, status);
    end_unminded(k);
}

static bool is_stray(void *arg, const struct tree_process *p)
{
    return p->parent == getpid() && !entry_by_pid(arg, p->pid);
}

static void sweep_strays(struct keeper_process *k)
{
    all_read_status(k); /* an unread record would make a child look like a stray */
    k->strays = tree_kill(is_stray, k) > 0; /* zombies too: reap() reaps them */
}

static void wait_for_something(struct keeper_process *k)
{
    nfds_t n = 2;
    k->polls[0] = (struct pollfd){.fd = SOCKET_FD, .events = POLLIN};
    k->polls[1] = (struct pollfd){.fd = SIGNAL_FD, .events = POLLIN};
    list_each(&k->entries, it)
    {
        struct entry *e = list_entry(it, struct entry, link);
        if (e->status >= 0)
            k->polls[n++] = (struct pollfd){.fd = e->status, .events = POLLIN};
    }
    poll(k->polls, n, k->strays ? STRAY_SWEEP_MS : -1);
}

static int64_t keeper_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wait_for_child(int ms)
{
    struct pollfd ended = {.fd = SIGNAL_FD, .events = POLLIN};
    struct signalfd_siginfo info;
    poll(&ended, 1, ms);
    ssize_t n = read(SIGNAL_FD, &info, sizeof(info));
    (void)n;
}

/* A subreaper has no children exactly when it has no descendants. */
static void exit_when_alone(void)
{
    pid_t pid;
    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    if (pid < 0 && errno == ECHILD)
        _exit(0);
}

/* Their stdin is already closed; SIGTERM is for children that ignore that. */
static never_returns void kill_all_and_exit(struct keeper_process *k)
{
    int64_t now = keeper_now_ms(), grace = now + KEEPER_GRACE_MS, until = now + KEEPER_END_MS;
    list_each(&k->entries, it)
    {
        struct entry *e = list_entry(it, struct entry, link);
        if (e->child)
            kill(-e->child, SIGTERM);
    }
    for (; now < until; now = keeper_now_ms()) {
        if (now >= grace)
            tree_kill_descendants();
        exit_when_alone();
        wait_for_child(now < grace ? (int)(grace - now) : 10);
    }
    _exit(1);
}

/* Blocks all signals for ever, also those that would end the process: only the socket ends the
 * keeper. */
static void take_signals(void)
{
    sigset_t all, chld;
    signal(SIGCHLD, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    int fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0 || (fd != SIGNAL_FD && dup3(fd, SIGNAL_FD, O_CLOEXEC) < 0))
        _exit(1);
}

void keeper_process_run(int fd, char **base_env)
{
    struct keeper_process k = {.base_env = base_env};
    setsid();
    keeper_take_fds(fd);
    take_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    keeper_take_title("holdfast: keeper", "holdfast-keeper");
    list_init(&k.entries);
    k.request = xmalloc(KEEPER_MAX_REQUEST + 1);
    k.polls = xcalloc(KEEPER_MAX_CHILDREN + 2, sizeof(k.polls[0]));
    while (!k.closed) {
        wait_for_something(&k);
        requests_read(&k);
        all_read_status(&k);
        reap(&k);
        if (k.strays)
            sweep_strays(&k);
        drop_finished(&k);
    }
    kill_all_and_exit(&k);
}
