/* SPDX-License-Identifier: Apache-2.0 */
/* The server object: listeners and accepting, the limits that all connections share, and the
 * recycled requests.  The state machine of one connection is in server_conn.c.
 *
 * Accepting is paused in two cases, and clients then wait in the kernel's backlog: at
 * max_connections (unix listeners continue, so that an operator is never locked out), and when
 * descriptors run out. */
#include "http/server.h"
#include "http/server_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ACCEPTS_PER_TURN 64
#define ACCEPT_AGAIN_MS 100
#define REQUEST_SLACK (1024 * 1024)     /* of an arena beyond head and body, for handlers */
#define REQUEST_USUAL (12 * 1024 - 256) /* a small message and its exchange fit in one allocation */

const struct http_server_config http_server_defaults = {
    .max_body = 4 * 1024 * 1024,
    .head_ms = 10 * 1000,
    .idle_ms = 60 * 1000,
    .write_stall_ms = 30 * 1000,
    .body_grace_ms = 5 * 1000,
    .body_min_rate = 512,
    .max_connections = 20000,
    .body_budget = 256 * 1024 * 1024,
};

struct listener {
    struct http_server *server;
    struct list link;
    int fd;
    struct loop_fd *watch;
    struct tls_context *tls;
    bool is_unix;
};

static void update_listeners(struct http_server *s)
{
    list_each(&s->listeners, it)
    {
        struct listener *l = list_entry(it, struct listener, link);
        bool full = s->n_open >= s->config.max_connections && !l->is_unix;
        loop_fd_want(l->watch, full || s->out_of_fds ? 0 : LOOP_READ);
    }
}

static void on_accept_again(void *arg)
{
    struct http_server *s = arg;

    s->out_of_fds = false;
    update_listeners(s);
}

static bool is_starved(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOBUFS || errnum == ENOMEM;
}

static void on_acceptable(void *arg, int events unused_arg)
{
    struct listener *l = arg;
    struct http_server *s = l->server;

    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct conn_address peer = {.len = sizeof(peer.sa)};
        int fd;

        if (s->n_open >= s->config.max_connections && !l->is_unix)
            break;
        fd = accept4(l->fd, (struct sockaddr *)&peer.sa, &peer.len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && is_starved(errno)) {
            s->out_of_fds = true;
            loop_timer_start(s->accept_again, ACCEPT_AGAIN_MS, 0);
            break;
        }
        if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (fd >= 0) /* other errors concern one client, such as ECONNABORTED */
            server_conn_new(s, fd, l->tls, l->is_unix, &peer);
    }
    update_listeners(s);
}

struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
                                    http_gate_fn *gate, http_handler_fn *handler, void *arg)
{
    struct http_server *s = xcalloc(1, sizeof(*s));

    s->loop = loop;
    s->config = *config;
    s->gate = gate;
    s->handler = handler;
    s->arg = arg;
    s->refs = 1;
    list_init(&s->listeners);
    list_init(&s->conns);
    s->accept_again = loop_timer_new(loop, on_accept_again, s);
    s->body_tick_ms = config->body_grace_ms < 1000 ? config->body_grace_ms : 1000;
    deadline_class_init(&s->head_wait, loop, config->head_ms);
    deadline_class_init(&s->idle_wait, loop, config->idle_ms);
    deadline_class_init(&s->body_wait, loop, s->body_tick_ms);
    deadline_class_init(&s->write_wait, loop, config->write_stall_ms);
    deadline_class_init(&s->discard_wait, loop, SERVER_DISCARD_MS);
    return s;
}

void http_server_listen(struct http_server *s, int fd, struct tls_context *tls, bool is_unix)
{
    struct listener *l = xcalloc(1, sizeof(*l));

    l->server = s;
    l->fd = fd;
    l->tls = tls;
    l->is_unix = is_unix;
    l->watch = loop_fd_new(s->loop, fd, on_acceptable, l);
    if (!l->watch)
        die("a listener that cannot be polled was given to the HTTP server; this is a bug");
    list_push(&s->listeners, &l->link);
    update_listeners(s);
}

void http_server_adopt(struct http_server *s, int fd, bool is_unix)
{
    struct conn_address peer = {.len = sizeof(peer.sa.ss_family), .sa = {.ss_family = AF_UNIX}};

    server_conn_new(s, fd, NULL, is_unix, &peer);
}

void http_server_set_tls(struct http_server *s, struct tls_context *tls)
{
    list_each(&s->listeners, it)
    {
        struct listener *l = list_entry(it, struct listener, link);
        if (l->tls)
            l->tls = tls;
    }
}

