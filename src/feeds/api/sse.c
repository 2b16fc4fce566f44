/* SPDX-License-Identifier: Apache-2.0 */
/* GET /events as server-sent events.
 *
 *   ASKED ──the position is one of this store──▶ OPEN ──revoked, slow, stop──▶ over
 *
 * While ASKED, the request waits for its first byte, so that a bad position is a refusal.  If the store
 * cannot be read for so long that a sign of life is due, the stream is OPEN before its reader starts.
 *
 * A client gets no more than it reads: while bytes are queued for it, the reader takes no event and
 * reads on from the store later.  So a client that does not read costs one window of memory.  If it
 * took longer for that window than its patience, the next thing that it gets is the event `resync`,
 * and the stream ends; its id is the position, so a client that connects again misses nothing. */
#include "feeds/api/impl.h"

#include "audit/event_json.h"
#include "base/random.h"
#include "config/config.h"
#include "feeds/api/watch.h"
#include "feeds/api/watchers.h"
#include "http/sse.h"

#include <stdlib.h>

/* Bytes that are written at once.  The queue takes them, or one larger event. */
#define WINDOW ((size_t)32 << 10)
#define QUEUE_MAX ((size_t)256 << 10)
/* Write deadlines (of 30 s) that a client may let pass until its connection is closed. */
#define PATIENCE 10
/* Clients connect again after 1 to 5 s, each at another time. */
#define RETRY_MS 1000
#define RETRY_SPREAD_MS 4000

struct stream {
    struct watchers *all;
    struct watcher watcher;
    struct reader reader;
    struct deadline quiet;
    struct api_call *call;     /* while ASKED */
    struct http_request *http; /* while OPEN */
    int64_t patience_ms;
    int64_t full_since_ms; /* bytes are queued since then; 0: none are */
};

static void stream_free(struct stream *s)
{
    buf_reset(watchers_scratch(s->all)); /* nothing of this stream goes to another one */
    reader_stop(&s->reader);
    deadline_clear(&s->quiet);
    watcher_close(&s->watcher);
    free(s);
}

/* Ends the stream after what is queued. */
static void end(struct stream *s)
{
    struct http_request *r = s->http;

    stream_free(s);
    r->on_abort = NULL;
    r->on_drained = NULL;
    http_stream_end(r);
}

static void refuse(struct stream *s, const struct error *err)
{
    struct api_call *c = s->call;

    stream_free(s);
    c->http->on_abort = NULL;
    if (http_request_aborted(c->http))
        api_stream_abort(c);
    else
        watch_refuse(c, err);
}

static void write_out(struct stream *s)
{
    struct buf *out = watchers_scratch(s->all);

    if (out->n == 0)
        return;
    if (http_stream_write(s->http, buf_str(out)) && http_stream_queued(s->http) > 0 &&
        s->full_since_ms == 0)
        s->full_since_ms = loop_now_ms(watchers_config(s->all)->loop);
    buf_reset(out);
    deadline_set(watchers_config(s->all)->quiet, &s->quiet);
}

static void add_notice(struct stream *s, enum watch_gap gap, const struct error *err)
{
    const struct position *at = reader_position(&s->reader);
    char id[POSITION_TEXT];
    struct js_writer w;
    struct buf *data = watchers_text(s->all);

    buf_reset(data);
    js_begin(&w, data);
    js_object(&w);
    watch_gap_write(gap, at, err, &w);
    js_object_end(&w);
    sse_write(watchers_scratch(s->all), STR("resync"),
              at ? str_of(position_format(at, id)) : STR_NONE, buf_str(data));
}

/* Tells the client where it is, without an event. */
static void add_position(struct stream *s)
{
    struct buf *out = watchers_scratch(s->all);
    char id[POSITION_TEXT];

    if (reader_position(&s->reader))
        buf_addf(out, "id: %s\n\n", position_format(reader_position(&s->reader), id));
    else
        sse_write_comment(out, STR(""));
}

/* Of the reader. */

static bool take(struct reader *r, const struct event_row *e, const struct position *at)
{
    struct stream *s = container_of(r, struct stream, reader);
    struct buf *out = watchers_scratch(s->all);
    char id[POSITION_TEXT];
    struct js_writer w;

    if (s->full_since_ms)
        return false;
    buf_addz(out, "id: ");
    buf_addz(out, position_format(at, id));
    buf_addz(out, "\ndata: ");
    js_begin(&w, out); /* one line: JSON has no line ends */
    event_to_json(e, &w);
    buf_addz(out, "\n\n");
    if (out->n >= WINDOW)
        write_out(s);
    return true;
}

