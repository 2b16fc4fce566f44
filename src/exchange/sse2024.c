/* SPDX-License-Identifier: Apache-2.0 */
/* The 2024 front.
 *
 *   GET /sse ──> event: endpoint, data: /mcp/messages?session_id=X
 *   POST /mcp/messages?session_id=X ──┬── X is an open stream of this principal: 202, and the
 *                                     │   answer is an event of that stream (client_channel.c)
 *                                     └── else it is POST /mcp, and X any name for a session
 *
 * The stream's initialize gives its transport the id X, so X works like any transport id after the
 * stream has ended.  A slow reader loses logs from 128 KiB behind, and its stream from 256 KiB.
 * When a stream ends, its calls go on, but their answers are not delivered. */
#include "exchange/sse2024.h"

#include "base/log.h"
#include "exchange/client_channel.h"
#include "http/sse.h"
#include "identity/scopes.h"
#include "io/deadline.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_EVENT (128u * 1024 * 1024)
#define MESSAGES "/mcp/messages?session_id="

struct sse2024 {
    struct services *sv;
    struct map by_id;
    struct list open;
    unsigned n;
    struct deadline_class quiet;
};

struct sse_stream {
    struct sse2024 *home; /* NULL once r is NULL */
    struct loop *loop;
    struct list node;
    struct http_request *r; /* NULL: the client is gone */
    struct client_channel channel;
    struct identity_watch watch;
    struct arena *mem;
    char id[TRANSPORT_ID_LENGTH + 1];
    bool ending; /* ends after its last answer */
    bool full;   /* a write failed: no more writes */
    bool slim;   /* its request's memory was released, as the stream may idle for long */
    struct deadline quiet;
    bool scheduled;
    struct loop_task later;
};

static void schedule(struct sse_stream *s)
{
    if (s->scheduled)
        return;
    s->scheduled = true;
    loop_defer(s->loop, &s->later);
}

static void write_bytes(struct sse_stream *s, struct str bytes)
{
    if (!s->r || s->full)
        return;
    if (!http_stream_write(s->r, bytes)) {
        log_info("an event stream is closed: its client does not read");
        s->full = true;
        schedule(s);
    }
    deadline_set(&s->home->quiet, &s->quiet);
}

static void write_event(struct sse_stream *s, struct str type, struct str data)
{
    struct buf event;
    buf_init(&event, MAX_EVENT);
    sse_write(&event, type, STR_NONE, data);
    write_bytes(s, buf_str(&event));
    buf_release(&event);
}

static void on_write(struct client_channel *c, struct str json)
{
    write_event(container_of(c, struct sse_stream, channel), STR("message"), json);
}

static bool is_slow(const struct client_channel *c)
{
    const struct sse_stream *s = container_of(c, const struct sse_stream, channel);
    return s->r && http_stream_queued(s->r) > SSE2024_MAX_QUEUE / 2;
}

static void on_done(struct client_channel *c)
{
    schedule(container_of(c, struct sse_stream, channel));
}

static void on_quiet(struct deadline *d)
{
    struct sse_stream *s = container_of(d, struct sse_stream, quiet);
    struct buf comment;

    buf_init(&comment, 64);
    sse_write_comment(&comment, STR("keep-alive"));
    if (http_stream_queued(s->r) == 0)
        write_bytes(s, buf_str(&comment));
    deadline_set(&s->home->quiet, &s->quiet);
    buf_release(&comment);
}

/* Forgets the connection.  The caller ends or has ended it. */
static void forget(struct sse_stream *s)
{
    struct sse2024 *home = s->home;

    s->r = NULL;
    s->home = NULL;
    deadline_clear(&s->quiet);
    identity_unwatch(&s->watch);
    map_remove(&home->by_id, str_of(s->id));
    list_remove(&s->node);
    home->n--;
    client_channel_close(&s->channel);
    schedule(s);
}

static void on_abort(struct http_request *r)
{
    forget(r->user);
    http_request_done(r);
}

/* Its calls go on to their end, but their answers are dropped. */
static void on_revoked(struct identity_watch *w)
{
    struct sse_stream *s = container_of(w, struct sse_stream, watch);
    struct http_request *r = s->r;

    forget(s);
    http_stream_end(r);
}

