/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the HTTP server: bytes in, requests to the handler, one at a time.
 *
 * Usually a request arrives whole.  It is then parsed in the read buffer, copied once into its
 * arena, handled and answered, all inside feed().  The states:
 *
 *              first bytes            head, body incomplete
 *     IDLE ───────────────▶ HEAD ─────────────────────────▶ BODY ──┐
 *      ▲ └──────────────┐    │ whole request                       │ body complete
 *      │  whole request ▼    ▼                                     │
 *      │              WAITING ◀────────────────────────────────────┘
 *      │  answer sent   │  │ http_stream_begin()
 *      ├────────────────┤  ▼
 *      │                │ STREAMING
 *      │                ▼  ▼  http_stream_end()
 *      ├── sent ────── FLUSHING            the kernel has not taken all of the answer yet
 *      │
 *      ├── body gone ─ DISCARDING ◀─ HEAD  refused before its body was read; the body is short
 *      │               LINGERING ◀─ HEAD, BODY  refused, and the connection ends: FIN is sent, and
 *      │                                   further input is discarded, because a reset would
 *      │                                   destroy the answer
 *      └─▶ CLOSED ◀─ all
 *
 * The deadline of each state is in the table below; a new connection begins in HEAD.  Reading stays
 * armed in every state, so a disconnect is noticed at once; it is paused only while at least
 * SERVER_MAX_PIPELINED bytes wait.
 *
 * A client that half-closes (FIN after its request) counts as disconnected while an answer is
 * pending, as in nginx: on the wire the two look the same.  An answer that is already made
 * (FLUSHING) is still delivered. */
#include "http/server.h"
#include "http/server_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define EDGE(state) (1u << SERVER_##state)
#define WAITS_ON(class) (offsetof(struct http_server, class))
#define NO_WAIT 0

static const struct {
    unsigned next;   /* states that may follow; CLOSED always may */
    size_t deadline; /* offset of its deadline class in the server; NO_WAIT: no deadline */
} states[] = {
    [SERVER_IDLE] = {EDGE(HEAD) | EDGE(BODY) | EDGE(WAITING) | EDGE(DISCARDING) | EDGE(LINGERING) |
                         EDGE(FLUSHING) | EDGE(IDLE),
                     WAITS_ON(idle_wait)},
    [SERVER_HEAD] = {EDGE(BODY) | EDGE(WAITING) | EDGE(DISCARDING) | EDGE(LINGERING) |
                         EDGE(FLUSHING) | EDGE(IDLE),
                     WAITS_ON(head_wait)},
    [SERVER_BODY] = {EDGE(WAITING) | EDGE(LINGERING), WAITS_ON(body_wait)},
    [SERVER_WAITING] = {EDGE(STREAMING) | EDGE(FLUSHING) | EDGE(IDLE), NO_WAIT},
    [SERVER_STREAMING] = {EDGE(FLUSHING) | EDGE(IDLE) | EDGE(LINGERING), NO_WAIT},
    [SERVER_FLUSHING] = {EDGE(IDLE), WAITS_ON(write_wait)},
    [SERVER_DISCARDING] = {EDGE(FLUSHING) | EDGE(IDLE), WAITS_ON(discard_wait)},
    [SERVER_LINGERING] = {0, WAITS_ON(discard_wait)},
    [SERVER_CLOSED] = {0, NO_WAIT},
};

/* Every change of state goes through here. */
static void enter(struct server_conn *c, enum server_state to)
{
    size_t wait = states[to].deadline;

    assert(to == SERVER_CLOSED || (states[c->state].next & (1u << to)));
    c->state = to;
    if (wait)
        deadline_set((struct deadline_class *)((char *)c->server + wait), &c->deadline);
    else
        deadline_clear(&c->deadline);
    if (to != SERVER_STREAMING)
        c->patience = c->n_stalls = 0;
    if (to == SERVER_FLUSHING)
        c->bytes_out_seen = conn_bytes_out(c->conn);
}

