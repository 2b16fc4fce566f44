/* SPDX-License-Identifier: Apache-2.0 */
/* Holdfast's side of the keeper: has it forked, sends orders, turns its packets into callbacks.
 *
 * Orders never block: if the socket is full, they wait in a queue.  Every spawn ends in exactly one
 * of: on_failed; on_started and later on_exited; keeper_forget() by its user.  That also holds when
 * the keeper is stopped or dies.  Its children die with it, so spawns still starting get on_failed,
 * and running children get on_exited with SIGKILL.
 *
 * Holdfast has threads and must not fork.  The zygote, a process forked before the threads, forks
 * every keeper: the first one, and another whenever one has died.  A keeper that dies young is
 * replaced after a pause that doubles.  If the zygote is gone too, no keeper can be forked, and
 * keeper_is_up() stays false.
 *
 * Failures found here (a command too long, a dead keeper) are reported from a timer of the loop,
 * never from inside keeper_spawn(). */
#include "upstream/keeper.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "upstream/keeper_env.h"
#include "upstream/keeper_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes of orders that wait because the keeper is slow; spawns beyond this are refused. */
#define KEEPER_MAX_QUEUE (8 * 1024 * 1024)
#define KEEPER_STOP_MS (KEEPER_END_MS + 1000)
#define KEEPER_PACKETS_PER_TURN 64
#define KEEPER_FORK_MS 10000 /* timeout for the zygote to fork the first keeper */
/* A keeper that lived for less died young. */
#define KEEPER_YOUNG_MS 10000
#define KEEPER_PAUSE_MS 500
#define KEEPER_PAUSE_MAX_MS 30000

struct keeper_record {
    struct list link; /* in keeper.records, or in keeper.failing */
    unsigned id;
    bool started;
    struct keeper_events events;
    void *arg;
    struct error failure;        /* set in keeper.failing */
    char *name, *command, *path; /* for error texts */
};

struct keeper_packet {
    struct list link;
    size_t n;
    char bytes[];
};

struct keeper {
    int fd; /* -1 while no keeper runs */
    pid_t pid;
    int ended;   /* the keeper's pidfd, or -1 */
    int control; /* to the zygote; -1 once the zygote is dead */
    pid_t zygote;
    int64_t began_ms, pause_ms;
    struct loop *loop;
    struct loop_fd *watch, *control_watch;
    struct loop_timer *again;  /* starts the next keeper */
    struct loop_timer *failer; /* reports keeper.failing in a turn of its own */
    struct list records;
    struct list failing;
    struct list packets;
    size_t queued;
    unsigned last_id;
};

/* Makes the socket of a keeper and asks the zygote to fork one for it; the answer comes later. */
static bool ask_for_keeper(struct keeper *k, struct error *err)
{
    int pair[2];
    char byte = 0;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return error_sys(err, ERR_INTERNAL, errno, "cannot make the socket of the keeper process");
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &pair[1], sizeof(int));
    ssize_t n = sendmsg(k->control, &msg, MSG_NOSIGNAL);
    int errnum = errno;
    close(pair[1]);
    if (n < 0) {
        close(pair[0]);
        return error_sys(err, ERR_INTERNAL, errnum, "cannot ask for a keeper process");
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    k->fd = pair[0];
    k->began_ms = clock_mono_ms();
    return true;
}

static void forget_pid(struct keeper *k)
{
    if (k->ended >= 0)
        close(k->ended);
    k->ended = -1;
    k->pid = 0;
}

/* Reads the zygote's answer: the pid, or the errno of a failed fork.  False when the zygote is
 * gone. */
static bool take_pid(struct keeper *k, int *ret_errnum)
{
    int32_t answer = 0;
    *ret_errnum = 0;
    ssize_t n = recv(k->control, &answer, sizeof(answer), 0);
    if (n != (ssize_t)sizeof(answer))
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    forget_pid(k);
    if (answer < 0) {
        *ret_errnum = -answer;
        return true;
    }
    k->pid = answer;
    k->ended = pidfd_open(answer, 0); /* not our child, so waitpid() cannot be used */
    return true;
}