static void on_later(struct loop_task *task)
{
    struct sse_stream *s = container_of(task, struct sse_stream, later);
    struct http_request *r = s->r;

    s->scheduled = false;
    if (r && s->full) {
        forget(s);
        http_stream_abort(r);
    } else if (r && s->ending && s->channel.n == 0) {
        forget(s);
        http_stream_end(r);
    } else if (!r && s->channel.n == 0) {
        arena_free(s->mem);
        free(s);
    } else if (r && !s->slim) {
        s->slim = true;
        http_stream_slim(r);
    }
}

static struct sse_stream *begin_stream(struct sse2024 *all, const struct principal *who)
{
    struct sse_stream *s = xcalloc(1, sizeof(*s));

    s->home = all;
    s->loop = all->sv->loop;
    s->mem = arena_new(64 * 1024);
    s->later.fn = on_later;
    token_transport_id(s->id);
    deadline_init(&s->quiet, on_quiet);
    s->channel = (struct client_channel){
        .sv = all->sv,
        .who = principal_dup(who, s->mem),
        .endpoint = STR("/mcp"),
        .name = str_of(s->id),
        .transport_id = s->id,
        .is_2024 = true,
        .write = on_write,
        .is_slow = is_slow,
        .on_done = on_done,
    };
    client_channel_open(&s->channel);
    s->watch.on_revoked = on_revoked;
    identity_watch(all->sv->front->identity, &s->watch, who);
    map_put(&all->by_id, str_of(s->id), s);
    list_push(&all->open, &s->node);
    all->n++;
    return s;
}

/* Refuses a GET: the error has no request id. */
static void refuse(struct http_request *r, int status, int code, struct str headers,
                   const char *text)
{
    struct buf body;

    buf_init(&body, 4096);
    buf_addf(&body, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":%d,\"message\":", code);
    js_quote(&body, str_of(text));
    buf_addz(&body, "}}");
    http_reply(r, status, "application/json", headers, buf_str(&body));
    buf_release(&body);
}

void sse2024_refuse(void *arg unused_arg, struct http_request *r, struct caller *c unused_arg,
                    const struct refusal *why)
{
    const struct error_info *info = error_info(why->code);

    refuse(r, info->http_status, info->jsonrpc, why->headers, why->text);
}

/* Counts the open streams of the owner and of its tenant.  Streams are few and opened seldom. */
static bool is_over_share(struct sse2024 *all, struct http_request *r, const struct principal *who)
{
    unsigned of_owner = 0, of_tenant = 0;
    struct str text;

    list_each(&all->open, it)
    {
        const struct sse_stream *s = list_entry(it, struct sse_stream, node);
        of_tenant += str_eq(s->channel.who.tenant, who->tenant);
        of_owner += principal_owns(who, s->channel.who.tenant, s->channel.who.owner);
    }
    if (of_owner < SSE2024_MAX_OF_OWNER && of_tenant < SSE2024_MAX_OF_TENANT)
        return false;
    text = arena_printf(r->mem,
                        "%u event streams of GET /sse are open for this %s, which is the most; "
                        "close those that are not used, or connect to /mcp instead, which answers "
                        "without an open stream",
                        of_owner < SSE2024_MAX_OF_OWNER ? of_tenant : of_owner,
                        of_owner < SSE2024_MAX_OF_OWNER ? "tenant" : "key or user");
    refuse(r, 429, -32000, STR("Retry-After: 1\r\n"), text.p);
    return true;
}

void sse2024_open(void *arg, struct http_request *r, struct caller *caller)
{
    struct sse2024 *all = ((struct services *)arg)->sse2024;
    const char *why = exchange_client_refusal(caller->config->client_id_required, r->head);
    const struct principal *who = &caller->who;
    struct sse_stream *s;
    char endpoint[sizeof(MESSAGES) + TRANSPORT_ID_LENGTH];

    if (why) {
        refuse(r, 400, -32600, STR_NONE, why);
        return;
    }
    if (!http_takes_events(r->head, true)) {
        refuse(r, 406, -32000, STR_NONE, "GET gives text/event-stream; accept that");
        return;
    }
    if (all->sv->front->draining || all->n >= SSE2024_MAX_STREAMS) {
        refuse(r, 503, -32000, STR("Retry-After: 1\r\n"),
               all->sv->front->draining
                   ? "Holdfast is stopping; try again in a moment"
                   : "too many event streams are open; close one that is not used");
        return;
    }
    if (is_over_share(all, r, who))
        return;
    s = begin_stream(all, who);
    s->r = r;
    r->user = s;
    r->on_abort = on_abort;
    http_stream_begin(r, 200, "text/event-stream", HTTP_EVENT_STREAM_LINES, SSE2024_MAX_QUEUE);
    snprintf(endpoint, sizeof(endpoint), MESSAGES "%s", s->id);
    write_event(s, STR("endpoint"), str_of(endpoint));
    schedule(s);
}

