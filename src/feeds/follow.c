/* SPDX-License-Identifier: Apache-2.0 */
/* GET /control/follow?after=ID: the audit events after this id, one JSON object per line, for as
 * long as the client listens.  A follower is a subscriber of the publish point.
 *
 *   CATCHING UP ──a page was the last one──▶ LIVE ──more than QUEUE_MAX queued──▶ cut off
 *     reads pages from the store               gets published events
 *
 * No gap and no repeat where the two meet: the follower subscribes first.  Every event that was
 * published before a page read began is in that page or in a later one, so only the events that are
 * published during one page read are kept (`during`).  When that page was the last one, those with
 * greater ids follow it.
 *
 * An empty line is a sign of life.  {"resync":"…"} is the last line for a client that reads too
 * slowly: it asks again with the last id that it has.  Bodies are not sent.
 *
 * With a store that other nodes share, the events of their writers would be missing: the request is
 * refused, and the client reads pages. */
#include "feeds/feeds.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "audit/publish.h"
#include "base/log.h"
#include "front/plain.h"
#include "http/sse.h"
#include "io/deadline.h"
#include "json/write.h"
#include "store/lanes.h"

#include <stdlib.h>

#define PAGE 200
#define QUEUE_MAX ((size_t)1 << 20)
/* Room for one batch or one page beyond QUEUE_MAX: at most 512 events with texts of some KiB. */
#define QUEUE_ROOM ((size_t)16 << 20)

/* An event that was published during a page read. */
struct mark {
    int64_t id;
    size_t at; /* where its line begins in `during` */
};

struct follower {
    struct audit_subscriber subscriber;
    struct feeds *home;
    struct http_request *http;
    struct deadline quiet;
    int64_t sent; /* the client has, or has queued, all events up to this id */
    bool live, reading, aborted;
    struct buf lines; /* to be written next; owned by the query lane while `reading` */
    struct read_job job;
    int64_t page_last; /* 0: the page is empty */
    bool page_is_last;
    struct buf during, marks; /* lines; struct mark */
    bool during_overflowed;
};

static void follower_free(struct follower *f)
{
    buf_release(&f->lines);
    buf_release(&f->during);
    buf_release(&f->marks);
    free(f);
}

/* Detaches the follower from everything but a running page read. */
static void leave(struct follower *f)
{
    audit_unsubscribe(f->home->audit, &f->subscriber);
    deadline_clear(&f->quiet);
}

static void on_abort(struct http_request *r)
{
    struct follower *f = r->user;
    leave(f);
    http_request_done(r);
    f->aborted = true;
    if (!f->reading)
        follower_free(f);
}

/* Ends the stream with a line that tells the client to ask again. */
static void cut_off(struct follower *f, const char *why)
{
    struct js_writer w;
    struct http_request *r = f->http;

    leave(f);
    buf_reset(&f->lines);
    js_begin(&w, &f->lines);
    js_object(&w);
    js_kv_string(&w, "resync", str_of(why));
    js_object_end(&w);
    buf_addc(&f->lines, '\n');
    r->on_abort = NULL;
    r->on_drained = NULL;
    if (http_stream_write(r, buf_str(&f->lines)))
        http_stream_end(r);
    else
        http_stream_abort(r);
    follower_free(f);
}

/* False: the follower is gone. */
static bool send_lines(struct follower *f, struct str lines)
{
    if (lines.n == 0)
        return true;
    deadline_set(f->home->quiet, &f->quiet);
    if (http_stream_write(f->http, lines))
        return true;
    cut_off(f, "the connection takes no more events; ask again with the last id");
    return false;
}

static void add_line(struct buf *out, const struct event_row *row)
{
    struct event_row e = *row;
    struct js_writer w;

    e.body = STR_NONE;
    js_begin(&w, out);
    event_to_json(&e, &w);
    buf_addc(out, '\n');
}

/* On the query lane. */
static bool run_page(struct read_job *job, struct store *store)
{
    struct follower *f = container_of(job, struct follower, job);
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_row *rows = NULL;
    size_t n = 0;
    int64_t scanned = 0;
    struct event_filter filter = {.kind = -1, .after = f->sent, .ret_scanned = &scanned};
    bool ok = store_events_page(store, &filter, PAGE, mem, &rows, &n, &job->err);

    for (size_t i = 0; ok && i < n; i++)
        add_line(&f->lines, &rows[i]);
    if (ok) {
        f->page_last = scanned ? scanned : n ? rows[n - 1].id : 0;
        f->page_is_last = !scanned && n < PAGE;
    }
    arena_free(mem);
    return ok;
}

static void page_done(struct read_job *job);

static void read_page(struct follower *f)
{
    buf_reset(&f->lines);
    buf_reset(&f->during);
    buf_reset(&f->marks);
    f->during_overflowed = false;
    f->reading = true;
    f->job = (struct read_job){.run = run_page, .done = page_done};
    if (lane_query(f->home->lanes, &f->job))
        return;
    f->reading = false;
    cut_off(f, "too much is waiting for the store; ask again with the last id");
}

