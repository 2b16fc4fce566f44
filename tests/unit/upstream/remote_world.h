/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP upstream and the set that talks to it, on one loop.  What the server says to a method is
 * a row of a table; requests without a row wait for the test to answer them. */
#ifndef HOLDFAST_TESTS_REMOTE_WORLD_H
#define HOLDFAST_TESTS_REMOTE_WORLD_H

#include "peer.h"
#include "process.h"

#include "http/server.h"
#include "http/sse.h"
#include "upstream/upstream.h"

#include <netinet/in.h>

#define MAX_WAITING 320

struct canned {
    const char *method;
    int status;
    const char *member; /* "result" or "error"; NULL: `json` is the whole body */
    const char *json;
    bool once;
};

struct world {
    struct loop *loop;
    struct http_server *server;
    int port;
    struct canned rows[24]; /* the last row of a method counts; method NULL: free */
    struct http_request *waiting[MAX_WAITING];
    unsigned n_waiting, aborted;
    struct buf heard; /* the method of every request, each between blanks; GET and DELETE too */
    struct upstreams *set;
    struct config *config;
    struct upstream *up;
    struct buf said; /* messages that are no responses, each as "about " or "lone ", text, LF */
    unsigned changed[CATALOG_KINDS];
    /* of world_catalog() */
    struct catalog_want want;
    struct catalog *catalog;
    struct error err;
    bool is_done;
};

static inline struct str request_method(const struct http_request *r)
{
    const char *at = memmem(r->body.p, r->body.n, "\"method\":\"", 10);
    if (!at)
        return r->body.n ? STR("response") : r->head->method;
    at += 10;
    struct str rest = str_n(at, r->body.n - (size_t)(at - r->body.p));
    return str_n(at, str_find(rest, '"'));
}

static inline unsigned long long request_id(const struct http_request *r)
{
    const char *at = memmem(r->body.p, r->body.n, "\"id\":", 5);
    return at ? strtoull(at + 5, NULL, 10) : 0;
}

/* What a client of the server sees as the answer to `r`. */
static inline void answer(struct http_request *r, int status, const char *member, const char *json)
{
    struct buf body;
    buf_init(&body, 64 << 20);
    if (member)
        buf_addf(&body, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"%s\":%s}", request_id(r), member, json);
    else
        buf_addz(&body, json);
    bool opens = str_eq(request_method(r), STR("initialize")) && status == 200;
    http_reply(r, status, body.n ? "application/json" : NULL,
               opens ? STR("Mcp-Session-Id: remote-1\r\n") : STR_NONE, buf_str(&body));
    buf_release(&body);
}

static inline void world_forget(struct world *w, const struct http_request *r)
{
    for (unsigned i = 0; i < w->n_waiting; i++)
        if (w->waiting[i] == r) {
            w->waiting[i] = w->waiting[--w->n_waiting];
            return;
        }
}

static inline void on_world_abort(struct http_request *r)
{
    struct world *w = r->user;
    w->aborted++;
    world_forget(w, r);
    http_request_done(r);
}

static inline void on_world_request(void *arg, struct http_request *r)
{
    struct world *w = arg;
    struct str method = request_method(r);
    struct canned *found = NULL;

    buf_addf(&w->heard, " %.*s ", STR_ARG(method));
    for (unsigned i = 0; i < countof(w->rows) && w->rows[i].method; i++)
        if (str_eq(method, str_of(w->rows[i].method)) && w->rows[i].status)
            found = &w->rows[i];
    if (found) {
        struct canned row = *found;
        if (row.once)
            found->status = 0;
        answer(r, row.status, row.member, row.json);
        return;
    }
    assert_true(w->n_waiting < MAX_WAITING);
    w->waiting[w->n_waiting++] = r;
    r->user = w;
    r->on_abort = on_world_abort;
}

static inline int on_world_gate(void *arg, struct http_request *r, struct str *ret_body)
{
    (void)arg;
    (void)r;
    (void)ret_body;
    return 0;
}

static inline void on_world_message(void *arg, struct link *l, struct pending *about,
                                    struct str text)
{
    struct world *w = arg;
    struct arena *mem = arena_new(64u << 20);
    struct mcp_message m;
    struct error err;
    uint64_t id;

    assert_true(mcp_parse_upstream(arena_dup(mem, text), mem, &m, &err));
    if (m.kind == MCP_RESPONSE && mcp_id_ours(m.id, &id) && pending_find(l, id)) {
        struct pending *p = pending_find(l, id);
        pending_take(p);
        p->on_reply(p, &m, mem);
        return;
    }
    if (about && about->on_message && about->on_message(about, &m)) {
        arena_free(mem);
        return;
    }
    buf_addf(&w->said, "%s %.*s\n", about ? "about" : "lone", STR_ARG(text));
    arena_free(mem);
}

static inline void on_world_changed(void *arg, struct upstream *u, enum catalog_kind kind)
{
    struct world *w = arg;
    (void)u;
    w->changed[kind]++;
}