static void on_later(struct loop_task *task);

static void schedule(struct server_conn *c)
{
    if (c->later_set)
        return;
    c->later_set = true;
    loop_defer(c->server->loop, &c->later);
}

static void give_receipt(struct server_conn *c, bool is_sent)
{
    struct http_receipt *receipt = c->receipt;

    c->receipt = NULL;
    if (receipt)
        receipt->fn(receipt, is_sent);
}

void server_conn_close(struct server_conn *c)
{
    struct server_request *r = c->req;
    bool is_owed = c->state == SERVER_WAITING || c->state == SERVER_STREAMING;

    if (c->state == SERVER_CLOSED)
        return;
    enter(c, SERVER_CLOSED);
    conn_close(c->conn);
    server_conn_gone(c);
    schedule(c);
    give_receipt(c, false);
    if (!r)
        return;
    c->req = NULL;
    r->conn = NULL;
    if (!is_owed) /* no handler has it */
        server_request_free(r);
    else if (r->pub.on_abort)
        r->pub.on_abort(&r->pub);
}

/* Selects the next state after an answer was handed over. */
static void after_answer(struct server_conn *c)
{
    if (unlikely(c->receipt && !conn_queued(c->conn) && !conn_is_broken(c->conn)))
        give_receipt(c, true);
    if (c->lingers) {
        conn_shutdown_write(c->conn);
        enter(c, SERVER_LINGERING);
    } else if (conn_is_broken(c->conn)) {
        server_conn_close(c);
    } else if (c->framing != HTTP_NO_BODY) {
        enter(c, SERVER_DISCARDING);
    } else if (conn_queued(c->conn)) {
        enter(c, SERVER_FLUSHING);
    } else if (c->closes) {
        server_conn_close(c);
    } else {
        c->began_us = 0;
        enter(c, SERVER_IDLE);
        if (c->in.n && !c->is_feeding)
            schedule(c);
    }
}

void server_conn_answered(struct server_conn *c)
{
    struct server_request *r = c->req;

    if (r->pub.on_unsent && (conn_queued(c->conn) || conn_is_broken(c->conn)))
        c->receipt = r->pub.on_unsent(&r->pub);
    c->req = NULL;
    server_request_free(r);
    c->is_mute = false;
    after_answer(c);
}

void server_conn_streams(struct server_conn *c)
{
    enter(c, SERVER_STREAMING);
}

void server_conn_upgraded(struct server_conn *c)
{
    server_conn_streams(c);
    if (c->in.n && !c->is_feeding)
        schedule(c);
}

void server_conn_watch_writing(struct server_conn *c)
{
    if (conn_queued(c->conn) && !deadline_is_set(&c->deadline)) {
        c->bytes_out_seen = conn_bytes_out(c->conn);
        c->n_stalls = 0;
        deadline_set(&c->server->write_wait, &c->deadline);
    }
}

static bool can_discard(const struct server_conn *c, const struct http_head *head)
{
    if (!head->keep_alive || head->expect_continue || c->server->is_draining)
        return false;
    return c->framing != HTTP_LENGTH || c->body_left <= SERVER_MAX_DISCARD;
}

/* Answers before the handler was called.  Frees the request, if any. */
static void refuse(struct server_conn *c, int status, struct str headers, struct str body)
{
    struct server_request *r = c->req;
    struct iovec part = {(char *)body.p, body.n};
    const char *type = r && r->pub.refusal_type ? r->pub.refusal_type : "application/json";
    struct server_answer a = {status, type, headers, &part, body.n ? 1 : 0};
    bool keeps = r && c->state != SERVER_BODY && can_discard(c, r->pub.head);

    c->lingers = c->closes = !keeps;
    c->discarded = 0;
    server_write_answer(c, &a, c->closes);
    c->req = NULL;
    if (r)
        server_request_free(r);
    c->is_mute = false;
    after_answer(c);
}

