/* SPDX-License-Identifier: Apache-2.0 */
/* A reader.
 *
 *   STARTING ──turn──▶ READING ──the page was the last one──▶ LIVE
 *       ▲                 │                                    │
 *       └──reader_resume()┴──────── WAITING ◀──no room─────────┘
 *
 * No gap and no repeat where pages and live events meet: the reader subscribes first.  Every event that
 * was handed out before a page read began is in that page or in a later one, so only the events that
 * are handed out during one page read are kept (`during`).  When that page was the last one, those
 * after the position follow it.
 *
 * The ids of a writer have no gaps.  If a live event is not the next one of its writer, the reader
 * goes back to pages, which find the ones between. */
#include "feeds/reader.h"

#include "audit/event_id.h"
#include "base/log_quiet.h"
#include "feeds/page.h"
#include "store/store_impl.h"

#include <stdlib.h>

/* Events that commit during one page read are kept up to this many bytes; then another page follows. */
#define DURING_MAX ((size_t)1 << 20)

/* A page read; on the heap, because an idle reader has none. */
struct fetch {
    struct read_job read;
    struct reader_work *work;
    struct page page;
};

struct reader_work {
    struct reader *home; /* NULL: stopped */
    struct feed *feed;
    const struct reader_events *events;
    struct arena *mem; /* of visibility and selection */
    struct visibility visibility;
    struct selection selection;
    bool with_bodies;
    struct feed_subscriber subscriber;
    struct feed_turn turn;
    enum reader_state state;
    struct position at;
    int64_t removed_upto; /* of struct page */
    bool knows_at;        /* false: from now on, and "now" is not known yet */
    bool has_started;     /* started() was called */
    bool was_live;        /* WAITING: nothing was missed since the reader was live */
    bool has_resumed;     /* reader_resume() was called inside of a callback */
    bool has_taken;       /* since the last flush() */
    unsigned depth;       /* of callbacks */
    unsigned turns;
    int64_t ended; /* the last item ended this writer; 0: no */
    struct fetch *fetch;
    struct arena *during;
    struct page_item *kept;
    size_t n_kept, cap_kept;
    bool during_overflowed;
};

static void ask_turn(struct reader_work *w)
{
    w->state = READER_STARTING;
    feed_turn_ask(w->feed, &w->turn);
}

static void forget_during(struct reader_work *w)
{
    arena_free(w->during);
    w->during = NULL;
    w->kept = NULL;
    w->n_kept = w->cap_kept = 0;
    w->during_overflowed = false;
}

static void work_free(struct reader_work *w)
{
    forget_during(w);
    arena_free(w->mem);
    free(w);
}

/* After a callback: false when the reader was stopped in it.  The outermost frees the work. */
static void enter(struct reader_work *w)
{
    w->depth++;
}

static bool leave(struct reader_work *w)
{
    bool runs = w->home != NULL;

    if (--w->depth == 0 && !runs && !w->fetch)
        work_free(w);
    return runs;
}

/* Handing over. */

static void wait_for_room(struct reader_work *w, bool was_live)
{
    w->state = READER_WAITING;
    w->was_live = was_live;
    forget_during(w);
}

/* Moves the position; with a row, only if the consumer takes it.  False: it did not, or the reader
 * was stopped. */
static bool hand_over(struct reader_work *w, const struct page_item *item)
{
    struct position next = w->at;

    position_advance(&next, item->id);
    if (w->ended && event_id_writer(item->id) != w->ended)
        position_forget(&next, w->ended);
    if (item->row) {
        struct event_row row = *item->row;
        if (!w->with_bodies)
            row.body = STR_NONE;
        if (!w->events->take(w->home, &row, &next) || !w->home)
            return false;
        w->has_taken = true;
    }
    if (event_id_writer(item->id) != w->ended)
        w->ended = 0;
    if (item->ends)
        w->ended = event_id_writer(item->id);
    w->at = next;
    return true;
}

/* True: the consumer takes more. */
static bool flush(struct reader_work *w)
{
    if (w->ended)
        position_forget(&w->at, w->ended);
    w->ended = 0;
    if (!w->has_taken || !w->events->flush)
        return true;
    w->has_taken = false;
    w->has_resumed = false;
    return w->events->flush(w->home) || (w->home && w->has_resumed);
}

enum fits { FITS_NEXT, FITS_READ, FITS_GAP };

static enum fits fits(const struct reader_work *w, int64_t id)
{
    int64_t writer = event_id_writer(id);

