/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a pool, and the reading of responses.
 *
 *     dial ─▶ OPENING ─opened─▶ IDLE ─client_conn_send()─▶ HEAD ─final head─▶ BODY
 *                                ▲  ◀──── response complete, and it may be kept ──┘
 *     any ─▶ CLOSED: refused, idle too long, anything odd, or a response that ends the connection
 *
 * A connection has a call in HEAD and BODY, and none in OPENING and IDLE.  A response that arrives
 * in one read is passed on from the loop's scratch buffer.  Otherwise its head is buffered in `in`
 * and its body in the call.
 *
 * Strictness: a byte too many, a byte too few, a redirect, an unrequested content coding or too
 * many interim heads fail the call, and the connection is never used again. */
#include "http/client.h"
#include "http/client_impl.h"

#include <assert.h>
#include <stdlib.h>

static void on_release(struct loop_task *task)
{
    struct client_conn *c = container_of(task, struct client_conn, release);

    buf_release(&c->in);
    free(c);
}

/* Removes the connection from the idle stack and keeps the order.  Usually it is on top. */
static void leave_idle(struct client_conn *c)
{
    struct http_pool *p = c->pool;
    unsigned at = p->n_idle - 1;

    while (p->idle[at] != c)
        at--;
    p->n_idle--;
    memmove(p->idle + at, p->idle + at + 1, (p->n_idle - at) * sizeof(struct client_conn *));
}

void client_conn_close(struct client_conn *c)
{
    if (c->state == CLIENT_CLOSED)
        return;
    assert(!c->call);
    if (c->state == CLIENT_OPENING)
        c->pool->n_opening--;
    else if (c->state == CLIENT_IDLE)
        leave_idle(c);
    c->state = CLIENT_CLOSED;
    c->pool->n_conns--;
    list_remove(&c->link);
    deadline_clear(&c->deadline);
    conn_close(c->conn);
    c->release.fn = on_release;
    loop_defer(c->pool->loop, &c->release);
    if (c->pool->n_waiting && !c->pool->is_over) /* there is room for another connection */
        client_dial_as_needed(c->pool);
}

bool client_conn_has_sent(const struct client_conn *c)
{
    return conn_bytes_out(c->conn) != c->bytes_out_before;
}

static void go_idle(struct client_conn *c)
{
    c->state = CLIENT_IDLE;
    c->pool->idle[c->pool->n_idle++] = c;
    deadline_set(&c->pool->idle_wait, &c->deadline);
    if (unlikely(c->pool->n_waiting))
        client_conn_ready(c);
}

bool client_conn_send(struct client_conn *c, struct http_call *call, const struct iovec *parts,
                      int n)
{
    assert(c->state == CLIENT_IDLE);
    c->bytes_out_before = conn_bytes_out(c->conn);
    if (unlikely(!conn_write(c->conn, parts, n) ||
                 (conn_is_broken(c->conn) && !client_conn_has_sent(c)))) {
        client_conn_close(c);
        return false;
    }
    leave_idle(c);
    c->state = CLIENT_HEAD;
    c->call = call;
    c->n_interim = 0;
    call->conn = c;
    deadline_clear(&c->deadline);
    return true;
}

static void fail(struct client_conn *c, const struct error *err)
{
    client_call_finish(c->call, STR_NONE, err, client_conn_has_sent(c));
}

static void fail_odd(struct client_conn *c, enum err_code code, const char *text)
{
    struct error err;

    error_set(&err, code, "%s", text);
    fail(c, &err);
}

static void fail_too_large(struct client_conn *c)
{
    struct error err;

    error_set(&err, ERR_TOO_LARGE, "its answer is larger than %zu bytes: ask it for less",
              c->pool->config.max_body);
    fail(c, &err);
}

static void fail_framing(struct client_conn *c, const struct http_fault *fault)
{
    struct error err;

    error_set(&err, ERR_UPSTREAM, "the server breaks HTTP, check the proxy in front of it: %s",
              fault->reason);
    fail(c, &err);
}

/* The connection is idle or closed before the user gets the response. */
static void complete(struct client_conn *c, struct str body)
{
    struct http_call *call = c->call;

    c->call = NULL;
    call->conn = NULL;
    if (likely(c->keeps && conn_queued(c->conn) == 0 && !conn_is_broken(c->conn))) {
        conn_pause(c->conn, false);
        go_idle(c);
    } else {
        client_conn_close(c);
    }
    client_call_finish(call, body, NULL, true);
}