/* `reason` is a literal of this program: it needs no escaping. */
static void refuse_with(struct server_conn *c, int status, const char *reason)
{
    struct server_request *r = c->req;
    char text[256];
    int n = snprintf(text, sizeof(text), "{\"error\":\"%s\"}", reason);

    assert(n > 0 && (size_t)n < sizeof(text));
    struct str body = r && r->pub.format_refusal ? r->pub.format_refusal(&r->pub, status, reason)
                                                 : str_n(text, (size_t)n);
    refuse(c, status, status == 503 ? STR("Retry-After: 1\r\n") : STR_NONE, body);
}

static void dispatch(struct server_conn *c)
{
    c->framing = HTTP_NO_BODY;
    enter(c, SERVER_WAITING);
    c->server->handler(c->server->arg, &c->req->pub);
}

static struct str moved(struct str s, struct str from, const char *to)
{
    if ((uintptr_t)s.p - (uintptr_t)from.p < from.n)
        s.p = to + (s.p - from.p);
    return s;
}

/* The head was parsed in the read buffer; its spans now move to the arena. */
static void move_spans(struct http_head *h, struct str from, const char *to)
{
    h->method = moved(h->method, from, to);
    h->target = moved(h->target, from, to);
    h->path = moved(h->path, from, to);
    h->query = moved(h->query, from, to);
    h->host = moved(h->host, from, to);
    for (unsigned i = 0; i < h->n_headers; i++) {
        h->headers[i].name = moved(h->headers[i].name, from, to);
        h->headers[i].value = moved(h->headers[i].value, from, to);
    }
}

/* Checks that need only the head.  Returns false when the request was refused. */
static bool passes_checks(struct server_conn *c)
{
    struct http_request *r = &c->req->pub;
    struct str body = STR_NONE;
    int status = c->server->gate ? c->server->gate(c->server->arg, r, &body) : 0;

    if (unlikely(status)) {
        refuse(c, status, STR_NONE, body);
        return false;
    }
    if (unlikely(c->framing == HTTP_LENGTH && c->body_left > c->server->config.max_body)) {
        refuse_with(c, 413, "the body is larger than this server takes; send less");
        return false;
    }
    if (unlikely(http_header_count(r->head, STR("content-encoding")) > 0)) {
        refuse_with(c, 415, "compressed bodies are not taken; send it without Content-Encoding");
        return false;
    }
    return true;
}

/* The head is accepted, but the body is incomplete. */
static void begin_body(struct server_conn *c)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct server_request *r = c->req;
    const struct http_server_config *config = &c->server->config;
    struct iovec part = {(char *)go_on, sizeof(go_on) - 1};

    if (c->framing == HTTP_LENGTH) {
        if (!server_count_body(r, c->body_left)) {
            refuse_with(c, 503, "too many large requests at once; try again in a moment");
            return;
        }
        c->body_to = arena_alloc(r->pub.mem, c->body_left + 1);
    }
    if (r->pub.head->expect_continue && r->pub.head->minor == 1 && !conn_write(c->conn, &part, 1))
        assert(!"the write queue of an answer is unbounded");
    c->body_credit = (int64_t)config->body_min_rate * config->body_grace_ms / 1000;
    enter(c, SERVER_BODY);
}

/* A head of `used` bytes is at the front of `bytes` and was parsed into r->pub.head.  Returns the
 * number of bytes used: the head, and the body if it is complete. */