static inline void world_can(struct world *w, struct canned row)
{
    for (unsigned i = 0; i < countof(w->rows); i++)
        if (!w->rows[i].method) {
            w->rows[i] = row;
            return;
        }
    fail_msg("no room for another row");
}

/* Requests of this method wait for the test from now on. */
static inline void world_uncan(struct world *w, const char *method)
{
    for (unsigned i = 0; i < countof(w->rows) && w->rows[i].method; i++)
        if (!strcmp(w->rows[i].method, method))
            w->rows[i].status = 0;
}

/* The rows that a legacy server with these capabilities needs. */
static inline void world_legacy(struct world *w, const char *capabilities)
{
    static char result[4096];
    snprintf(result, sizeof(result),
             "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":%s,\"serverInfo\":{}}",
             capabilities);
    world_can(w, (struct canned){"server/discover", 400, NULL, ""});
    world_can(w, (struct canned){"initialize", 200, "result", result});
    world_can(w, (struct canned){"notifications/initialized", 202, NULL, ""});
    world_can(w, (struct canned){"DELETE", 200, NULL, ""});
    world_can(w, (struct canned){"GET", 405, NULL, ""});
}

static inline void world_modern(struct world *w, const char *capabilities)
{
    static char result[4096];
    snprintf(result, sizeof(result),
             "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":%s,\"resultType\":"
             "\"complete\"}",
             capabilities);
    world_can(w, (struct canned){"server/discover", 200, "result", result});
}

static inline void world_apply(struct world *w, const char *more)
{
    struct config_source source = {.file = STR_NONE};
    struct config *config;
    struct error err;
    char text[1024];

    snprintf(text, sizeof(text),
             "{\"mcpServers\":{\"far\":{\"url\":\"http://127.0.0.1:%d/mcp\"%s}}}", w->port, more);
    if (!config_parse(str_of(text), STR("test.json"), &source, &config, &err))
        fail_msg("%s", err.text);
    upstreams_apply(w->set, config);
    config_unref(w->config);
    w->config = config;
    w->up = upstreams_find(w->set, STR("far"));
    assert_non_null(w->up);
}

/* `more`: further members of the server's entry, each after a comma. */
static inline void world_open(struct world *w, const char *more)
{
    struct conn_address at;
    struct sockaddr_in sa;

    memset(w, 0, sizeof(*w));
    w->loop = loop_new();
    buf_init(&w->heard, 1 << 20);
    buf_init(&w->said, 32 << 20);
    w->server = http_server_new(w->loop, &http_server_defaults, on_world_gate, on_world_request, w);
    http_server_listen(w->server, peer_listen(&at), NULL, false);
    memcpy(&sa, &at.sa, sizeof(sa));
    w->port = ntohs(sa.sin_port);
    struct upstreams_config config = {
        .loop = w->loop,
        .sink = {.on_message = on_world_message, .on_changed = on_world_changed, .arg = w}};
    w->set = upstreams_new(&config);
    world_apply(w, more);
}

static inline void world_close(struct world *w)
{
    catalog_unref(w->catalog);
    upstreams_free(w->set);
    config_unref(w->config);
    http_server_free(w->server);
    loop_free(w->loop);
    buf_release(&w->heard);
    buf_release(&w->said);
}

static inline unsigned buf_count(const struct buf *b, const char *text)
{
    struct peer p = {.in = *b};
    return peer_count(&p, text);
}
/* How many requests of this method came. */
static inline unsigned world_heard(const struct world *w, const char *method)
{
    char text[128];
    snprintf(text, sizeof(text), " %s ", method);
    return buf_count(&w->heard, text);
}

/* A stream as the answer to `r`, and one event on it (absent parts are left out). */
static inline void stream_begin(struct http_request *r)
{
    http_stream_begin(r, 200, "text/event-stream", STR_NONE, 64 << 20);
}
static inline void stream_event(struct http_request *r, const char *id, int retry_ms,
                                const char *data)
{
    struct buf out;
    buf_init(&out, 64 << 20);
    if (retry_ms >= 0)
        sse_write_retry(&out, (uint64_t)retry_ms);
    sse_write(&out, STR_NONE, str_of(id), str_of(data));
    assert_true(http_stream_write(r, buf_str(&out)));
    buf_release(&out);
}
/* The response to the request with this id, as an event. */
static inline void stream_result(struct http_request *r, const char *event_id,
                                 unsigned long long id, const char *result)
{
    char text[512];
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":%s}", id, result);
    stream_event(r, event_id, -1, text);
}
static inline struct str request_header(const struct http_request *r, const char *name)
{
    return http_header_get(r->head, str_of(name));
}

