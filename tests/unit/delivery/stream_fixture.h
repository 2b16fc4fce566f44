/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on a real loop and HTTP server; the client is scripted.  "/post?t=N&id=ID" attaches a new
 * stream of transport N for request ID, "/get?t=N" opens or resumes, as a front would. */
#ifndef HOLDFAST_TESTS_STREAM_FIXTURE_H
#define HOLDFAST_TESTS_STREAM_FIXTURE_H

#include "peer.h"

#include "base/clock.h"
#include "delivery/stream_impl.h"
#include "http/sse.h"
#include "io/deadline.h"

#define MAX_TRANSPORTS 300
#define WALL INT64_C(1700000000000)

struct fixture {
    struct loop *loop;
    struct http_server *server;
    struct conn_address at;
    struct sessions *sessions;
    struct streams *streams;
    struct transport *transports[MAX_TRANSPORTS];
    struct stream *post[64]; /* in order of arrival; our reference */
    unsigned n_post, n_gone, n_aborted, n_answered;
    struct http_request *held; /* the request behind the last stream attached */
    enum err_code last_err;
};

static inline void fixture_on_gone(void *arg, bool aborted)
{
    struct fixture *f = arg;
    f->n_gone++;
    f->n_aborted += aborted;
    if (aborted)
        http_request_done(f->held);
}

static inline struct transport *fixture_transport(struct fixture *f, unsigned n)
{
    struct transport_row row = {.tenant = STR("default"),
                                .owner = STR("local"),
                                .endpoint = STR("/mcp"),
                                .protocol_version = n % 2 ? STR("2025-11-25") : STR("2025-06-18"),
                                .initialize_params = STR("{}"),
                                .last_used_ms = WALL};
    memset(row.id_hash, 1 + (int)n % 250, sizeof(row.id_hash));
    row.id_hash[0] = (uint8_t)(n >> 8);
    row.id_hash[1] = (uint8_t)n;
    if (!f->transports[n])
        f->transports[n] = transport_new(f->sessions, &row);
    return f->transports[n];
}

static inline void fixture_handle(void *arg, struct http_request *r)
{
    struct fixture *f = arg;
    struct str last = http_header_get(r->head, STR("last-event-id"));
    uint64_t n = 0;
    struct error err;
    struct transport *t;
    bool ok;

    assert_true(str_to_u64(http_query_get(r->head->query, STR("t"), NULL), MAX_TRANSPORTS - 1, &n));
    t = fixture_transport(f, (unsigned)n);
    if (str_eq(r->head->path, STR("/post"))) {
        char id[128];
        int id_n = http_percent_decode(http_query_get(r->head->query, STR("id"), NULL), id, false);
        struct stream *st = stream_new(f->streams, t, str_n(id, (size_t)id_n));
        f->held = r;
        f->post[f->n_post++] = st;
        stream_attach(st, r);
        stream_on_gone(st, fixture_on_gone, f);
        return;
    }
    ok = last.p ? streams_resume(f->streams, t, last, r, &err)
                : streams_open(f->streams, t, r, &err);
    f->n_answered++;
    f->last_err = ok ? ERR_NONE : err.code;
    if (!ok)
        http_reply(r, error_info(err.code)->http_status, "text/plain", STR_NONE, STR("refused"));
}

static inline void fixture_streams(struct fixture *f, int64_t writer)
{
    struct streams_config config = {.loop = f->loop, .writer = writer, .key = {7}};
    f->streams = streams_new(&config);
}

static inline void setup(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    clock_set_fake(WALL, 1000000);
    f->loop = loop_new();
    struct sessions_config config = {.node = STR("test"), .writer = 1, .max_resident = 1000};
    f->sessions = sessions_new(&config);
    fixture_streams(f, 1);
    f->server = http_server_new(f->loop, &http_server_defaults, NULL, fixture_handle, f);
    http_server_listen(f->server, peer_listen(&f->at), NULL, false);
}

static inline void teardown(struct fixture *f)
{
    for (unsigned i = 0; i < f->n_post; i++)
        stream_unref(f->post[i]);
    for (unsigned i = 0; i < MAX_TRANSPORTS; i++)
        transport_unref(f->transports[i]);
    streams_free(f->streams);
    http_server_free(f->server);
    sessions_free(f->sessions);
    loop_free(f->loop);
    clock_set_real();
}

