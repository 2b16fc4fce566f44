/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of one origin: calls use an idle connection, wait for one, or cause a dial.
 *
 * A call is on `waiting` (its bytes copied) until a connection takes it.  It ends in
 * client_call_finish(), or silently when cancelled.  The connection used last is used next, so that
 * surplus connections become idle long enough to be closed.  Each waiting call causes one dial,
 * within max_connections; a dial that fails ends the oldest waiting call.
 *
 * Calls are recycled, but not while one of their callbacks is on the stack. */
#include "http/client.h"
#include "http/client_impl.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT_BUFFER (64 * 1024)     /* a recycled call keeps buffers up to this size */
#define RESOLVED_FOR_MS (10 * 1000) /* a later dial resolves the name again */
#define MAX_CALL_WAITS 16           /* durations kept exactly; further durations are rounded up */
#define HEAD_PARTS 6                /* parts before the body */
#define LENGTH_LINE 48              /* the longest has 40 bytes */

/* Deadlines of one duration; see io/deadline.h. */
struct call_wait {
    struct deadline_class class;
    struct list link;
};

static char *printed(const char *fmt, ...) printf_like(1, 2);
static char *printed(const char *fmt, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        die("out of memory");
    va_end(args);
    return text;
}

struct http_pool *http_pool_new(struct loop *loop, const struct http_pool_config *config)
{
    struct http_pool *p = xcalloc(1, sizeof(*p));
    struct str host = config->host, bare = host;
    bool is_default = config->port == (config->tls ? 443 : 80);
    bool is_v6 = str_find(host, ':') != host.n && host.p[0] != '[';
    char port[8] = "";
    char *line;

    if (host.n >= 2 && host.p[0] == '[')
        bare = str_n(host.p + 1, host.n - 2);
    if (!is_default)
        snprintf(port, sizeof(port), ":%u", config->port);
    p->loop = loop;
    p->config = *config;
    p->name = printed("%.*s", STR_ARG(bare));
    line = printed(" HTTP/1.1\r\nHost: %s%.*s%s%s\r\n", is_v6 ? "[" : "", STR_ARG(host),
                   is_v6 ? "]" : "", port);
    p->line = str_of(line);
    p->config.host = str_of(p->name);
    p->resolved_ms = -1;
    p->is_localhost = str_ieq(bare, STR("localhost"));
    p->idle = xcalloc(config->max_connections, sizeof(*p->idle));
    list_init(&p->conns);
    list_init(&p->waiting);
    list_init(&p->call_waits);
    deadline_class_init(&p->connect_wait, loop, config->connect_ms);
    deadline_class_init(&p->idle_wait, loop, config->idle_ms);
    return p;
}

static void call_free(struct http_call *call)
{
    buf_release(&call->request);
    buf_release(&call->body);
    free(call);
}

static void on_release(struct loop_task *task)
{
    struct http_pool *p = container_of(task, struct http_pool, release);
    struct list *first;

    while (p->n_free_calls)
        call_free(p->free_calls[--p->n_free_calls]);
    while ((first = list_pop(&p->call_waits)))
        free(list_entry(first, struct call_wait, link));
    free((char *)p->line.p);
    free(p->name);
    free(p->idle);
    free(p);
}

void http_pool_free(struct http_pool *p)
{
    struct error err;
    struct list *first;

    if (!p)
        return;
    p->is_over = true;
    error_set(&err, ERR_CANCELLED,
              "the call was ended because Holdfast is stopping or the server was removed from the "
              "configuration");
    list_each(&p->conns, it)
    {
        struct client_conn *c = list_entry(it, struct client_conn, link);
        if (!c->call)
            client_conn_close(c);
    }
    while ((first = list_first(&p->conns))) { /* closed together with its call */
        struct client_conn *c = list_entry(first, struct client_conn, link);
        client_call_finish(c->call, STR_NONE, &err, client_conn_has_sent(c));
    }
    while ((first = list_first(&p->waiting)))
        client_call_finish(list_entry(first, struct http_call, link), STR_NONE, &err, false);
    address_resolve_cancel(p->lookup);
    deadline_class_release(&p->connect_wait);
    deadline_class_release(&p->idle_wait);
    list_each(&p->call_waits, it)
        deadline_class_release(&list_entry(it, struct call_wait, link)->class);
    p->release.fn = on_release;
    loop_defer(p->loop, &p->release);
}