struct world_waiter {
    struct world *w;
    const char *method;
    struct http_request *found;
};
static inline bool world_waits(void *arg)
{
    struct world_waiter *waiter = arg;
    for (unsigned i = 0; i < waiter->w->n_waiting; i++)
        if (str_eq(request_method(waiter->w->waiting[i]), str_of(waiter->method))) {
            waiter->found = waiter->w->waiting[i];
            return true;
        }
    return false;
}
/* The next unanswered request of this method, for the test to answer. */
static inline struct http_request *world_take(struct world *w, const char *method)
{
    struct world_waiter waiter = {.w = w, .method = method};
    if (!wait_for(w->loop, world_waits, &waiter, PEER_WAIT_MS))
        fail_msg("no %s came; heard:%s", method, buf_str(&w->heard).p);
    world_forget(w, waiter.found);
    return waiter.found;
}
/* Turns the loop until *flag is set. */
static inline bool flag_is_set(void *arg)
{
    return *(bool *)arg;
}
static inline void world_until(struct world *w, bool *flag)
{
    if (!wait_for(w->loop, flag_is_set, flag, PEER_WAIT_MS))
        fail_msg("it never happened; heard:%s", buf_str(&w->heard).p);
}

static inline bool world_has_said(void *arg)
{
    struct world_waiter *waiter = arg;
    return buf_count(&waiter->w->said, waiter->method) > 0;
}
/* Turns the loop until a message with this text was handed over. */
static inline void world_until_said(struct world *w, const char *text)
{
    struct world_waiter waiter = {.w = w, .method = text};
    if (!wait_for(w->loop, world_has_said, &waiter, PEER_WAIT_MS))
        fail_msg("nobody said %s; said:\n%s", text, buf_str(&w->said).p);
}
/* Turns the loop for so many milliseconds: for what must not happen. */
static inline bool never(void *arg)
{
    (void)arg;
    return false;
}
static inline void world_pass(struct world *w, int ms)
{
    (void)wait_for(w->loop, never, NULL, ms);
}

static inline void on_world_catalog(struct catalog_want *want, struct catalog *c,
                                    const struct error *err)
{
    struct world *w = container_of(want, struct world, want);
    w->is_done = true;
    w->err = err ? *err : (struct error){0};
    catalog_unref(w->catalog);
    w->catalog = c ? catalog_ref(c) : NULL;
}
/* Asks for a fresh catalog without waiting for it. */
static inline void world_want(struct world *w)
{
    struct catalog *c;
    w->is_done = false;
    w->want.done = on_world_catalog;
    list_init(&w->want.link);
    assert_true(upstream_catalog(w->up, true, &w->want, &c, &w->err));
    if (c)
        on_world_catalog(&w->want, c, NULL);
}
static inline struct catalog *world_catalog(struct world *w)
{
    world_want(w);
    world_until(w, &w->is_done);
    return w->catalog;
}

/* One request of the gateway's own, and what became of it. */
struct asking {
    struct pending pending;
    bool is_done, failed, left;
    struct error err;
    struct buf reply;
    unsigned progress;
};
static inline void on_asking_reply(struct pending *p, struct mcp_message *m, struct arena *mem)
{
    struct asking *a = container_of(p, struct asking, pending);
    a->is_done = true;
    buf_addstr(&a->reply, m->doc.text);
    arena_free(mem);
}
static inline void on_asking_fail(struct pending *p, const struct error *err, bool left)
{
    struct asking *a = container_of(p, struct asking, pending);
    a->is_done = a->failed = true;
    a->err = *err;
    a->left = left;
}
static inline void asking_send(struct asking *a, struct link *l, const char *method)
{
    struct exec token = exec_housekeeping(EXEC_PROBE);
    struct error err;
    char text[512];

    a->is_done = a->failed = false;
    buf_init(&a->reply, 64 << 20);
    a->pending.id = upstream_next_id_for(link_upstream(l));
    a->pending.on_reply = on_asking_reply;
    a->pending.on_fail = on_asking_fail;
    int n = snprintf(text, sizeof(text),
                     "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":{\"name\":"
                     "\"t\"}}",
                     (unsigned long long)a->pending.id, method);
    struct outgoing m = {.method = str_of(method), .text = str_n(text, (size_t)n)};
    assert_true(upstream_send(l, &token, &a->pending, &m, &err));
}

struct linking {
    struct link_wait wait;
    struct link *link;
    bool is_done;
    struct error err;
};
static inline void on_linking(struct link_wait *wait, struct link *l, const struct error *err)
{
    struct linking *k = container_of(wait, struct linking, wait);
    k->is_done = true;
    k->link = l;
    if (err)
        k->err = *err;
}
/* A link of a session whose client opened it with these params (NULL: with ours). */
static inline struct link *world_link(struct world *w, const char *params, struct error *ret_err)
{
    struct link_identity who = {
        .key = STR("s:1"), .owner = STR("default/local"), .initialize_params = str_of(params)};
    struct linking k = {.wait = {.done = on_linking}};
    struct error err;

    assert_true(upstream_link(w->up, &who, &k.wait, &k.link, &err));
    if (!k.link)
        world_until(w, &k.is_done);
    if (ret_err)
        *ret_err = k.err;
    return k.link;
}

#endif
