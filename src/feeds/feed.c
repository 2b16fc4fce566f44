/* SPDX-License-Identifier: Apache-2.0 */
/* The subscribers, the turns of their page reads, and the tail.
 *
 * The tail knows for each writer the id up to which its events were handed out.  It begins at the
 * newest events: its first read only notes the ids, and the feed is ready after it.  Subscribers read
 * their pages afterwards, so an event is in a page or is handed out later.
 *
 * A tail job belongs to the lanes until it is done.  If the last subscriber leaves meanwhile, the job
 * is dropped: `tail` no longer points to it. */
#include "feeds/feed.h"

#include "audit/event_id.h"
#include "base/clock.h"
#include "base/log_quiet.h"
#include "feeds/store/verbs.h"

#include <stdlib.h>

#define PAGE 200
#define PAGE_WITH_BODIES 16
#define BACK_OFF_MS 1000

struct tail_writer {
    int64_t number;
    int64_t seen; /* id: handed out up to here */
};

/* One read of the tail. */
struct tail_job {
    struct read_job read;
    struct feed *feed; /* NULL: dropped */
    struct arena *mem;
    const struct feed_config *config;
    bool first;
    struct tail_writer *writers; /* in: as known; out: as known afterwards */
    size_t n;
    int64_t highest; /* in and out: of all writers that were ever listed */
    size_t turn;     /* the writer to begin with, for fairness */
    bool with_bodies, more;
    struct event_row *rows;
    size_t n_rows, limit;
    int64_t *over; /* writers that ended and are read to their end */
    size_t n_over;
};

struct feed {
    struct feed_config config;
    struct list subscribers;
    struct list *next; /* while events are handed out: the subscriber after this one */
    size_t n_subscribers;
    struct audit_subscriber own;
    struct loop_task ready_task;
    bool ready_is_deferred, is_freed;
    bool ready;
    struct tail_job *tail; /* the running job */
    bool again;            /* nudged while a job ran */
    struct tail_writer *writers;
    size_t n_writers, turn;
    int64_t highest;
    struct loop_timer *poll;
    struct list turns;
    unsigned n_turns;
    bool backing_off;
    struct loop_timer *back_off;
    uint64_t n_polls, n_events;
};

int64_t feed_over_before_ms(void)
{
    return clock_life_ms() - FEED_LAPSED_MS;
}

bool feed_writer_is_over(const struct feed_config *c, const struct event_writer *w)
{
    if (w->number == c->writer)
        return false;
    if (!c->is_shared)
        return true;
    return w->ended_ms ? w->ended_ms < clock_life_ms() - FEED_ENDED_MS
                       : w->lease_until_ms < feed_over_before_ms();
}

const struct feed_config *feed_config(const struct feed *l)
{
    return &l->config;
}

struct feed_counts feed_counts(const struct feed *l)
{
    return (struct feed_counts){l->n_subscribers, l->n_writers, l->n_polls, l->n_events};
}

/* Handing out. */

static void hand_out(struct feed *l, const struct event_row *rows, size_t n)
{
    for (struct list *node = l->subscribers.next; node != &l->subscribers; node = l->next) {
        struct feed_subscriber *s = list_entry(node, struct feed_subscriber, link);
        l->next = node->next;
        s->on_events(s, rows, n);
    }
    l->next = NULL;
}

static void writer_over(struct feed *l, int64_t writer)
{
    for (struct list *node = l->subscribers.next; node != &l->subscribers; node = l->next) {
        struct feed_subscriber *s = list_entry(node, struct feed_subscriber, link);
        l->next = node->next;
        if (s->on_writer_over)
            s->on_writer_over(s, writer);
    }
    l->next = NULL;
}

static void on_own_events(struct audit_subscriber *s, const struct event_row *rows, size_t n)
{
    hand_out(container_of(s, struct feed, own), rows, n);
}