static bool start_first(struct keeper *k, struct error *err)
{
    struct pollfd answer = {.fd = k->control, .events = POLLIN};
    int errnum = 0, ready;
    if (!ask_for_keeper(k, err))
        return false;
    do
        ready = poll(&answer, 1, KEEPER_FORK_MS);
    while (ready < 0 && errno == EINTR);
    if (ready > 0 && take_pid(k, &errnum) && k->pid > 0)
        return true;
    return error_sys(err, ERR_INTERNAL, errnum ? errnum : ETIMEDOUT,
                     "cannot fork the keeper process; raise the limit of processes");
}

bool keeper_start(struct keeper **ret, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return error_sys(err, ERR_INTERNAL, errno, "cannot make the socket of the keeper process");
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        keeper_zygote_run(pair[1]);
    }
    int errnum = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return error_sys(err, ERR_INTERNAL, errnum,
                         "cannot fork the keeper process; raise the limit of processes");
    }
    signal(SIGPIPE, SIG_IGN); /* a child that closed its stdin must not kill Holdfast */
    struct keeper *k = xcalloc(1, sizeof(*k));
    k->fd = k->ended = -1;
    k->control = pair[0];
    k->zygote = pid;
    list_init(&k->records);
    list_init(&k->failing);
    list_init(&k->packets);
    if (!start_first(k, err)) {
        keeper_stop(k);
        return false;
    }
    fcntl(k->control, F_SETFL, O_NONBLOCK);
    *ret = k;
    return true;
}

bool keeper_is_up(const struct keeper *k)
{
    return k->fd >= 0;
}

int keeper_pid(const struct keeper *k)
{
    return k->pid;
}

static char *keeper_dup(struct str s)
{
    char *copy = xmalloc(s.n + 1);
    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return copy;
}

static void record_free(struct keeper_record *r)
{
    list_remove(&r->link);
    free(r->name);
    free(r->command);
    free(r->path);
    free(r);
}

static struct keeper_record *record_by_id(struct list *records, unsigned id)
{
    list_each(records, it)
    {
        struct keeper_record *r = list_entry(it, struct keeper_record, link);
        if (r->id == id)
            return r;
    }
    return NULL;
}

static void record_fail(struct keeper_record *r, const struct error *why)
{
    struct keeper_events events = r->events;
    void *arg = r->arg;
    record_free(r);
    events.on_failed(arg, why);
}

static void record_exit(struct keeper_record *r, int wait_status)
{
    struct keeper_events events = r->events;
    void *arg = r->arg;
    record_free(r);
    events.on_exited(arg, wait_status);
}

/* Spawns made inside these callbacks get higher ids and wait for the next turn. */
static void on_failer(void *arg)
{
    struct keeper *k = arg;
    unsigned last = k->last_id;
    struct list *node;
    while ((node = list_pop(&k->failing))) {
        struct keeper_record *r = list_entry(node, struct keeper_record, link);
        struct error why = r->failure;
        if (r->id > last) {
            list_push_front(&k->failing, &r->link);
            break;
        }
        record_fail(r, &why);
    }
}