static size_t accept_head(struct server_conn *c, struct server_request *r, struct str bytes,
                          size_t used)
{
    struct http_head *head = r->pub.head;
    size_t body_n = head->framing == HTTP_LENGTH && head->content_length <= bytes.n - used
                        ? (size_t)head->content_length
                        : 0;
    char *copy = arena_alloc(r->pub.mem, used + body_n + 1);

    memcpy(copy, bytes.p, used + body_n);
    copy[used + body_n] = '\0';
    move_spans(head, str_n(bytes.p, used), copy);
    c->req = r;
    c->framing = head->framing;
    c->body_left = head->content_length;
    c->is_mute = str_eq(head->method, STR("HEAD"));
    c->is_old = head->minor == 0;
    c->closes = !head->keep_alive;
    c->lingers = false;
    c->head_seen = c->head_tried = 0;
    if (c->framing == HTTP_CHUNKED) {
        http_chunks_init(&c->chunks);
        r->has_chunks = true;
    }
    if (!passes_checks(c))
        return used;
    if (c->framing == HTTP_CHUNKED || body_n < (c->framing == HTTP_LENGTH ? c->body_left : 0)) {
        begin_body(c);
        return used;
    }
    if (body_n && !server_count_body(r, body_n)) {
        refuse_with(c, 503, "too many large requests at once; try again in a moment");
        return used;
    }
    r->pub.body = str_n(copy + used, body_n);
    dispatch(c);
    return used + body_n;
}

/* A head that arrives slowly must not be parsed again for every byte.  It is parsed when it ends,
 * when its length has doubled, or when it is too long. */
static bool is_worth_parsing(struct server_conn *c, struct str bytes)
{
    size_t from = c->head_seen > 3 ? c->head_seen - 3 : 0;

    if (!c->head_tried || bytes.n >= 2 * c->head_tried || bytes.n > HTTP_MAX_HEAD)
        return true;
    c->head_seen = bytes.n;
    return memmem(bytes.p + from, bytes.n - from, "\r\n\r\n", 4) != NULL;
}

/* Returns the number of bytes used; 0 when the head is incomplete. */
static size_t take_head(struct server_conn *c, struct str bytes)
{
    struct server_request *r;
    struct http_fault fault;
    size_t used = 0;

    if (!c->began_us)
        c->began_us = loop_now_us(c->server->loop);
    if (!is_worth_parsing(c, bytes))
        return 0;
    r = server_request_new(c);
    switch (http_parse_request(bytes, r->pub.head, &used, &fault)) {
    case HTTP_PARSE_OK:
        return accept_head(c, r, bytes, used);
    case HTTP_PARSE_MORE:
        server_request_free(r);
        c->head_seen = c->head_tried = bytes.n;
        if (c->state == SERVER_IDLE)
            enter(c, SERVER_HEAD);
        return 0;
    default:
        server_request_free(r);
        refuse_with(c, fault.status, fault.reason);
        return bytes.n;
    }
}

static size_t take_sized_body(struct server_conn *c, struct str bytes)
{
    struct server_request *r = c->req;
    size_t n = bytes.n < c->body_left ? bytes.n : (size_t)c->body_left;

    assert(r && c->body_to);
    memcpy(c->body_to, bytes.p, n);
    c->body_to += n;
    c->body_left -= n;
    c->body_credit += (int64_t)n;
    if (c->body_left == 0) {
        *c->body_to = '\0';
        size_t n_body = (size_t)r->pub.head->content_length;
        r->pub.body = str_n(c->body_to - n_body, n_body);
        dispatch(c);
    }
    return n;
}

static size_t take_chunked_body(struct server_conn *c, struct str bytes)
{
    struct server_request *r = c->req;
    struct http_fault fault;
    struct str data;
    size_t used;
    enum http_parse verdict = http_chunks_feed(&c->chunks, bytes, &used, &data, &fault);

    assert(r);
    if (verdict == HTTP_PARSE_BAD) {
        refuse_with(c, fault.status, fault.reason);
        return bytes.n;
    }
    c->body_credit += (int64_t)data.n;
    if (data.n && r->chunked.n + data.n > c->server->config.max_body) {
        refuse_with(c, 413, "the body is larger than this server takes; send less");
        return bytes.n;
    }
    if (data.n && (!server_count_body(r, data.n) || !buf_try_add(&r->chunked, data.p, data.n))) {
        refuse_with(c, 503, "too many large requests at once; try again in a moment");
        return bytes.n;
    }
    if (verdict == HTTP_PARSE_OK) {
        r->pub.body = buf_str(&r->chunked);
        dispatch(c);
    }
    return used;
}

