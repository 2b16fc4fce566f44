/* SPDX-License-Identifier: Apache-2.0 */
/* The outlet of an HTTP request: one JSON object, or an event stream once a message came before the
 * result. */
#include "base/log.h"
#include "exchange/exchange.h"
#include "http/sse.h"
#include "identity/proxy.h"

#define MAX_STREAM_QUEUE (256 * 1024)
#define MAX_MESSAGE (64u * 1024 * 1024)

static void on_abort(struct http_request *r)
{
    exchange_on_disconnect(r->user);
}

static void http_begin(struct exchange *x)
{
    x->http->user = x;
    x->http->on_abort = on_abort;
}

static bool write_event(struct exchange *x, struct str json)
{
    struct buf event;
    buf_init(&event, 2 * MAX_MESSAGE);
    stream_write_event(&event, STR("message"), json);
    bool fits = http_stream_write(x->http, buf_str(&event));
    buf_release(&event);
    return fits;
}

static void on_quiet(struct deadline *d)
{
    struct exchange *x = container_of(d, struct exchange, slow);
    if (!x->aborted && http_stream_queued(x->http) == 0 &&
        !http_stream_write(x->http, STR(": keep-alive\n\n")))
        log_debug("a stream did not take a sign of life");
    deadline_set(&x->sv->quiet, &x->slow);
}

static void on_connected(void *arg, bool is_connected)
{
    if (is_connected)
        exchange_undelivered_on_resume(arg);
    else
        exchange_undelivered_on_disconnect(arg);
}

/* Runs at the end of the turn in which the stream lost its connection. */
static void on_gone(void *arg, bool is_aborted)
{
    struct exchange *x = arg;
    struct http_request *r = x->outlet_data;

    exchange_leave(x); /* may free x */
    if (is_aborted)
        http_request_done(r);
}

/* A legacy client's stream can be resumed, so it outlives the connection.  The exchange then takes
 * over the memory of the request. */
static bool open_stream(struct exchange *x)
{
    struct transport *t = x->transport;

    if (x->aborted || !http_takes_events(x->head, false))
        return false;
    if (mcp_era(x->era)->resumes_streams && t && x->id.p) {
        struct http_request *r = x->http;
        x->stream = stream_new(x->sv->streams, t, x->id);
        stream_attach(x->stream, r);
        http_request_take_memory(r, &x->request_memory);
        stream_on_connected(x->stream, on_connected, x);
        stream_on_gone(x->stream, on_gone, x);
        x->outlet_data = r;
        x->http = NULL;
    } else {
        deadline_clear(&x->slow);
        x->slow.fn = on_quiet;
        deadline_set(&x->sv->quiet, &x->slow);
        http_stream_begin(x->http, 200, "text/event-stream", HTTP_EVENT_STREAM_LINES, MAX_MESSAGE);
    }
    x->streaming = true;
    return true;
}

/* The first message opens the stream.  A slow reader loses progress and logs, never the result. */
static bool http_send(struct exchange *x, struct str json, enum outlet_weight weight)
{
    static const enum stream_weight weights[] = {
        [OUTLET_MUST] = STREAM_MUST,
        [OUTLET_PROGRESS] = STREAM_PROGRESS,
        [OUTLET_MAY] = STREAM_MAY,
    };

    if (!x->streaming && !open_stream(x))
        return false;
    if (x->stream) {
        stream_send(x->stream, json, weights[weight]);
        return true;
    }
    if (x->listen && http_stream_queued(x->http) > MAX_STREAM_QUEUE)
        return false;
    if (weight != OUTLET_MUST && http_stream_queued(x->http) > MAX_STREAM_QUEUE) {
        log_debug("a message was dropped: the reader is slow");
        return true;
    }
    deadline_set(&x->sv->quiet, &x->slow);
    return !x->aborted && write_event(x, json);
}

static void http_slow(struct exchange *x)
{
    if (!x->streaming && x->version->priming_event)
        (void)open_stream(x);
}

static bool http_is_lost(const struct exchange *x)
{
    return x->stream ? !stream_is_connected(x->stream) : x->aborted;
}

static void finish_stream(struct exchange *x)
{
    struct stream *stream = x->stream;
    struct http_request_memory memory = x->request_memory;
    struct buf out = x->out;

    stream_on_connected(stream, NULL, NULL);
    stream_on_gone(stream, NULL, NULL);
    stream_finish(stream, buf_str(&out), x->is_error);
    stream_unref(stream);
    buf_release(&out);
    http_request_memory_release(&memory); /* frees x too */
}

static struct http_receipt *on_unsent(struct http_request *r)
{
    return exchange_unsent(r->user);
}

/* x lies in the request's memory and is freed with it, so `out` is taken out first. */
static void http_finish(struct exchange *x)
{
    struct http_request *r = x->http;
    struct buf out = x->out;

    if (x->stream) {
        finish_stream(x);
        return;
    }
    if (x->request_memory.mem) { /* the stream has passed to the call (absent.c) */
        struct http_request_memory memory = x->request_memory;
        buf_release(&out);
        http_request_memory_release(&memory);
        return;
    }
    if (x->unsent)
        r->on_unsent = on_unsent;
    if (x->handed_over)
        ; /* the stream answers, and frees the request */
    else if (x->aborted)
        http_request_done(r);
    else if (!x->streaming)
        http_reply(r, x->status, out.n ? "application/json" : NULL, x->headers, buf_str(&out));
    else if (!out.n || write_event(x, buf_str(&out)))
        http_stream_end(r);
    else
        http_stream_abort(r);
    buf_release(&out);
}

const struct outlet outlet_http = {
    .name = "http",
    .has_headers = true,
    .begin = http_begin,
    .send = http_send,
    .finish = http_finish,
    .slow = http_slow,
    .is_lost = http_is_lost,
};

/* "/mcp/k/KEY/files" is "/mcp/files": a transport id is valid on both, and the key stays out of the
 * endpoint. */
static struct str endpoint_of(const struct http_request *r, struct str path_key)
{
    struct str path = r->head->path;

    if (!path_key.p)
        return path;
    path = str_n(path.p + sizeof("/mcp/k/") - 1, path.n - sizeof("/mcp/k/") + 1);
    size_t slash = str_find(path, '/');
    return arena_printf(r->mem, "/mcp%.*s", (int)(path.n - slash), path.p + slash);
}

void exchange_start_http(struct services *sv, struct http_request *r, struct caller *caller,
                         struct str server, struct str profile, struct str path_key)
{
    struct arrival a = {
        .outlet = &outlet_http,
        .http = r,
        .head = r->head,
        .mem = r->mem,
        .verb = r->head->method,
        .body = r->body,
        .server = server,
        .profile = profile,
        .by_proxy = profile.p && peer_is_trusted_proxy(caller->config, r),
        .endpoint = endpoint_of(r, path_key),
        .path_key = path_key,
        .caller = caller,
    };
    exchange_start(sv, &a);
}