    if (!position_is_before(&w->at, id))
        return FITS_READ;
    for (size_t i = w->at.n; i > 0; i--)
        if (event_id_writer(w->at.last[i - 1]) == writer)
            return id == w->at.last[i - 1] + 1 ? FITS_NEXT : FITS_GAP;
    return event_id_count(id) == 1 ? FITS_NEXT : FITS_GAP;
}

static bool is_wanted(const struct reader_work *w, const struct event_row *row)
{
    return selection_matches(&w->selection, row) && visibility_shows(&w->visibility, row);
}

/* Live events.  Leaves the state LIVE, WAITING or STARTING; false when the reader was stopped. */
static bool hand_over_live(struct reader_work *w, const struct page_item *items, size_t n)
{
    bool taken = true, gap = false;

    enter(w);
    for (size_t i = 0; i < n && taken && !gap && w->home; i++) {
        enum fits f = fits(w, items[i].id);
        gap = f == FITS_GAP;
        if (f == FITS_NEXT)
            taken = hand_over(w, &items[i]);
    }
    bool goes_on = !w->home || flush(w);
    if (w->home && (!taken || !goes_on))
        wait_for_room(w, taken && !gap);
    else if (w->home && gap)
        ask_turn(w);
    return leave(w);
}

/* The chunks of a batch go through a small array, because rows are not items. */
#define CHUNK 64
static void on_live_events(struct reader_work *w, const struct event_row *rows, size_t n)
{
    struct page_item items[CHUNK];

    while (n > 0 && w->state == READER_LIVE) {
        size_t some = n < CHUNK ? n : CHUNK;
        for (size_t i = 0; i < some; i++)
            items[i] =
                (struct page_item){rows[i].id, is_wanted(w, &rows[i]) ? &rows[i] : NULL, false};
        if (!hand_over_live(w, items, some))
            return;
        rows += some;
        n -= some;
    }
    if (n > 0 && w->state == READER_WAITING)
        w->was_live = false;
}

static void keep(struct reader_work *w, const struct event_row *row)
{
    struct page_item item = {.id = row->id};

    if (w->during && arena_used(w->during) > DURING_MAX)
        w->during_overflowed = true;
    if (w->during_overflowed)
        return;
    if (!w->during)
        w->during = arena_new(SIZE_MAX / 4); /* DURING_MAX and one row */
    if (w->n_kept == w->cap_kept) {
        size_t cap = w->cap_kept ? 2 * w->cap_kept : 64;
        w->kept = arena_try_resize(w->during, w->kept, w->cap_kept * sizeof(*w->kept),
                                   cap * sizeof(*w->kept));
        w->cap_kept = cap;
    }
    if (is_wanted(w, row)) {
        struct event_row from = *row, *copy = arena_new_of(w->during, struct event_row);
        if (!w->with_bodies)
            from.body = STR_NONE;
        event_row_keep(w->during, &from, copy);
        item.row = copy;
    }
    w->kept[w->n_kept++] = item;
}

static void on_events(struct feed_subscriber *s, const struct event_row *rows, size_t n)
{
    struct reader_work *w = container_of(s, struct reader_work, subscriber);

    if (w->state == READER_LIVE)
        on_live_events(w, rows, n);
    else if (w->state == READER_WAITING)
        w->was_live = false;
    else if (w->state == READER_READING)
        for (size_t i = 0; i < n; i++)
            keep(w, &rows[i]);
}

static void on_writer_over(struct feed_subscriber *s, int64_t writer)
{
    struct reader_work *w = container_of(s, struct reader_work, subscriber);

    if (w->state == READER_LIVE)
        position_forget(&w->at, writer);
}

/* Pages. */

static bool run_page(struct read_job *job, struct store *store)
{
    struct fetch *f = container_of(job, struct fetch, read);
    return page_read(&f->page, store, &job->err);
}

static void fetch_free(struct fetch *f)
{
    arena_free(f->page.mem);
    free(f);
}

/* False: the reader was stopped. */
static bool tell(struct reader_work *w, const struct page *p, const struct error *err)
{
    enter(w);
    if (p && !w->has_started) {
        w->has_started = true;
        if (w->events->started)
            w->events->started(w->home);
    }
    if (w->home && p && p->removed && w->events->removed)
        w->events->removed(w->home);
    if (err) {
        w->state = READER_WAITING;
        w->was_live = false;
        if (w->events->lost)
            w->events->lost(w->home, err);
    }
    return leave(w);
}