/* Beyond MAX_CALL_WAITS durations, further durations are rounded up to an eighth of their power of
 * two. */
static struct deadline_class *wait_for(struct http_pool *p, int64_t ms)
{
    struct call_wait *w;
    unsigned n = 0;

    for (int round = 0; round < 2; round++) {
        list_each(&p->call_waits, it)
        {
            w = list_entry(it, struct call_wait, link);
            n++;
            if (w->class.ms == ms)
                return &w->class;
        }
        if (round == 0 && n >= MAX_CALL_WAITS && ms > 8) {
            int64_t step = (int64_t)1 << (60 - __builtin_clzll((unsigned long long)ms));
            ms = (ms + step - 1) / step * step;
        } else {
            break;
        }
    }
    w = xcalloc(1, sizeof(*w));
    deadline_class_init(&w->class, p->loop, ms);
    list_push(&p->call_waits, &w->link);
    return &w->class;
}

static void reset_buffer(struct buf *b)
{
    if (b->cap > KEPT_BUFFER)
        buf_release(b);
    else
        buf_reset(b);
}

static void recycle(struct http_call *call)
{
    struct http_pool *p = call->pool;

    if (call->later_set) /* on_call_later() will run and recycle it */
        return;
    free(call->err);
    call->err = NULL;
    if (p->n_free_calls >= CLIENT_MAX_FREE_CALLS) {
        call_free(call);
        return;
    }
    reset_buffer(&call->body); /* `request` was reset when the call left the queue */
    p->free_calls[p->n_free_calls++] = call;
}

/* Removes the call from the queue, or from its connection, which is closed. */
static void detach(struct http_call *call)
{
    struct client_conn *c = call->conn;

    deadline_clear(&call->deadline);
    if (c) {
        call->conn = NULL;
        c->call = NULL;
        client_conn_close(c);
    } else {
        list_remove(&call->link);
        call->pool->n_waiting--;
        reset_buffer(&call->request);
    }
}

static void end_callback(struct http_call *call)
{
    if (--call->depth == 0 && call->is_over)
        recycle(call);
}

/* Detaches the call before on_done, because on_done may start the next call or free the pool. */
void client_call_finish(struct http_call *call, struct str body, const struct error *err, bool sent)
{
    if (call->is_over)
        return;
    call->is_over = true;
    if (call->conn || !list_empty(&call->link))
        detach(call);
    deadline_clear(&call->deadline);
    call->depth++;
    call->events->on_done(call->arg, body, err, sent);
    end_callback(call);
}

void client_call_drop(struct http_call *call)
{
    if (call->is_over)
        return;
    call->is_over = true;
    detach(call);
    if (call->depth == 0)
        recycle(call);
}

bool client_call_head(struct http_call *call, const struct http_head *head)
{
    bool streams;

    call->depth++;
    streams = call->events->on_head && call->events->on_head(call->arg, head);
    if (!call->is_over)
        call->streams = streams;
    end_callback(call);
    return streams;
}

bool client_call_body(struct http_call *call, struct str bytes)
{
    bool goes_on;

    call->depth++;
    goes_on = call->events->on_body(call->arg, bytes);
    if (!goes_on && !call->is_over) {
        call->is_over = true;
        detach(call);
    }
    goes_on = !call->is_over;
    end_callback(call);
    return goes_on;
}

void http_call_cancel(struct http_call *call)
{
    if (call)
        client_call_drop(call);
}

void http_call_within(struct http_call *call, int64_t ms)
{
    if (call->is_over)
        return;
    deadline_set(wait_for(call->pool, ms), &call->deadline);
}

void http_call_pause(struct http_call *call, bool paused)
{
    if (call->conn && !call->is_over)
        conn_pause(call->conn->conn, paused);
}

static void on_call_due(struct deadline *d)
{
    struct http_call *call = container_of(d, struct http_call, deadline);
    bool sent = call->conn && client_conn_has_sent(call->conn);
    struct error err;

    error_set(&err, ERR_TIMEOUT,
              call->conn ? "the server did not answer in time: look at its load and its log"
                         : "no connection to the server became free in time: look at its load");
    client_call_finish(call, STR_NONE, &err, sent);
}