/* Buffers `data` of the body.  Returns false when the call has failed. */
static bool gather(struct client_conn *c, struct str data)
{
    if (buf_try_add(&c->call->body, data.p, data.n))
        return true;
    fail_too_large(c);
    return false;
}

/* Streams or buffers `data`.  Returns false when the call has ended. */
static bool take_data(struct client_conn *c, struct str data)
{
    if (data.n == 0)
        return true;
    return c->call->streams ? client_call_body(c->call, data) : gather(c, data);
}

static void take_sized(struct client_conn *c, struct str bytes)
{
    if (bytes.n > c->body_left) {
        fail_odd(c, ERR_UPSTREAM, "the server sent more bytes than it announced: it breaks HTTP");
        return;
    }
    c->body_left -= bytes.n;
    if (!c->call->streams && c->body_left == 0 && c->call->body.n == 0)
        complete(c, bytes);
    else if (take_data(c, bytes) && c->body_left == 0)
        complete(c, buf_str(&c->call->body));
}

/* `held` is the first data of this read.  It is not copied if the body ends with it. */
static void take_chunked(struct client_conn *c, struct str bytes)
{
    struct str held = STR_NONE, data;
    enum http_parse verdict = HTTP_PARSE_MORE;
    struct http_fault fault;

    while (bytes.n && verdict == HTTP_PARSE_MORE) {
        size_t used = 0;
        verdict = http_chunks_feed(&c->chunks, bytes, &used, &data, &fault);
        bytes = str_n(bytes.p + used, bytes.n - used);
        if (verdict == HTTP_PARSE_BAD || data.n == 0)
            continue;
        if (!c->call->streams && !held.p && c->call->body.n == 0) {
            held = data;
            continue;
        }
        if ((held.n && !take_data(c, held)) || !take_data(c, data))
            return;
        held = str_n(data.p, 0);
    }
    if (verdict == HTTP_PARSE_BAD)
        fail_framing(c, &fault);
    else if (verdict == HTTP_PARSE_OK && bytes.n)
        fail_odd(c, ERR_UPSTREAM, "the server sent bytes after its answer: it breaks HTTP");
    else if (verdict == HTTP_PARSE_OK)
        complete(c, held.n ? held : buf_str(&c->call->body));
    else if (held.n && !take_data(c, held))
        return;
}

static void take_body(struct client_conn *c, struct str bytes)
{
    switch (c->framing) {
    case HTTP_LENGTH:
        take_sized(c, bytes);
        break;
    case HTTP_CHUNKED:
        take_chunked(c, bytes);
        break;
    default:
        (void)take_data(c, bytes);
    }
}

/* Returns why this head is not accepted, or NULL. */
static const char *objection(const struct client_conn *c, const struct http_head *h)
{
    struct str coding = http_header_get(h, STR("content-encoding"));

    if (h->status == 101)
        return "the server switched protocols unasked: it breaks HTTP";
    if (h->status < 200)
        return c->n_interim > CLIENT_MAX_INTERIM
                   ? "the server sends interim answers without end: it breaks HTTP"
                   : NULL;
    if (h->status >= 300 && h->status < 400 && h->status != 304)
        return "the server redirects: put the address it redirects to into the configuration";
    if (coding.p && !str_ieq(coding, STR("identity")))
        return "the server compresses its answers unasked: turn that off";
    return NULL;
}

/* Handles the final head.  `rest` holds the bytes that came with it. */
static void take_final_head(struct client_conn *c, const struct http_head *h, struct str rest)
{
    c->framing = h->framing;
    c->body_left = h->content_length;
    c->keeps = h->keep_alive && h->framing != HTTP_UNTIL_CLOSE;
    c->state = CLIENT_BODY;
    if (h->framing == HTTP_CHUNKED)
        http_chunks_init(&c->chunks);
    client_call_head(c->call, h);
    if (!c->call)
        return;
    if (h->framing == HTTP_NO_BODY && rest.n)
        fail_odd(c, ERR_UPSTREAM, "the server sent bytes after its answer: it breaks HTTP");
    else if (h->framing == HTTP_NO_BODY)
        complete(c, STR(""));
    else if (h->framing == HTTP_LENGTH && !c->call->streams &&
             h->content_length > c->pool->config.max_body)
        fail_too_large(c);
    else if (rest.n)
        take_body(c, rest);
}

/* Reads heads from the front of `bytes` and passes the rest on.  Returns the number of bytes
 * used. */