static void send_packets(struct keeper *k)
{
    struct list *node;
    while (k->fd >= 0 && (node = list_first(&k->packets))) {
        struct keeper_packet *p = list_entry(node, struct keeper_packet, link);
        ssize_t n = send(k->fd, p->bytes, p->n, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
            break;
        /* Any other failure also shows on the reading side, which handles the keeper's death. */
        k->queued -= p->n;
        list_remove(&p->link);
        explicit_bzero(p->bytes, p->n); /* a child's environment holds secrets */
        free(p);
    }
    if (k->watch)
        loop_fd_want(k->watch, LOOP_READ | (list_empty(&k->packets) ? 0 : LOOP_WRITE));
}

static void queue_packet(struct keeper *k, struct str bytes)
{
    struct keeper_packet *p = xmalloc(sizeof(*p) + bytes.n);
    p->n = bytes.n;
    memcpy(p->bytes, bytes.p, bytes.n);
    list_push(&k->packets, &p->link);
    k->queued += p->n;
    send_packets(k);
}

static void queue_order(struct keeper *k, enum keeper_verb verb, unsigned id, int signum)
{
    struct keeper_request order = {.verb = verb, .id = id, .signum = signum};
    if (k->fd >= 0)
        queue_packet(k, str_n((const char *)&order, sizeof(order)));
}

/* The keeper that would report these ends is gone. */
static void end_records(struct list *records, const char *why_not)
{
    struct list *node;
    struct error why;
    error_set(&why, ERR_UNAVAILABLE, "%s", why_not);
    while ((node = list_pop(records))) {
        struct keeper_record *r = list_entry(node, struct keeper_record, link);
        if (r->started)
            record_exit(r, SIGKILL);
        else
            record_fail(r, &why);
    }
}

static void drop_packets(struct keeper *k)
{
    struct list *node;
    while ((node = list_pop(&k->packets))) {
        struct keeper_packet *p = list_entry(node, struct keeper_packet, link);
        explicit_bzero(p->bytes, p->n);
        free(p);
    }
    k->queued = 0;
}

static void keeper_hang_up(struct keeper *k)
{
    loop_fd_free(k->watch);
    k->watch = NULL;
    if (k->fd >= 0)
        close(k->fd);
    k->fd = -1;
    drop_packets(k);
}

static void lose_zygote(struct keeper *k)
{
    loop_fd_free(k->control_watch);
    k->control_watch = NULL;
    close(k->control);
    k->control = -1;
}

static int64_t next_pause_ms(struct keeper *k)
{
    if (clock_mono_ms() - k->began_ms >= KEEPER_YOUNG_MS)
        k->pause_ms = 0;
    int64_t pause = k->pause_ms;
    k->pause_ms = pause == 0                        ? KEEPER_PAUSE_MS
                  : 2 * pause > KEEPER_PAUSE_MAX_MS ? KEEPER_PAUSE_MAX_MS
                                                    : 2 * pause;
    return pause;
}

#define NO_OTHER "the keeper process ended and cannot be replaced; restart Holdfast"
#define ANOTHER "the keeper process ended and is being replaced; try again"

static void keeper_died(struct keeper *k)
{
    keeper_hang_up(k);
    if (k->control < 0) {
        log_error("keeper process ended and cannot be replaced: servers run by command cannot be "
                  "started until Holdfast is restarted",
                  LI("pid", k->pid));
    } else {
        int64_t pause = next_pause_ms(k);
        log_error("keeper process ended; servers run by command have ended with it, and another "
                  "keeper is started",
                  LI("pid", k->pid), LI("after_ms", pause));
        loop_timer_start(k->again, pause, 0);
    }
    end_records(&k->records, k->control < 0 ? NO_OTHER : ANOTHER);
}

/* The failure, and the remedy, in or with mcpServers.NAME. */
struct stage_text {
    const char *what, *remedy;
};
static const struct stage_text stage_texts[KEEPER_STAGE_COUNT] = {
    [KEEPER_STAGE_REQUEST] = {"its definition cannot be used", "shorten args and env"},
    [KEEPER_STAGE_LIMIT] = {"too many servers are running", "end some and try again"},
    [KEEPER_STAGE_PIPE] = {"no pipes", "raise the limit of open files"},
    [KEEPER_STAGE_FORK] = {"cannot fork", "raise the limit of processes, or try again"},
    [KEEPER_STAGE_SETUP] = {"cannot prepare the process", "check the limits Holdfast runs under"},
    [KEEPER_STAGE_CHDIR] = {"cannot enter its working directory", "correct cwd"},
    [KEEPER_STAGE_FIND] = {"not found in PATH", "install it or give an absolute path in command"},
    [KEEPER_STAGE_INTERPRETER] = {"the interpreter its first line names is missing",
                                  "install that interpreter or correct command"},
    [KEEPER_STAGE_EXEC] = {"cannot execute it", "make it an executable file or correct command"},
};

static void failure_text(const struct keeper_record *r, const struct keeper_reply *reply,
                         struct error *ret)
{
    const struct stage_text *t =
        &stage_texts[reply->stage < KEEPER_STAGE_COUNT ? reply->stage : KEEPER_STAGE_SETUP];
    if (reply->stage == KEEPER_STAGE_FIND)
        error_set(ret, ERR_UNREACHABLE,
                  "cannot start \"%.100s\": not found in PATH; install it or give an absolute path "
                  "in mcpServers.%.64s.command (PATH is %.160s%s)",
                  r->command, r->name, r->path, strlen(r->path) > 160 ? "…" : "");
    else
        error_set(ret, ERR_UNREACHABLE, "cannot start \"%.100s\" of mcpServers.%.64s: %s (%s); %s",
                  r->command, r->name, t->what, strerror(reply->errnum), t->remedy);
}

static void take_started(struct keeper *k, const struct keeper_reply *reply, const int fds[3])
{
    struct keeper_record *r = record_by_id(&k->records, reply->id);
    if (!r) { /* forgotten meanwhile */
        for (int i = 0; i < 3; i++)
            close(fds[i]);
        return;
    }
    struct keeper_child child = {
        .id = r->id, .pid = reply->pid, .in = fds[0], .out = fds[1], .err = fds[2]};
    r->started = true;
    r->events.on_started(r->arg, &child);
}

static void take_reply(struct keeper *k, const struct keeper_reply *reply)
{
    struct keeper_record *r = record_by_id(&k->records, reply->id);
    if (r && reply->news == KEEPER_EXITED) {
        record_exit(r, reply->status);
    } else if (r && reply->news == KEEPER_FAILED) {
        struct error why;
        failure_text(r, reply, &why);
        record_fail(r, &why);
    }
}

static void take_fds(const struct msghdr *msg, int *ret_fds, size_t *ret_n)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    *ret_n = 0;
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return;
    *ret_n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(ret_fds, CMSG_DATA(c), *ret_n * sizeof(int));
}

