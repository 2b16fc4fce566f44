/* SPDX-License-Identifier: Apache-2.0 */
/* Holdfast's side of the keeper: forks it, sends orders, turns its packets into callbacks.
 *
 * Orders never block: what the socket does not take waits in a queue.  Every spawn ends in exactly
 * one of: on_failed; on_started and later on_exited; keeper_forget() by its user.  That also holds
 * when the keeper is stopped or dies: it takes its children along, so those waiting hear on_failed
 * and those running on_exited with SIGKILL.  It is not restarted, because forking is safe only
 * while there is one thread.
 *
 * Failures found here (a command too long, a dead keeper) are reported from a timer of the loop,
 * never from inside keeper_spawn(). */
#include "upstream/keeper.h"

#include "base/buf.h"
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

/* Orders waiting because the keeper is slow; spawns beyond this are refused. */
#define KEEPER_MAX_QUEUE (8 * 1024 * 1024)
#define KEEPER_STOP_MS (KEEPER_END_MS + 1000)
#define KEEPER_PACKETS_PER_TURN 64

struct keeper_record {
    struct list link; /* in keeper.records, or in keeper.failing */
    unsigned id;
    bool started;
    struct keeper_events events;
    void *arg;
    struct error failure;        /* when in keeper.failing */
    char *name, *command, *path; /* for error texts */
};

struct keeper_packet {
    struct list link;
    size_t n;
    char bytes[];
};

struct keeper {
    int fd; /* -1 once the keeper is dead */
    pid_t pid;
    struct loop *loop;
    struct loop_fd *watch;
    struct loop_timer *failer; /* reports keeper.failing in a turn of its own */
    struct list records;
    struct list failing;
    struct list packets;
    size_t queued;
    unsigned last_id;
};

bool keeper_start(struct keeper **ret, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return error_sys(err, ERR_INTERNAL, errno, "cannot make the socket of the keeper process");
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        keeper_process_run(pair[1]);
    }
    int errnum = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return error_sys(err, ERR_INTERNAL, errnum,
                         "cannot fork the keeper process; raise the limit of processes");
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    signal(SIGPIPE, SIG_IGN); /* a child that closed its stdin must not end us */
    struct keeper *k = xcalloc(1, sizeof(*k));
    k->fd = pair[0];
    k->pid = pid;
    list_init(&k->records);
    list_init(&k->failing);
    list_init(&k->packets);
    *ret = k;
    return true;
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
        /* Any other failure also shows on the reading side, which is where death is handled. */
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

/* Nobody is left who could tell these of their end. */
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

static void keeper_hang_up(struct keeper *k)
{
    loop_fd_free(k->watch);
    k->watch = NULL;
    if (k->fd >= 0)
        close(k->fd);
    k->fd = -1;
}

static void keeper_died(struct keeper *k)
{
    log_error("keeper process ended; servers run by command are gone until Holdfast is restarted",
              LI("pid", k->pid));
    keeper_hang_up(k);
    end_records(&k->records, "the keeper process ended; restart Holdfast");
}

/* What went wrong, and what to do about it, in or with mcpServers.NAME. */
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

/* We have too many files open to be given all three. */
static void take_started_without_fds(struct keeper *k, unsigned id, const int *fds, size_t n)
{
    const struct keeper_reply failed = {
        .news = KEEPER_FAILED, .id = id, .stage = KEEPER_STAGE_PIPE, .errnum = EMFILE};
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    queue_order(k, KEEPER_FORGET, id, 0);
    take_reply(k, &failed);
}

/* Reads one packet; false when there is none now or never again. */
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

void keeper_attach(struct keeper *k, struct loop *loop)
{
    k->loop = loop;
    k->failer = loop_timer_new(loop, on_failer, k);
    if (!list_empty(&k->failing))
        loop_timer_start(k->failer, 0, 0);
    k->watch = loop_fd_new(loop, k->fd, on_keeper_ready, k);
    send_packets(k);
}

/* A string of the request; strings end with NUL there, so they must not hold one. */
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

/* One "NAME=VALUE". */
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
    for (size_t i = 0; i < s->n_env && asked.ok; i++) /* behind, for they win */
        asked.ok = request_add_pair(ret, &s->env[i], err);
    return asked.ok;
}

/* Where the child will look for its command: its own PATH, else ours. */
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
        return error_set(err, ERR_UNAVAILABLE, "the keeper process ended; restart Holdfast");
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

/* The keeper leaves by itself once its socket is closed; killing it is for one that hangs. */
static void wait_for_end(pid_t pid)
{
    int fd = pidfd_open(pid, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    int ready;
    do
        ready = poll(&ended, 1, KEEPER_STOP_MS);
    while (ready < 0 && errno == EINTR);
    if (fd < 0 || ready <= 0)
        kill(pid, SIGKILL);
    if (fd >= 0)
        close(fd);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void keeper_stop(struct keeper *k)
{
    struct list *node;
    if (!k)
        return;
    keeper_hang_up(k);
    wait_for_end(k->pid);
    end_records(&k->records, "Holdfast is stopping; start it again");
    end_records(&k->failing, "Holdfast is stopping; start it again");
    loop_timer_free(k->failer);
    while ((node = list_pop(&k->packets)))
        free(list_entry(node, struct keeper_packet, link));
    free(k);
}