static size_t take_heads(struct client_conn *c, struct str bytes)
{
    struct http_head *h = &c->pool->head;
    struct http_fault fault;
    size_t at = 0, used;

    while (at < bytes.n && c->state == CLIENT_HEAD) {
        struct str rest = str_n(bytes.p + at, bytes.n - at);
        const char *why;

        switch (http_parse_response(rest, c->call->to_head, h, &used, &fault)) {
        case HTTP_PARSE_MORE:
            return at;
        case HTTP_PARSE_BAD:
            fail_framing(c, &fault);
            return bytes.n;
        case HTTP_PARSE_OK:
            break;
        }
        at += used;
        c->n_interim += h->status < 200;
        why = objection(c, h);
        if (why) {
            fail_odd(c, ERR_UPSTREAM, why);
        } else if (h->status >= 200) {
            take_final_head(c, h, str_n(bytes.p + at, bytes.n - at));
            return bytes.n;
        }
    }
    return c->state == CLIENT_HEAD ? at : bytes.n;
}

static void on_bytes(void *arg, struct str bytes)
{
    struct client_conn *c = arg;
    size_t used;

    if (c->state == CLIENT_BODY) {
        take_body(c, bytes);
    } else if (c->state != CLIENT_HEAD) {
        client_conn_close(c); /* bytes without a request */
    } else if (likely(c->in.n == 0)) {
        used = take_heads(c, bytes);
        if (used < bytes.n)
            buf_add(&c->in, bytes.p + used, bytes.n - used);
    } else {
        buf_addstr(&c->in, bytes);
        used = take_heads(c, buf_str(&c->in));
        buf_consume(&c->in, used);
        if (c->in.n == 0)
            buf_release(&c->in);
    }
}

static void on_open(void *arg)
{
    struct client_conn *c = arg;

    struct error err;

    c->pool->n_opening--;
    c->pool->tried_both = false;
    go_idle(c);
    if (unlikely(c->state == CLIENT_CLOSED && c->pool->n_waiting)) {
        error_set(&err, ERR_UNREACHABLE, "the server closes connections at once: look at its log");
        client_dial_failed(c, &err);
    }
}

static void on_eof(void *arg)
{
    struct client_conn *c = arg;

    if (c->state == CLIENT_HEAD)
        fail_odd(c, ERR_UNREACHABLE,
                 "the server closed the connection without an answer: look at its log");
    else if (c->state == CLIENT_BODY && c->framing == HTTP_UNTIL_CLOSE)
        complete(c, buf_str(&c->call->body));
    else if (c->state == CLIENT_BODY)
        fail_odd(c, ERR_UNREACHABLE,
                 "the server closed the connection in the middle of its answer: look at its log");
    else
        client_conn_close(c);
}

static void on_error(void *arg, const struct error *e)
{
    struct client_conn *c = arg;
    struct error err = *e;

    if (c->call) {
        fail(c, &err);
        return;
    }
    if (c->state == CLIENT_OPENING)
        client_dial_failed(c, &err);
    client_conn_close(c);
}

/* The connection broke before the request was sent: retries on another connection. */
static void on_returned(void *arg, struct str request)
{
    struct client_conn *c = arg;
    struct http_call *call = c->call;

    assert(call); /* a connection has one request at a time */
    c->call = NULL;
    call->conn = NULL;
    client_conn_close(c);
    client_call_again(call, request);
}

static const struct conn_events conn_events = {.on_open = on_open,
                                               .on_bytes = on_bytes,
                                               .on_eof = on_eof,
                                               .on_error = on_error,
                                               .on_returned = on_returned};

static void on_deadline(struct deadline *d)
{
    struct client_conn *c = container_of(d, struct client_conn, deadline);
    struct error err;

    if (c->state == CLIENT_OPENING) {
        error_set(&err, ERR_TIMEOUT,
                  "connecting to the server took too long: check that it runs and can be reached");
        client_dial_failed(c, &err);
    }
    client_conn_close(c);
}

void client_conn_dial(struct http_pool *p)
{
    struct client_conn *c = xcalloc_line(sizeof(*c));

    c->pool = p;
    c->state = CLIENT_OPENING;
    c->turn = p->turn;
    deadline_init(&c->deadline, on_deadline);
    buf_init(&c->in, HTTP_MAX_HEAD + LOOP_SCRATCH);
    list_push(&p->conns, &c->link);
    p->n_conns++;
    p->n_opening++;
    c->conn = conn_dial(p->loop, &p->address, p->config.tls, p->name, &conn_events, c);
    conn_set_max_queue(c->conn, SIZE_MAX);
    deadline_set(&p->connect_wait, &c->deadline);
}