static void take_page(struct reader_work *w, const struct page *p)
{
    bool taken = true, goes_on = true;

    if (p->finds_now)
        w->at = p->at;
    w->knows_at = true;
    w->removed_upto = p->removed_upto;
    if (!tell(w, p, NULL))
        return;
    enter(w);
    for (size_t i = 0; i < p->n && taken && w->home; i++)
        taken = hand_over(w, &p->items[i]);
    goes_on = !w->home || flush(w);
    if (!leave(w))
        return;
    if (!taken || !goes_on) {
        wait_for_room(w, false);
    } else if (!p->is_last || w->during_overflowed) {
        forget_during(w);
        ask_turn(w);
    } else {
        w->state = READER_LIVE;
        struct arena *during = w->during;
        const struct page_item *kept = w->kept;
        size_t n = w->n_kept;
        w->during = NULL;
        forget_during(w);
        if (n)
            (void)hand_over_live(w, kept, n);
        arena_free(during);
    }
}

static void page_done(struct read_job *job)
{
    struct fetch *f = container_of(job, struct fetch, read);
    struct reader_work *w = f->work;
    struct feed *feed = w->feed;
    static struct log_quiet quiet;
    bool lost = !job->ok && job->err.code == ERR_BAD_INPUT;

    w->fetch = NULL;
    feed_turn_end(feed, !job->ok && !lost);
    if (!w->home) {
        work_free(w);
    } else if (job->ok) {
        take_page(w, &f->page);
    } else if (lost) {
        (void)tell(w, NULL, &job->err);
    } else {
        log_warn_quietly(&quiet, "events cannot be read for their readers just now",
                         LZ("why", job->err.text));
        forget_during(w);
        ask_turn(w);
    }
    fetch_free(f);
}

static void on_turn(struct feed_turn *t)
{
    struct reader_work *w = container_of(t, struct reader_work, turn);
    struct fetch *f = xcalloc(1, sizeof(*f));

    f->work = w;
    f->read = (struct read_job){.run = run_page, .done = page_done};
    f->page = (struct page){.config = feed_config(w->feed),
                            .selection = &w->selection,
                            .visibility = &w->visibility,
                            .with_bodies = w->with_bodies,
                            .finds_now = !w->knows_at,
                            .turn = w->turns++,
                            .at = w->at,
                            .removed_upto = w->removed_upto,
                            .mem = arena_new(SIZE_MAX / 4)}; /* a page bounds it */
    forget_during(w);
    w->state = READER_READING;
    if (lane_query(feed_config(w->feed)->lanes, &f->read)) {
        w->fetch = f;
        return;
    }
    fetch_free(f);
    feed_turn_end(w->feed, true);
    ask_turn(w);
}

static void on_ready(struct feed_subscriber *s)
{
    ask_turn(container_of(s, struct reader_work, subscriber));
}

void reader_start(struct reader *r, struct feed *feed, const struct reader_config *config,
                  const struct position *from)
{
    struct reader_work *w = xcalloc(1, sizeof(*w));

    reader_stop(r);
    w->home = r;
    w->feed = feed;
    w->events = config->events;
    w->mem = arena_new_for(SIZE_MAX / 4, 512, 8);
    w->selection = selection_dup(&config->selection, w->mem);
    w->visibility = visibility_dup(&config->visibility, w->mem);
    w->with_bodies = config->with_bodies;
    w->state = READER_STARTING;
    w->knows_at = from != NULL;
    if (from)
        w->at = *from;
    w->turn.begin = on_turn;
    list_init(&w->turn.link);
    w->subscriber = (struct feed_subscriber){.on_events = on_events,
                                             .on_ready = on_ready,
                                             .on_writer_over = on_writer_over,
                                             .with_bodies = config->with_bodies};
    r->work = w;
    feed_subscribe(feed, &w->subscriber);
}

void reader_stop(struct reader *r)
{
    struct reader_work *w = r->work;

    if (!w)
        return;
    r->work = NULL;
    w->home = NULL;
    w->state = READER_STOPPED;
    feed_unsubscribe(w->feed, &w->subscriber);
    feed_turn_cancel(&w->turn);
    if (w->depth == 0 && !w->fetch)
        work_free(w);
}

void reader_resume(struct reader *r)
{
    struct reader_work *w = r->work;

    if (!w)
        return;
    w->has_resumed = true;
    if (w->depth > 0 || w->state != READER_WAITING)
        return;
    if (w->was_live) {
        w->state = READER_LIVE;
        return;
    }
    ask_turn(w);
}

const struct position *reader_position(const struct reader *r)
{
    return r->work && r->work->knows_at ? &r->work->at : NULL;
}

enum reader_state reader_state(const struct reader *r)
{
    return r->work ? r->work->state : READER_STOPPED;
}
