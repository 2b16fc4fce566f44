/* SPDX-License-Identifier: Apache-2.0 */
/* The outlet of an HTTP request: one JSON object, or a stream of events once something had to be
 * said before the result. */
#include "base/log.h"
#include "exchange/exchange.h"
#include "http/sse.h"

#define MAX_STREAM_QUEUE (256 * 1024)
#define MAX_MESSAGE (64u * 1024 * 1024)

static void on_abort(struct http_request *r)
{
    exchange_gone(r->user);
}

static void http_begin(struct exchange *x)
{
    x->http->user = x;
    x->http->on_abort = on_abort;
}

static bool takes_events(const struct exchange *x)
{
    struct str accept = http_header_get(x->head, STR("accept"));
    return accept.p &&
           (http_list_has(accept, STR("text/event-stream")) || http_list_has(accept, STR("*/*")));
}

static bool write_event(struct exchange *x, struct str json)
{
    struct buf event;
    buf_init(&event, 2 * MAX_MESSAGE);
    sse_write(&event, STR("message"), STR_NONE, json);
    bool fits = http_stream_write(x->http, buf_str(&event));
    buf_release(&event);
    return fits;
}

/* The first message opens the stream.  A slow reader loses progress and logs, never the result. */
static bool http_send(struct exchange *x, struct str json, enum outlet_weight weight)
{
    if (x->aborted || !takes_events(x))
        return false;
    if (!x->streaming) {
        http_stream_begin(x->http, 200, "text/event-stream",
                          STR("Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n"),
                          MAX_MESSAGE);
        x->streaming = true;
    }
    if (weight != OUTLET_MUST && http_stream_queued(x->http) > MAX_STREAM_QUEUE) {
        log_debug("a message was dropped: the reader is slow");
        return true;
    }
    return write_event(x, json);
}

/* The exchange's memory is the request's and goes with it: what is needed is taken out first. */
static void http_finish(struct exchange *x)
{
    struct http_request *r = x->http;
    struct buf out = x->out;

    if (x->aborted)
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
};

void exchange_start_http(struct services *sv, struct http_request *r, struct str server)
{
    struct arrival a = {
        .outlet = &outlet_http,
        .http = r,
        .head = r->head,
        .mem = r->mem,
        .verb = r->head->method,
        .body = r->body,
        .server = server,
        .endpoint = r->head->path,
    };
    exchange_start(sv, &a);
}