static void on_ready_task(struct loop_task *task)
{
    struct feed *l = container_of(task, struct feed, ready_task);

    l->ready_is_deferred = false;
    if (l->is_freed) {
        free(l);
        return;
    }
    for (struct list *node = l->subscribers.next; l->ready && node != &l->subscribers;
         node = l->next) {
        struct feed_subscriber *s = list_entry(node, struct feed_subscriber, link);
        l->next = node->next;
        if (!s->is_told) {
            s->is_told = true;
            s->on_ready(s);
        }
    }
    l->next = NULL;
}

static void tell_ready(struct feed *l)
{
    if (l->ready_is_deferred || !l->ready)
        return;
    l->ready_is_deferred = true;
    loop_defer(l->config.loop, &l->ready_task);
}

/* The tail, on the query lane. */

bool feed_newest_of(struct store *store, const struct event_writer *w, struct arena *mem,
                    int64_t *ret, struct error *err)
{
    struct event_filter filter = {.kind = -1,
                                  .after = event_id_make(w->number, 0),
                                  .before = event_id_make(w->number + 1, 0),
                                  .newest_first = true};
    struct event_row *rows = NULL;
    size_t n = 0;

    *ret = event_id_make(w->number, 0);
    if (w->last_id != EVENT_WRITER_UNREAD) {
        *ret = w->last_id ? w->last_id : *ret;
        return true;
    }
    if (!store_events_page(store, &filter, 1, mem, &rows, &n, err))
        return false;
    *ret = n ? rows[0].id : *ret;
    return true;
}

/* Reads the new events of one writer, as far as there is room.  *ret_end: all of them are read. */
static bool read_writer(struct tail_job *t, struct store *store, struct tail_writer *w,
                        bool *ret_end, struct error *err)
{
    int64_t scanned = 0;
    struct event_filter filter = {.kind = -1,
                                  .after = w->seen,
                                  .before = event_id_make(w->number + 1, 0),
                                  .with_bodies = t->with_bodies,
                                  .ret_scanned = &scanned};
    struct event_row *rows = NULL;
    size_t n = 0, room = t->limit - t->n_rows;

    if (!store_events_page(store, &filter, (unsigned)room, t->mem, &rows, &n, err))
        return false;
    memcpy(t->rows + t->n_rows, rows, n * sizeof(*rows));
    t->n_rows += n;
    *ret_end = n < room && !scanned;
    if (n)
        w->seen = rows[n - 1].id;
    return true;
}

static const struct tail_writer *known(const struct tail_job *t, int64_t number)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->writers[i].number == number)
            return &t->writers[i];
    return NULL;
}

/* The writers that may append, as a new array: those that are known keep their place; one that
 * appeared begins at its first event. */
struct roll {
    struct tail_writer *items;
    struct event_writer *rows;
    size_t n, cap;
};

/* Whether no event of the writer can have been handed out or skipped yet. */
static bool is_new(const struct tail_job *t, const struct event_writer *row)
{
    return !t->first &&
           (row->number > t->highest || row->started_ms > clock_life_ms() - FEED_APPEARS_MS);
}

static bool add_writer(struct tail_job *t, struct store *store, struct roll *r,
                       const struct event_writer *row, struct error *err)
{
    const struct tail_writer *old = known(t, row->number);
    struct tail_writer w = {row->number, event_id_make(row->number, 0)};

    if (row->number == t->config->writer || (!old && feed_writer_is_over(t->config, row)))
        return true;
    if (old)
        w.seen = old->seen;
    else if (!is_new(t, row) && !feed_newest_of(store, row, t->mem, &w.seen, err))
        return false;
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 16;
        r->items =
            arena_try_resize(t->mem, r->items, r->cap * sizeof(*r->items), cap * sizeof(*r->items));
        r->rows =
            arena_try_resize(t->mem, r->rows, r->cap * sizeof(*r->rows), cap * sizeof(*r->rows));
        r->cap = cap;
    }
    r->rows[r->n] = *row;
    r->items[r->n++] = w;
    return true;
}