static void close_listeners(struct http_server *s)
{
    struct list *first;

    while ((first = list_pop(&s->listeners))) {
        struct listener *l = list_entry(first, struct listener, link);
        loop_fd_free(l->watch);
        close(l->fd);
        free(l);
    }
}

void http_server_stop_listening(struct http_server *s)
{
    list_each(&s->listeners, it)
    {
        on_acceptable(list_entry(it, struct listener, link), LOOP_READ);
    }
    close_listeners(s);
}

void http_server_drain(struct http_server *s)
{
    bool again = s->is_draining;

    s->is_draining = true;
    list_each(&s->conns, it)
    {
        struct server_conn *c = list_entry(it, struct server_conn, link);
        if (c->state == SERVER_IDLE || (again && c->state == SERVER_HEAD && !c->began_us))
            server_conn_close(c);
    }
}

unsigned http_server_open(const struct http_server *s)
{
    return s->n_open;
}

unsigned http_server_flushing(const struct http_server *s)
{
    unsigned n = 0;

    list_each(&s->conns, it)
    {
        n += list_entry(it, struct server_conn, link)->state == SERVER_FLUSHING;
    }
    return n;
}

static void request_destroy(struct server_request *r)
{
    buf_release(&r->chunked);
    arena_free(r->pub.mem);
    free(r->pub.head);
    free(r);
}

static void on_release(struct loop_task *task)
{
    struct http_server *s = container_of(task, struct http_server, release);

    while (s->n_free_requests)
        request_destroy(s->free_requests[--s->n_free_requests]);
    free(s);
}

void server_unref(struct http_server *s)
{
    if (--s->refs > 0)
        return;
    s->release.fn = on_release;
    loop_defer(s->loop, &s->release);
}

void http_server_free(struct http_server *s)
{
    struct list *first;

    if (!s)
        return;
    close_listeners(s);
    while ((first = list_first(&s->conns)))
        server_conn_close(list_entry(first, struct server_conn, link));
    loop_timer_free(s->accept_again);
    deadline_class_release(&s->head_wait);
    deadline_class_release(&s->idle_wait);
    deadline_class_release(&s->body_wait);
    deadline_class_release(&s->write_wait);
    deadline_class_release(&s->discard_wait);
    server_unref(s);
}

void server_conn_gone(struct server_conn *c)
{
    struct http_server *s = c->server;

    list_remove(&c->link);
    s->n_open--;
    update_listeners(s);
}

struct server_request *server_request_new(struct server_conn *c)
{
    struct http_server *s = c->server;
    struct server_request *r;

    if (likely(s->n_free_requests)) {
        r = s->free_requests[--s->n_free_requests];
    } else {
        r = xcalloc_line(sizeof(*r));
        r->server = s;
        r->pub.head = xmalloc(sizeof(*r->pub.head));
        r->pub.mem =
            arena_new_for(s->config.max_body + HTTP_MAX_HEAD + REQUEST_SLACK, REQUEST_USUAL, 0);
        buf_init_secret(&r->chunked, s->config.max_body);
    }
    s->refs++;
    r->conn = c;
    r->counted = 0;
    r->has_chunks = false;
    r->pub.body = STR("");
    r->pub.extra = STR_NONE;
    r->pub.who = NULL;
    r->pub.format_refusal = NULL;
    r->pub.refusal_type = NULL;
    r->pub.user = NULL;
    r->pub.on_abort = NULL;
    r->pub.on_drained = NULL;
    r->pub.on_unsent = NULL;
    r->pub.is_tls = c->is_tls;
    r->pub.is_unix = c->is_unix;
    r->pub.peer_uid = c->peer_uid;
    r->pub.began_us = c->began_us;
    memcpy(&r->pub.peer.sa, &c->peer.sa, c->peer.len);
    r->pub.peer.len = c->peer.len;
    return r;
}

void server_request_free(struct server_request *r)
{
    struct http_server *s = r->server;

    server_uncount_body(r);
    if (r->has_chunks)
        buf_release(&r->chunked);
    if (likely(s->n_free_requests < SERVER_MAX_FREE && r->pub.mem)) {
        arena_reset(r->pub.mem);
        s->free_requests[s->n_free_requests++] = r;
    } else {
        request_destroy(r);
    }
    server_unref(s);
}

bool server_count_body(struct server_request *r, size_t n)
{
    struct http_server *s = r->server;

    if (n > s->config.body_budget || s->body_bytes > s->config.body_budget - n)
        return false;
    s->body_bytes += n;
    r->counted += n;
    return true;
}

void server_uncount_body(struct server_request *r)
{
    r->server->body_bytes -= r->counted;
    r->counted = 0;
}