/* Discards the body of a refused request. */
static size_t discard_body(struct server_conn *c, struct str bytes)
{
    struct http_fault fault;
    struct str data;
    size_t used = bytes.n < c->body_left ? bytes.n : (size_t)c->body_left;
    enum http_parse verdict = HTTP_PARSE_MORE;

    if (c->framing == HTTP_CHUNKED) {
        verdict = http_chunks_feed(&c->chunks, bytes, &used, &data, &fault);
    } else {
        c->body_left -= used;
        if (c->body_left == 0)
            verdict = HTTP_PARSE_OK;
    }
    c->discarded += used;
    if (verdict == HTTP_PARSE_BAD || c->discarded > SERVER_MAX_DISCARD) {
        server_conn_close(c);
        return bytes.n;
    }
    if (verdict == HTTP_PARSE_OK) {
        c->framing = HTTP_NO_BODY;
        after_answer(c);
    }
    return used;
}

/* False: the bytes wait for the end of the stream, as a pipelined request. */
static bool is_upgraded(const struct server_conn *c)
{
    return c->state == SERVER_STREAMING && c->req->pub.on_bytes;
}

static size_t linger(struct server_conn *c, struct str bytes)
{
    c->discarded += bytes.n;
    if (c->discarded > SERVER_MAX_DISCARD)
        server_conn_close(c);
    return bytes.n;
}

/* Processes `bytes` as far as the state allows; returns the number of bytes used. */
static size_t feed(struct server_conn *c, struct str bytes)
{
    size_t at = 0;

    c->is_feeding = true;
    while (at < bytes.n) {
        struct str rest = str_n(bytes.p + at, bytes.n - at);
        size_t used = 0;

        if (c->state == SERVER_IDLE || c->state == SERVER_HEAD)
            used = take_head(c, rest);
        else if (c->state == SERVER_BODY)
            used =
                c->framing == HTTP_LENGTH ? take_sized_body(c, rest) : take_chunked_body(c, rest);
        else if (is_upgraded(c)) {
            c->req->pub.on_bytes(&c->req->pub, rest);
            used = rest.n;
        } else if (c->state == SERVER_DISCARDING)
            used = discard_body(c, rest);
        else if (c->state == SERVER_LINGERING)
            used = linger(c, rest);
        else if (c->state == SERVER_CLOSED)
            used = rest.n;
        if (used == 0)
            break;
        at += used;
    }
    c->is_feeding = false;
    return at;
}

/* Called after `in` or the state changed: frees an empty buffer, pauses reading if it is full. */
static void update_reading(struct server_conn *c)
{
    if (c->state == SERVER_CLOSED)
        return;
    if (c->in.n == 0 && c->in.cap)
        buf_release(&c->in);
    conn_pause(c->conn, c->in.n >= SERVER_MAX_PIPELINED);
}

static void advance(struct server_conn *c)
{
    size_t used = feed(c, buf_str(&c->in));

    buf_consume(&c->in, used);
    update_reading(c);
}

static void on_bytes(void *arg, struct str bytes)
{
    struct server_conn *c = arg;
    size_t used;

    if (unlikely(c->in.n)) {
        buf_addstr(&c->in, bytes);
        advance(c);
        return;
    }
    used = feed(c, bytes);
    if (likely(used == bytes.n))
        return;
    buf_add(&c->in, bytes.p + used, bytes.n - used);
    update_reading(c);
}

static void on_later(struct loop_task *task)
{
    struct server_conn *c = container_of(task, struct server_conn, later);

    c->later_set = false;
    if (c->state == SERVER_CLOSED) {
        buf_release(&c->in);
        free(c);
    } else {
        advance(c);
    }
}