static bool list_writers(struct tail_job *t, struct store *store, struct roll *r, struct error *err)
{
    struct event_writer *rows = NULL;
    int64_t highest = t->highest;
    size_t n = PAGE;

    for (int64_t after = 0; n == PAGE; after = rows[n - 1].number) {
        if (!store_event_writers(store, after, feed_over_before_ms(), PAGE, t->mem, &rows, &n, err))
            return false;
        for (size_t i = 0; i < n; i++)
            if (!add_writer(t, store, r, &rows[i], err))
                return false;
        if (n && rows[n - 1].number > highest)
            highest = rows[n - 1].number;
        if (n == 0)
            break;
    }
    t->highest = highest;
    /* Known writers that the store lists no more: read them to their end, too. */
    for (size_t i = 0; i < t->n; i++) {
        bool listed = t->writers[i].number == t->config->writer;
        for (size_t k = 0; k < r->n && !listed; k++)
            listed = r->items[k].number == t->writers[i].number;
        struct event_writer gone = {
            .number = t->writers[i].number, .last_id = EVENT_WRITER_UNREAD, .ended_ms = 1};
        if (!listed && !add_writer(t, store, r, &gone, err))
            return false;
    }
    return true;
}

static bool run_tail(struct read_job *job, struct store *store)
{
    struct tail_job *t = container_of(job, struct tail_job, read);
    struct roll r = {.n = 0};
    size_t kept = 0;

    if (!list_writers(t, store, &r, &job->err))
        return false;
    t->limit = t->with_bodies ? PAGE_WITH_BODIES : PAGE;
    t->rows = arena_zalloc(t->mem, t->limit * sizeof(*t->rows));
    t->over = arena_zalloc(t->mem, (r.n + 1) * sizeof(*t->over));
    for (size_t k = 0; k < r.n; k++) {
        size_t i = (t->turn + k) % r.n;
        bool has_none =
            r.rows[i].last_id != EVENT_WRITER_UNREAD && r.rows[i].last_id <= r.items[i].seen;
        bool end = has_none;
        if (t->n_rows == t->limit)
            t->more = true;
        else if (!has_none && !read_writer(t, store, &r.items[i], &end, &job->err))
            return false;
        t->more |= !end;
        if (end && feed_writer_is_over(t->config, &r.rows[i])) {
            t->over[t->n_over++] = r.items[i].number;
            r.items[i].number = 0;
        }
    }
    for (size_t i = 0; i < r.n; i++)
        if (r.items[i].number)
            r.items[kept++] = r.items[i];
    t->writers = r.items;
    t->n = kept;
    return true;
}

/* The tail, on the loop. */

static void tail_job_free(struct tail_job *t)
{
    arena_free(t->mem);
    free(t);
}

static void tail_read(struct feed *l);

static void tail_take(struct feed *l, const struct tail_job *t)
{
    free(l->writers);
    l->writers = xcalloc(t->n + 1, sizeof(*l->writers));
    if (t->n)
        memcpy(l->writers, t->writers, t->n * sizeof(*l->writers));
    l->n_writers = t->n;
    l->highest = t->highest;
    l->n_events += t->n_rows;
    l->turn++;
    if (!l->ready) {
        l->ready = true;
        tell_ready(l);
    }
    if (t->n_rows)
        hand_out(l, t->rows, t->n_rows);
    for (size_t i = 0; i < t->n_over; i++)
        writer_over(l, t->over[i]);
}

static void tail_done(struct read_job *job)
{
    struct tail_job *t = container_of(job, struct tail_job, read);
    struct feed *l = t->feed;
    static struct log_quiet quiet;

    if (l) {
        l->tail = NULL;
        if (job->ok)
            tail_take(l, t);
        else
            log_warn_quietly(&quiet, "the events of other nodes cannot be read just now",
                             LZ("why", job->err.text));
        if (l->n_subscribers && job->ok && (t->more || l->again))
            tail_read(l);
    }
    tail_job_free(t);
}

static bool wants_bodies(const struct feed *l)
{
    for (const struct list *node = l->subscribers.next; node != &l->subscribers; node = node->next)
        if (list_entry(node, struct feed_subscriber, link)->with_bodies)
            return true;
    return false;
}