/* The open stream X of this caller; NULL for a stream of another owner. */
static struct sse_stream *find(struct sse2024 *all, struct http_request *r, const struct caller *c,
                               struct str key)
{
    struct sse_stream *s = map_get(&all->by_id, key);

    if (!s || s->ending || s->full ||
        !principal_owns(&c->who, s->channel.who.tenant, s->channel.who.owner) ||
        exchange_client_refusal(c->config->client_id_required, r->head))
        return NULL; /* the exchange refuses instead, with the request's id */
    return s;
}

/* `refused` is not NULL for a caller that the front has refused: the exchange says so, with the
 * request's id. */
static void post_as_mcp(struct sse2024 *all, struct http_request *r, struct caller *c,
                        struct str key, const struct refusal *refused)
{
    struct arrival a = {
        .outlet = &outlet_http,
        .http = r,
        .head = r->head,
        .mem = r->mem,
        .verb = r->head->method,
        .body = r->body,
        .endpoint = STR("/mcp"),
        .caller = c,
        .refused = refused,
        .key = carrier_name(key, r->mem),
    };
    exchange_start(all->sv, &a);
}

/* Messages other than requests always have room: they may be the cancellation or the answer that
 * ends a request. */
static bool has_room(const struct sse_stream *s, struct http_request *r)
{
    struct mcp_message m;
    struct str id;
    struct error err;
    bool is_batch;

    if (client_channel_busy(&s->channel) < SSE2024_MAX_MESSAGES &&
        s->channel.n_bytes + r->body.n <= SSE2024_MAX_BYTES)
        return true;
    return mcp_parse_request(r->body, r->mem, &m, &id, &is_batch, &err) && m.kind != MCP_REQUEST;
}

/* False: the post names no session, and was answered. */
static bool read_key(struct http_request *r, struct str *ret)
{
    *ret = STR_NONE;
    if (carrier_transport_id(r->head, r->mem, ret) && ret->n)
        return true;
    refuse(r, 400, -32600, STR_NONE,
           "POST /mcp/messages needs one session id, in ?session_id= or in the Mcp-Session-Id "
           "header: the one that the endpoint event of GET /sse names, or any other string "
           "that stands for your session; where both are sent they must be equal");
    return false;
}

void sse2024_post(void *arg, struct http_request *r, struct caller *c)
{
    struct sse2024 *all = ((struct services *)arg)->sse2024;
    struct str key;

    if (!read_key(r, &key))
        return;
    struct sse_stream *s = find(all, r, c, key);
    if (!s) {
        post_as_mcp(all, r, c, key, NULL);
        return;
    }
    if (!has_room(s, r)) {
        refuse(r, 503, -32000, STR("Retry-After: 1\r\n"),
               "too much is under way on this stream; wait for its answers");
        return;
    }
    client_channel_take(&s->channel, r->body, r->head);
    http_reply(r, 202, NULL, STR_NONE, STR_NONE);
}

void sse2024_post_unknown(void *arg, struct http_request *r, struct caller *c,
                          const struct refusal *why)
{
    struct str key;

    if (read_key(r, &key))
        post_as_mcp(((struct services *)arg)->sse2024, r, c, key, why);
}

struct sse2024 *sse2024_new(struct services *sv)
{
    struct sse2024 *all = xcalloc(1, sizeof(*all));
    all->sv = sv;
    map_init(&all->by_id);
    list_init(&all->open);
    deadline_class_init(&all->quiet, sv->loop, SSE2024_QUIET_MS);
    return all;
}

void sse2024_free(struct sse2024 *all)
{
    if (!all)
        return;
    list_each(&all->open, it)
    {
        struct sse_stream *s = list_entry(it, struct sse_stream, node);
        struct http_request *r = s->r;
        forget(s);
        http_stream_abort(r);
    }
    deadline_class_release(&all->quiet);
    map_release(&all->by_id);
    free(all);
}

void sse2024_stop(struct sse2024 *all)
{
    list_each(&all->open, it)
    {
        struct sse_stream *s = list_entry(it, struct sse_stream, node);
        s->ending = true;
        client_channel_end_listening(&s->channel);
        schedule(s);
    }
}