/* The process has too many files open to receive all three. */
static void take_started_without_fds(struct keeper *k, unsigned id, const int *fds, size_t n)
{
    const struct keeper_reply failed = {
        .news = KEEPER_FAILED, .id = id, .stage = KEEPER_STAGE_PIPE, .errnum = EMFILE};
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    queue_order(k, KEEPER_FORGET, id, 0);
    take_reply(k, &failed);
}

/* Reads one packet; false when none is available. */
static bool take_packet(struct keeper *k)
{
    struct keeper_reply reply;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = &reply, .iov_len = sizeof(reply)};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    int fds[3];
    size_t n_fds;
    ssize_t n = recvmsg(k->fd, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n != (ssize_t)sizeof(reply)) {
        keeper_died(k);
        return false;
    }
    take_fds(&msg, fds, &n_fds);
    if (reply.news != KEEPER_STARTED)
        take_reply(k, &reply);
    else if (n_fds == 3)
        take_started(k, &reply, fds);
    else
        take_started_without_fds(k, reply.id, fds, n_fds);
    return true;
}

static void on_keeper_ready(void *arg, int events)
{
    struct keeper *k = arg;
    if (events & LOOP_WRITE)
        send_packets(k);
    for (int i = 0; i < KEEPER_PACKETS_PER_TURN; i++)
        if (k->fd < 0 || !take_packet(k))
            break;
}