/* Sends the events that were published during the last page and are not in it. */
static void go_live(struct follower *f)
{
    const struct mark *marks = (const struct mark *)f->marks.p;
    size_t n = f->marks.n / sizeof(*marks), i = 0;

    while (i < n && marks[i].id <= f->sent)
        i++;
    size_t from = i < n ? marks[i].at : f->during.n;
    f->live = true;
    if (n > 0 && marks[n - 1].id > f->sent)
        f->sent = marks[n - 1].id;
    if (!send_lines(f, str_n(f->during.p + from, f->during.n - from)))
        return;
    buf_release(&f->during);
    buf_release(&f->marks);
}

static void page_done(struct read_job *job)
{
    struct follower *f = container_of(job, struct follower, job);

    f->reading = false;
    if (f->aborted) {
        follower_free(f);
        return;
    }
    if (!job->ok) {
        log_debug("a follower of the audit cannot be served", LZ("why", job->err.text));
        cut_off(f, "the store cannot be read just now; ask again with the last id");
        return;
    }
    if (f->page_last > f->sent)
        f->sent = f->page_last;
    if (!send_lines(f, buf_str(&f->lines)))
        return;
    if (f->page_is_last && !f->during_overflowed)
        go_live(f);
    else if (!f->reading && http_stream_queued(f->http) == 0)
        read_page(f);
}

/* The client has read everything: the next page is due. */
static void on_drained(struct http_request *r)
{
    struct follower *f = r->user;
    if (!f->live && !f->reading)
        read_page(f);
}

static void keep_during_page(struct follower *f, const struct event_row *rows, size_t n)
{
    for (size_t i = 0; i < n && f->reading && !f->during_overflowed; i++) {
        struct mark mark = {.id = rows[i].id, .at = f->during.n};
        buf_add(&f->marks, &mark, sizeof(mark));
        add_line(&f->during, &rows[i]);
        f->during_overflowed = f->during.n > QUEUE_MAX;
    }
}

static void on_events(struct audit_subscriber *s, const struct event_row *rows, size_t n)
{
    struct follower *f = container_of(s, struct follower, subscriber);

    if (!f->live) {
        keep_during_page(f, rows, n);
        return;
    }
    if (http_stream_queued(f->http) > QUEUE_MAX) {
        log_info("a follower of the audit reads too slowly and was cut off");
        cut_off(f, "more than 1 MiB of events waited for this reader; ask again with the last id");
        return;
    }
    buf_reset(&f->lines);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].id <= f->sent)
            continue;
        add_line(&f->lines, &rows[i]);
        f->sent = rows[i].id;
    }
    (void)send_lines(f, buf_str(&f->lines));
}

static void on_quiet(struct deadline *d)
{
    struct follower *f = container_of(d, struct follower, quiet);
    deadline_set(f->home->quiet, &f->quiet);
    if (!f->reading && http_stream_queued(f->http) == 0)
        (void)send_lines(f, STR("\n"));
}

static void follower_start(struct feeds *home, struct http_request *r, int64_t after)
{
    struct follower *f = xcalloc(1, sizeof(*f));

    f->home = home;
    f->http = r;
    f->sent = after;
    f->subscriber.on_events = on_events;
    buf_init(&f->lines, SIZE_MAX / 4);  /* a page or a batch bounds it */
    buf_init(&f->during, SIZE_MAX / 4); /* QUEUE_MAX and one line */
    buf_init(&f->marks, SIZE_MAX / 4);
    deadline_init(&f->quiet, on_quiet);
    r->user = f;
    r->on_abort = on_abort;
    r->on_drained = on_drained;
    http_stream_begin(r, 200, "application/x-ndjson", HTTP_EVENT_STREAM_LINES,
                      QUEUE_MAX + QUEUE_ROOM);
    http_stream_slim(r);
    deadline_set(home->quiet, &f->quiet);
    audit_subscribe(home->audit, &f->subscriber);
    read_page(f);
}

static void follow(void *arg, struct http_request *r, struct caller *c unused_arg)
{
    struct feeds *home = arg;
    unsigned count = 0;
    struct str query = r->head->query.p ? r->head->query : STR("");
    struct str text = http_query_get(query, STR("after"), &count);
    int64_t after = 0;

    if (count != 1 || !event_id_parse(text, &after))
        plain_refuse(r, 400, STR_NONE, "say after which event: /control/follow?after=3.1234");
    else if (home->is_store_shared)
        plain_refuse(r, 409, STR_NONE,
                     "other nodes write to this store too; read pages of /api/v1/audit/events");
    else
        follower_start(home, r, after);
}

static const struct front_route routes[] = {
    {"GET", "/control/follow", follow, "Audit events as they commit, for commands.",
     ROUTE_SOCKET_ONLY, &need_local_admin},
};

void feeds_add_routes(struct feeds *f)
{
    front_add(f->front, NULL, routes, countof(routes), f);
}