static void tail_read(struct feed *l)
{
    if (l->tail)
        return;
    struct tail_job *t = xcalloc(1, sizeof(*t));
    t->read = (struct read_job){.run = run_tail, .done = tail_done};
    t->feed = l;
    t->config = &l->config;
    t->mem = arena_new(SIZE_MAX / 4); /* a page bounds it */
    t->first = !l->ready;
    t->highest = l->highest;
    t->turn = l->turn;
    t->with_bodies = wants_bodies(l);
    t->n = l->n_writers;
    t->writers = arena_zalloc(t->mem, (t->n + 1) * sizeof(*t->writers));
    if (t->n)
        memcpy(t->writers, l->writers, t->n * sizeof(*t->writers));
    l->again = false;
    l->n_polls++;
    if (lane_query(l->config.lanes, &t->read))
        l->tail = t;
    else
        tail_job_free(t);
}

static void on_poll(void *arg)
{
    tail_read(arg);
}

void feed_nudge(struct feed *l)
{
    if (!l || !l->config.is_shared || !l->n_subscribers)
        return;
    l->again = l->tail != NULL;
    tail_read(l);
}

static void start(struct feed *l)
{
    audit_subscribe(l->config.audit, &l->own);
    if (!l->config.is_shared) {
        l->ready = true;
        return;
    }
    loop_timer_start(l->poll, FEED_POLL_MS, FEED_POLL_MS);
    tail_read(l);
}

/* Drops the running job; its events are read again. */
static void drop_tail(struct feed *l)
{
    if (l->tail)
        l->tail->feed = NULL;
    l->tail = NULL;
}

static void stop(struct feed *l)
{
    audit_unsubscribe(l->config.audit, &l->own);
    loop_timer_stop(l->poll);
    drop_tail(l);
    free(l->writers);
    l->writers = NULL;
    l->n_writers = 0;
    l->ready = false;
}

void feed_subscribe(struct feed *l, struct feed_subscriber *s)
{
    s->is_told = false;
    list_push(&l->subscribers, &s->link);
    if (l->n_subscribers++ == 0)
        start(l);
    if (l->tail && s->with_bodies && !l->tail->with_bodies) {
        drop_tail(l);
        tail_read(l);
    }
    tell_ready(l);
}

void feed_unsubscribe(struct feed *l, struct feed_subscriber *s)
{
    if (l->next == &s->link)
        l->next = s->link.next;
    list_remove(&s->link);
    if (--l->n_subscribers == 0)
        stop(l);
}

/* Turns. */

static void next_turns(struct feed *l)
{
    while (!l->backing_off && l->n_turns < FEED_TURNS_MAX && !list_empty(&l->turns)) {
        struct feed_turn *t = list_entry(list_pop(&l->turns), struct feed_turn, link);
        l->n_turns++;
        t->begin(t);
    }
}

static void on_back_off(void *arg)
{
    struct feed *l = arg;

    l->backing_off = false;
    next_turns(l);
}

void feed_turn_ask(struct feed *l, struct feed_turn *t)
{
    list_push(&l->turns, &t->link);
    next_turns(l);
}

void feed_turn_cancel(struct feed_turn *t)
{
    list_remove(&t->link);
}

void feed_turn_end(struct feed *l, bool failed)
{
    l->n_turns--;
    if (failed && !l->backing_off) {
        l->backing_off = true;
        loop_timer_start(l->back_off, BACK_OFF_MS, 0);
    }
    next_turns(l);
}

struct feed *feed_new(const struct feed_config *config)
{
    struct feed *l = xcalloc(1, sizeof(*l));

    l->config = *config;
    list_init(&l->subscribers);
    list_init(&l->turns);
    l->own.on_events = on_own_events;
    l->ready_task.fn = on_ready_task;
    l->poll = loop_timer_new(config->loop, on_poll, l);
    l->back_off = loop_timer_new(config->loop, on_back_off, l);
    return l;
}

void feed_free(struct feed *l)
{
    if (!l)
        return;
    loop_timer_free(l->poll);
    loop_timer_free(l->back_off);
    free(l->writers);
    l->is_freed = true;
    if (!l->ready_is_deferred)
        free(l);
}