static void on_eof(void *arg)
{
    struct server_conn *c = arg;

    if (c->state == SERVER_FLUSHING || (c->state == SERVER_DISCARDING && conn_queued(c->conn))) {
        c->closes = true;
        c->framing = HTTP_NO_BODY;
        if (c->state == SERVER_DISCARDING)
            enter(c, SERVER_FLUSHING);
    } else {
        server_conn_close(c);
    }
}

static void on_drained(void *arg)
{
    struct server_conn *c = arg;

    if (c->state == SERVER_FLUSHING)
        after_answer(c);
    else if (c->state == SERVER_STREAMING)
        server_stream_drained(c);
}

/* Tells a client that used http:// instead of https://, as other servers do. */
static void on_error(void *arg, const struct error *e unused_arg)
{
    struct server_conn *c = arg;

    if (c->is_tls)
        conn_tell_plain_http(c->conn, STR("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                                          "Content-Length: 47\r\nConnection: close\r\n\r\n"
                                          "This port speaks TLS; use https:// in the URL.\n"));
    server_conn_close(c);
}

static const struct conn_events conn_events = {
    .on_bytes = on_bytes, .on_eof = on_eof, .on_drained = on_drained, .on_error = on_error};

/* The sender of a body has a credit of bytes.  Arriving bytes add to the credit, and time drains it
 * at the minimum rate.  So a pause as long as the grace time is allowed, but a trickle is not. */
static void body_tick(struct server_conn *c)
{
    const struct http_server_config *config = &c->server->config;
    int64_t full = (int64_t)config->body_min_rate * config->body_grace_ms / 1000;

    if (c->body_credit > full)
        c->body_credit = full;
    c->body_credit -= (int64_t)config->body_min_rate * c->server->body_tick_ms / 1000;
    if (c->body_credit <= 0)
        refuse_with(c, 408, "the body came too slowly; send it again");
    else
        deadline_set(&c->server->body_wait, &c->deadline);
}

static void on_deadline(struct deadline *d)
{
    struct server_conn *c = container_of(d, struct server_conn, deadline);

    switch (c->state) {
    case SERVER_HEAD:
        if (c->began_us)
            refuse_with(c, 408, "the request head came too slowly; send it again");
        else
            server_conn_close(c);
        break;
    case SERVER_BODY:
        body_tick(c);
        break;
    case SERVER_STREAMING:
    case SERVER_FLUSHING:
        if (conn_bytes_out(c->conn) != c->bytes_out_seen)
            c->n_stalls = 0;
        else if (++c->n_stalls >= c->patience) {
            server_conn_close(c);
            break;
        }
        c->bytes_out_seen = conn_bytes_out(c->conn);
        deadline_set(&c->server->write_wait, d);
        break;
    default:
        server_conn_close(c);
    }
}

void server_conn_new(struct http_server *s, int fd, struct tls_context *tls, bool is_unix,
                     const struct conn_address *peer)
{
    struct server_conn *c = xcalloc_line(sizeof(*c));
    struct ucred who;
    socklen_t len = sizeof(who);

    c->server = s;
    c->is_unix = is_unix;
    c->is_tls = tls != NULL;
    c->peer = *peer;
    c->peer_uid = (unsigned)-1;
    if (is_unix && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0)
        c->peer_uid = who.uid;
    c->later.fn = on_later;
    deadline_init(&c->deadline, on_deadline);
    buf_init_secret(&c->in, 2 * SERVER_MAX_PIPELINED + HTTP_MAX_HEAD);
    list_push(&s->conns, &c->link);
    s->n_open++;
    c->conn = conn_adopt(s->loop, fd, tls, &conn_events, c);
    conn_set_max_queue(c->conn, SIZE_MAX);
    c->state = SERVER_IDLE;
    enter(c, SERVER_HEAD);
}