static bool flush(struct reader *r)
{
    struct stream *s = container_of(r, struct stream, reader);

    write_out(s);
    return s->full_since_ms == 0;
}

static void on_removed(struct reader *r)
{
    struct stream *s = container_of(r, struct stream, reader);

    add_notice(s, WATCH_REMOVED, NULL);
    write_out(s);
}

static void on_lost(struct reader *r, const struct error *err)
{
    struct stream *s = container_of(r, struct stream, reader);

    if (s->call) {
        refuse(s, err);
        return;
    }
    add_notice(s, WATCH_LOST, err);
    write_out(s);
    end(s);
}

/* Of the connection. */

static void on_abort(struct http_request *r)
{
    struct stream *s = r->user;

    stream_free(s);
    http_request_done(r);
}

static void on_drained(struct http_request *r)
{
    struct stream *s = r->user;
    int64_t now = loop_now_ms(watchers_config(s->all)->loop);
    bool is_late = s->full_since_ms && now - s->full_since_ms > s->patience_ms &&
                   reader_state(&s->reader) == READER_WAITING;

    s->full_since_ms = 0;
    if (!is_late) {
        reader_resume(&s->reader);
        return;
    }
    add_notice(s, WATCH_SLOW, NULL);
    write_out(s);
    end(s);
}

static void tell_position(struct stream *s)
{
    add_position(s);
    write_out(s);
}

static void begin_stream(struct stream *s)
{
    bool is_head = str_eq(s->call->http->head->method, STR("HEAD"));
    struct http_request *r =
        api_stream(s->call, "text/event-stream", HTTP_EVENT_STREAM_LINES, QUEUE_MAX);
    struct buf *out = watchers_scratch(s->all);

    s->call = NULL;
    s->http = r;
    r->on_abort = on_abort;
    r->on_drained = on_drained;
    http_stream_patient(r, PATIENCE);
    http_stream_slim(r);
    sse_write_retry(out, RETRY_MS + random_below(RETRY_SPREAD_MS));
    tell_position(s);
    if (is_head)
        end(s);
}

static void on_started(struct reader *r)
{
    struct stream *s = container_of(r, struct stream, reader);

    if (s->call)
        begin_stream(s);
    else
        tell_position(s);
}

static void on_quiet(struct deadline *d)
{
    struct stream *s = container_of(d, struct stream, quiet);

    deadline_set(watchers_config(s->all)->quiet, d);
    if (s->call)
        begin_stream(s);
    else if (!s->full_since_ms)
        tell_position(s);
}

static const struct reader_events events = {
    .started = on_started, .take = take, .flush = flush, .removed = on_removed, .lost = on_lost};

/* The client left before its first byte. */
static void on_early_abort(struct http_request *r)
{
    struct stream *s = r->user;

    refuse(s, NULL);
}

static void on_end(struct watcher *w, enum watcher_end why)
{
    struct stream *s = container_of(w, struct stream, watcher);
    struct error err;

    if (s->http) {
        end(s);
        return;
    }
    if (why == WATCHER_REVOKED)
        error_set(&err, ERR_TENANT_NOT_FOUND, "the credential was revoked or has expired");
    else
        error_set(&err, ERR_UNAVAILABLE, "Holdfast is stopping; try again in a moment");
    refuse(s, &err);
}

void events_sse_open(struct api_call *c)
{
    struct watchers *all = c->sv->watchers;
    struct watch_request ask;
    struct error err;

    if (!http_takes_events(c->http->head, true)) {
        api_refuse(c, ERR_BAD_INPUT, "this path answers text/event-stream; accept that");
        return;
    }
    if (!watch_request_read(c, &ask))
        return;
    struct stream *s = xcalloc(1, sizeof(*s));
    s->all = all;
    s->call = c;
    s->patience_ms = c->config->events.patience_ms;
    s->watcher.on_end = on_end;
    deadline_init(&s->quiet, on_quiet);
    if (!watcher_open(all, &s->watcher, WATCHER_SSE, &c->caller, &err)) {
        refuse(s, &err);
        return;
    }
    c->http->user = s;
    c->http->on_abort = on_early_abort;
    deadline_set(watchers_config(all)->quiet, &s->quiet);
    const struct reader_config config = {
        .events = &events, .visibility = ask.visibility, .selection = ask.selection};
    reader_start(&s->reader, watchers_config(all)->feed, &config, ask.has_from ? &ask.from : NULL);
}