static void on_call_later(struct loop_task *task)
{
    struct http_call *call = container_of(task, struct http_call, later);

    call->later_set = false;
    if (call->is_over)
        recycle(call);
    else
        client_call_finish(call, STR_NONE, call->err, false);
}

/* For failures before http_call_start() has returned. */
static void fail_later(struct http_call *call, enum err_code code, const char *text)
{
    call->err = xmalloc(sizeof(*call->err));
    error_set(call->err, code, "%s", text);
    call->later_set = true;
    loop_defer(call->pool->loop, &call->later);
}

static struct http_call *call_new(struct http_pool *p)
{
    struct http_call *call;

    if (likely(p->n_free_calls)) {
        call = p->free_calls[--p->n_free_calls];
    } else {
        call = xcalloc_line(sizeof(*call));
        call->pool = p;
        call->later.fn = on_call_later;
        list_init(&call->link);
        deadline_init(&call->deadline, on_call_due);
        buf_init_secret(&call->request, SIZE_MAX);
        buf_init(&call->body, p->config.max_body);
    }
    call->conn = NULL;
    call->streams = call->is_over = false;
    call->depth = 0;
    return call;
}

/* Runs the call on an idle connection.  Returns false when no idle connection works. */
static bool send_now(struct http_call *call, const struct iovec *parts, int n)
{
    struct http_pool *p = call->pool;

    while (p->n_idle) /* a broken connection removes itself from the stack */
        if (likely(client_conn_send(p->idle[p->n_idle - 1], call, parts, n)))
            return true;
    return false;
}

static void wait_for_connection(struct http_call *call, const struct iovec *parts, int n)
{
    struct http_pool *p = call->pool;

    list_push(&p->waiting, &call->link);
    p->n_waiting++;
    if (p->n_waiting > CLIENT_MAX_WAITING || p->is_over) {
        fail_later(call, ERR_UNAVAILABLE,
                   "too many calls wait for this server already: try again later");
        return;
    }
    for (int i = 0; i < n; i++)
        buf_add(&call->request, parts[i].iov_base, parts[i].iov_len);
    client_dial_as_needed(p);
}

void client_call_again(struct http_call *call, struct str request)
{
    const struct iovec part = {(char *)request.p, request.n};

    if (!send_now(call, &part, 1))
        wait_for_connection(call, &part, 1);
}

static bool is_clean(struct str target)
{
    for (size_t i = 0; i < target.n; i++)
        if ((unsigned char)target.p[i] <= 0x20 || (unsigned char)target.p[i] >= 0x7f)
            return false;
    return target.n > 0;
}

static bool may_lack_length(const char *method)
{
    return strcmp(method, "POST") != 0 && strcmp(method, "PUT") != 0 &&
           strcmp(method, "PATCH") != 0;
}

/* Writes "Content-Length: …" and the end of the head, from the end backwards. */
static struct iovec length_line(char room[LENGTH_LINE], uint64_t value)
{
    static const char name[] = "Content-Length: ";
    char *end = room + LENGTH_LINE, *at = end;

    at = memcpy(at - 4, "\r\n\r\n", 4);
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    at = memcpy(at - (sizeof(name) - 1), name, sizeof(name) - 1);
    return (struct iovec){at, (size_t)(end - at)};
}