static void on_again(void *arg)
{
    struct keeper *k = arg;
    struct error err;
    if (k->control < 0)
        return;
    if (!ask_for_keeper(k, &err)) {
        log_error("another keeper process could not be started", LZ("why", err.text));
        k->began_ms = clock_mono_ms();
        loop_timer_start(k->again, next_pause_ms(k), 0);
        return;
    }
    k->watch = loop_fd_new(k->loop, k->fd, on_keeper_ready, k);
    send_packets(k);
}

/* A failed fork shows on the keeper's socket too, and is handled there. */
static void on_control(void *arg, int events unused_arg)
{
    struct keeper *k = arg;
    int errnum = 0;
    if (!take_pid(k, &errnum)) {
        log_error("the process that forks keepers ended; if the keeper ends too, restart Holdfast",
                  LI("pid", k->zygote));
        lose_zygote(k);
    } else if (errnum) {
        log_error("another keeper process could not be started; raise the limit of processes",
                  LZ("why", strerror(errnum)));
    } else if (k->pid > 0) {
        log_info("keeper process started", LI("pid", k->pid));
    }
}

void keeper_attach(struct keeper *k, struct loop *loop)
{
    k->loop = loop;
    k->again = loop_timer_new(loop, on_again, k);
    k->control_watch = loop_fd_new(loop, k->control, on_control, k);
    loop_fd_want(k->control_watch, LOOP_READ);
    k->failer = loop_timer_new(loop, on_failer, k);
    if (!list_empty(&k->failing))
        loop_timer_start(k->failer, 0, 0);
    k->watch = loop_fd_new(loop, k->fd, on_keeper_ready, k);
    send_packets(k);
}

/* Adds a string to the request.  Strings end with NUL there, so they must not contain NUL. */
static bool request_add(struct buf *b, struct str s, struct error *err)
{
    if (s.n && memchr(s.p, '\0', s.n))
        return error_set(err, ERR_CONFIG, "there is a NUL byte in it; remove it");
    if ((s.n && !buf_try_add(b, s.p, s.n)) || !buf_try_add(b, "", 1))
        return error_set(err, ERR_CONFIG,
                         "command, args, env, inherit_env and cwd are longer than %d bytes; "
                         "shorten them",
                         KEEPER_MAX_REQUEST);
    return true;
}

/* Adds one "NAME=VALUE". */
static bool request_add_pair(struct buf *b, const struct config_pair *pair, struct error *err)
{
    if (pair->name.n == 0 || memchr(pair->name.p, '=', pair->name.n))
        return error_set(err, ERR_CONFIG, "env has a name that is empty or holds \"=\"; rename it");
    if (!request_add(b, pair->name, err))
        return false;
    b->p[b->n - 1] = '=';
    return request_add(b, pair->value, err);
}

struct asked_env {
    struct buf *request;
    struct error *err;
    bool ok;
};

static bool count_asked(void *arg unused_arg, struct str name unused_arg,
                        struct str value unused_arg)
{
    return true;
}

static bool add_asked(void *arg, struct str name, struct str value)
{
    struct asked_env *a = arg;
    const struct config_pair pair = {.name = name, .value = value};
    return a->ok = request_add_pair(a->request, &pair, a->err);
}

static bool request_build(const struct server_config *s, unsigned id, struct buf *ret,
                          struct error *err)
{
    size_t n_asked = child_env_each_asked(s, count_asked, NULL);
    const struct keeper_request head = {.verb = KEEPER_SPAWN,
                                        .id = id,
                                        .n_args = (uint32_t)s->n_args,
                                        .n_env = (uint32_t)(n_asked + s->n_env)};
    struct asked_env asked = {.request = ret, .err = err, .ok = true};