/* A client's connection and the events that came on it. */
struct client {
    struct peer p;
    struct buf body; /* de-chunked */
};

static inline void client_ask(struct fixture *f, struct client *c, const char *method,
                              const char *target, const char *last_event_id)
{
    char head[512];
    peer_dial(&c->p, f->loop, &f->at);
    buf_init(&c->body, 64 * 1024 * 1024);
    snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: x\r\n%s%s%s\r\n", method, target,
             last_event_id ? "Last-Event-ID: " : "", last_event_id ? last_event_id : "",
             last_event_id ? "\r\n" : "");
    peer_say(&c->p, head);
}

static inline void client_close(struct client *c)
{
    peer_close(&c->p);
    buf_release(&c->body);
}

/* What came so far, without head and chunk sizes; true when the last chunk is there. */
static inline bool client_read(struct client *c)
{
    struct http_chunks chunks;
    struct http_fault fault;
    struct str in = buf_str(&c->p.in), data;
    const char *end = memmem(in.p, in.n, "\r\n\r\n", 4);
    size_t used;
    enum http_parse verdict = HTTP_PARSE_MORE;

    buf_reset(&c->body);
    if (!end)
        return false;
    in = str_n(end + 4, in.n - (size_t)(end + 4 - in.p));
    http_chunks_init(&chunks);
    while (in.n && verdict == HTTP_PARSE_MORE) {
        verdict = http_chunks_feed(&chunks, in, &used, &data, &fault);
        assert_int_not_equal(verdict, HTTP_PARSE_BAD);
        buf_addstr(&c->body, data);
        in = str_n(in.p + used, in.n - used);
    }
    return verdict == HTTP_PARSE_OK;
}

static inline void client_wait(struct client *c, const char *text)
{
    client_read(c);
    while (!memmem(buf_str(&c->body).p, c->body.n, text, strlen(text))) {
        if (c->p.eof || c->p.broken)
            fail_msg("the stream ended before '%s'; it said '%.*s'", text,
                     STR_ARG(buf_str(&c->body)));
        loop_turn(c->p.loop);
        client_read(c);
    }
}

/* Until the answer is whole. */
static inline void client_wait_end(struct client *c)
{
    while (!client_read(c)) {
        if (c->p.eof || c->p.broken)
            fail_msg("the connection broke off; it said '%.*s'", STR_ARG(buf_str(&c->p.in)));
        loop_turn(c->p.loop);
    }
}

struct seen {
    unsigned n;
    char id[1200][STREAM_ID_TEXT];
    char data[1200][200]; /* the beginning of it */
    bool has_id[1200];
};

static inline bool seen_add(void *arg, const struct sse_event *e)
{
    struct seen *s = arg;
    assert_true(s->n < 1200);
    s->has_id[s->n] = e->id.p != NULL;
    snprintf(s->id[s->n], sizeof(s->id[0]), "%.*s", STR_ARG(e->id));
    snprintf(s->data[s->n], sizeof(s->data[0]), "%.*s", STR_ARG(e->data));
    s->n++;
    return true;
}

/* Every event of the body; the caller frees. */
static inline struct seen *client_events(struct client *c)
{
    struct seen *s = calloc(1, sizeof(*s));
    struct sse_reader reader;
    client_read(c);
    sse_reader_init(&reader, 64 * 1024 * 1024);
    assert_true(sse_feed(&reader, buf_str(&c->body), seen_add, s));
    sse_reader_release(&reader);
    return s;
}

static inline void sweep_on_due(struct deadline *d)
{
    d->due_ms = -1;
}

/* Turns the loop until every deadline that is due was acted upon. */
static inline void sweep(struct fixture *f)
{
    struct deadline_class class;
    struct deadline mine;

    deadline_class_init(&class, f->loop, 0);
    deadline_init(&mine, sweep_on_due);
    for (int i = 0; i < 2; i++) { /* whatever the order within one sweep */
        deadline_set(&class, &mine);
        while (mine.due_ms >= 0)
            loop_turn(f->loop);
    }
    deadline_class_release(&class);
}

static inline void wait_posts(struct fixture *f, unsigned n)
{
    while (f->n_post < n)
        loop_turn(f->loop);
}

#endif