struct http_call *http_call_start(struct http_pool *p, const char *method, struct str target,
                                  struct str head_lines, const struct iovec *body, int n_body,
                                  int64_t deadline_ms, const struct http_call_events *events,
                                  void *arg)
{
    struct http_call *call = call_new(p);
    struct iovec parts[CONN_MAX_PARTS];
    char length[LENGTH_LINE];
    uint64_t total = 0;
    bool has_length;
    int n = 0;

    assert(n_body + HEAD_PARTS <= CONN_MAX_PARTS);
    for (int i = 0; i < n_body; i++)
        total += body[i].iov_len;
    has_length = total || !may_lack_length(method);
    parts[n++] = (struct iovec){(char *)method, strlen(method)};
    parts[n++] = (struct iovec){(char *)" ", 1};
    parts[n++] = (struct iovec){(char *)target.p, target.n};
    parts[n++] = (struct iovec){(char *)p->line.p, p->line.n};
    if (head_lines.n)
        parts[n++] = (struct iovec){(char *)head_lines.p, head_lines.n};
    if (has_length)
        parts[n++] = length_line(length, total);
    else
        parts[n++] = (struct iovec){(char *)"\r\n", 2};
    for (int i = 0; i < n_body; i++)
        parts[n++] = body[i];

    call->events = events;
    call->arg = arg;
    call->to_head = strcmp(method, "HEAD") == 0;
    if (deadline_ms > 0)
        deadline_set(wait_for(p, deadline_ms), &call->deadline);
    if (unlikely(!is_clean(target))) {
        list_push(&p->waiting, &call->link);
        p->n_waiting++;
        fail_later(call, ERR_BAD_INPUT,
                   "a request target has printable ASCII only: percent-encode the rest");
    } else if (!send_now(call, parts, n)) {
        wait_for_connection(call, parts, n);
    }
    return call;
}

void client_conn_ready(struct client_conn *c)
{
    struct http_pool *p = c->pool;

    list_each(&p->waiting, it)
    {
        struct http_call *call = list_entry(it, struct http_call, link);
        struct iovec part = {call->request.p, call->request.n};

        if (call->later_set)
            continue;
        list_remove(&call->link);
        p->n_waiting--;
        if (client_conn_send(c, call, &part, 1)) {
            reset_buffer(&call->request);
            return;
        }
        list_push_front(&p->waiting, &call->link);
        p->n_waiting++;
        client_dial_as_needed(p);
        return;
    }
}

/* Fails the oldest waiting call. */
static void fail_oldest(struct http_pool *p, const struct error *err)
{
    list_each(&p->waiting, it)
    {
        struct http_call *call = list_entry(it, struct http_call, link);
        if (call->later_set)
            continue;
        client_call_finish(call, STR_NONE, err, false);
        return;
    }
}

/* Servers on localhost listen on one of two addresses.  The other address is tried before a call
 * fails, unless the connection was made and TLS failed. */
static bool has_other_address(struct http_pool *p, const struct client_conn *c)
{
    if (!p->is_localhost || conn_is_reached(c->conn))
        return false;
    if (c->turn == p->turn && p->tried_both)
        return false;
    if (c->turn == p->turn) {
        p->tried_both = true;
        p->turn++;
        p->resolved_ms = -1;
    }
    return true;
}

void client_dial_failed(struct client_conn *c, const struct error *err)
{
    if (!has_other_address(c->pool, c))
        fail_oldest(c->pool, err);
}

static void on_resolved(void *arg, const struct conn_address *a, const struct error *e)
{
    struct http_pool *p = arg;
    unsigned n = p->n_waiting;

    p->lookup = NULL;
    if (a) {
        p->address = *a;
        p->resolved_ms = loop_now_ms(p->loop);
        client_dial_as_needed(p);
        return;
    }
    while (n-- && !p->is_over)
        fail_oldest(p, e);
}

/* Returns true when `address` may be dialled; else a lookup is in progress. */
static bool has_address(struct http_pool *p)
{
    struct error err;
    char text[300];

    if (p->resolved_ms < 0) {
        const char *name = p->is_localhost ? (p->turn % 2 ? "::1" : "127.0.0.1") : p->name;
        snprintf(text, sizeof(text), strchr(name, ':') ? "[%.253s]:%u" : "%.253s:%u", name,
                 p->config.port);
        if (address_parse(str_of(text), &p->address, &err))
            p->resolved_ms = 0;
    }
    if (p->resolved_ms == 0 ||
        (p->resolved_ms > 0 && loop_now_ms(p->loop) - p->resolved_ms < RESOLVED_FOR_MS))
        return true;
    if (!p->lookup)
        p->lookup = address_resolve(p->loop, str_of(p->name), p->config.port, on_resolved, p);
    return false;
}

void client_dial_as_needed(struct http_pool *p)
{
    while (p->n_opening < p->n_waiting && p->n_conns < p->config.max_connections && has_address(p))
        client_conn_dial(p);
}