    buf_add(ret, &head, sizeof(head));
    if (!request_add(ret, s->command, err) || !request_add(ret, s->cwd, err))
        return false;
    for (size_t i = 0; i < s->n_args; i++)
        if (!request_add(ret, s->args[i], err))
            return false;
    child_env_each_asked(s, add_asked, &asked);
    for (size_t i = 0; i < s->n_env && asked.ok; i++) /* last, because they take precedence */
        asked.ok = request_add_pair(ret, &s->env[i], err);
    return asked.ok;
}

/* The PATH in which the child looks for its command: its own, else ours. */
static struct str path_of(const struct server_config *s)
{
    struct str path = str_of(getenv("PATH"));
    for (size_t i = 0; i < s->n_env; i++)
        if (str_eq(s->env[i].name, STR("PATH")))
            path = s->env[i].value;
    return path;
}

static struct keeper_record *record_new(struct keeper *k, const struct server_config *server,
                                        const struct keeper_events *events, void *arg)
{
    struct keeper_record *r = xcalloc(1, sizeof(*r));
    r->id = ++k->last_id;
    r->events = *events;
    r->arg = arg;
    r->name = keeper_dup(server->name);
    r->command = keeper_dup(server->command);
    r->path = keeper_dup(path_of(server));
    list_init(&r->link);
    return r;
}

static bool spawn_request(struct keeper *k, const struct server_config *server,
                          const struct keeper_record *r, struct buf *ret, struct error *err)
{
    if (k->fd < 0)
        return error_set(err, ERR_UNAVAILABLE, "%s", k->control < 0 ? NO_OTHER : ANOTHER);
    if (k->queued > KEEPER_MAX_QUEUE)
        return error_set(err, ERR_UNAVAILABLE, "the keeper process is busy; try again later");
    if (!request_build(server, r->id, ret, err))
        return error_wrap(err, "mcpServers.%.64s cannot be started", r->name);
    return true;
}

unsigned keeper_spawn(struct keeper *k, const struct server_config *server,
                      const struct keeper_events *events, void *arg)
{
    struct keeper_record *r = record_new(k, server, events, arg);
    struct buf request;
    buf_init_secret(&request, KEEPER_MAX_REQUEST);
    if (spawn_request(k, server, r, &request, &r->failure)) {
        list_push(&k->records, &r->link);
        queue_packet(k, buf_str(&request));
    } else {
        list_push(&k->failing, &r->link);
        if (k->failer)
            loop_timer_start(k->failer, 0, 0);
    }
    buf_release(&request);
    return r->id;
}

void keeper_kill(struct keeper *k, unsigned id, int signum)
{
    if (record_by_id(&k->records, id))
        queue_order(k, KEEPER_KILL, id, signum);
}

void keeper_forget(struct keeper *k, unsigned id)
{
    struct keeper_record *r = record_by_id(&k->records, id);
    if (r)
        queue_order(k, KEEPER_FORGET, id, 0);
    else
        r = record_by_id(&k->failing, id);
    if (r)
        record_free(r);
}

/* The keeper exits by itself once its socket is closed.  It is killed only if it hangs. */
static void wait_for_end(struct keeper *k)
{
    struct pollfd ended = {.fd = k->ended, .events = POLLIN};
    int ready;
    if (k->ended < 0)
        return;
    do
        ready = poll(&ended, 1, KEEPER_STOP_MS);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        pidfd_send_signal(k->ended, SIGKILL, NULL, 0);
    forget_pid(k);
}

static void end_zygote(struct keeper *k)
{
    if (k->control >= 0)
        lose_zygote(k);
    while (waitpid(k->zygote, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void keeper_stop(struct keeper *k)
{
    if (!k)
        return;
    keeper_hang_up(k);
    wait_for_end(k);
    end_zygote(k);
    end_records(&k->records, "Holdfast is stopping; start it again");
    end_records(&k->failing, "Holdfast is stopping; start it again");
    loop_timer_free(k->failer);
    loop_timer_free(k->again);
    free(k);
}
