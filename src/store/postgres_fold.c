/* SPDX-License-Identifier: Apache-2.0 */
/* The fold: projects events slice by slice.
 *
 * One slice is one transaction over events of one writer.  It locks the writer's mark, reads the
 * events after the mark, projects them (postgres_exec.c) and moves the mark.  The mark moves under
 * its lock in the transaction that writes the projection.  So each event is folded exactly once, no
 * matter which node folds it, even if a process is killed during the fold.
 *
 * Each node folds the writers that appended through its own connection.  Writers with a lapsed
 * lease are folded by the node that reaps, and by every node when it starts. */
#include "store/postgres_impl.h"

#include <stdlib.h>

#include "base/clock.h"

/* Bounds of one slice; the bytes include bodies. */
#define SLICE_BYTES (8 << 20)
#define SLICE_EVENTS 8192
#define SLICE_EVENTS_MIN 64
/* For copies of the events and their projection. */
#define SLICE_ARENA (256 << 20)

void pg_fold_later(struct pg_store *s, int64_t writer)
{
    size_t i = s->n_pending;
    while (i > 0 && s->pending[i - 1] > writer)
        i--;
    if (i > 0 && s->pending[i - 1] == writer)
        return;
    if (s->n_pending == s->cap_pending) {
        s->cap_pending = s->cap_pending ? 2 * s->cap_pending : 8;
        s->pending = xrealloc(s->pending, s->cap_pending * sizeof(*s->pending));
    }
    memmove(&s->pending[i + 1], &s->pending[i], (s->n_pending - i) * sizeof(*s->pending));
    s->pending[i] = writer;
    s->n_pending++;
}

bool pg_fold_discover(struct pg_store *s, int64_t now_ms, struct error *err)
{
    struct arena *mem = arena_new(1 << 20);
    struct pg_tail *tails = NULL;
    size_t n = 0;
    bool ok = pg_ready(s, err) && pg_tails(s, now_ms, mem, &tails, &n, err);
    for (size_t i = 0; ok && i < n; i++)
        pg_fold_later(s, tails[i].writer);
    arena_free(mem);
    return ok;
}

struct slice {
    struct pg_store *s;
    int64_t writer, mark;
    struct arena *mem;
    struct event_row *events;
    size_t n, max;
    bool left;
};

/* Locks the mark until the transaction ends. */
static bool lock_mark(struct slice *sl, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_int(&p, sl->writer);
    if (!pg_run(sl->s, PG_FOLD_LOCK, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    sl->mark = pg_get_int(&r);
    pq.clear(res);
    return true;
}

static bool read_events(struct slice *sl, struct error *err)
{
    struct pg_events c;
    struct event_row e;
    bool found = true, ok = true;
    int64_t last = sl->writer << EVENT_WRITER_SHIFT | EVENT_COUNT_MASK;
    pg_events_open(sl->s, &c, sl->mark + 1, last);
    c.with_bodies = true;
    while ((ok = pg_events_next(&c, &e, &found, err)) && found) {
        sl->left = sl->n == sl->max || arena_used(sl->mem) > SLICE_BYTES;
        if (sl->left)
            break;
        event_row_keep(sl->mem, &e, &sl->events[sl->n++]);
    }
    pg_events_close(&c);
    return ok;
}

static bool fold_slice(struct slice *sl, struct error *err)
{
    if (!pg_ready(sl->s, err) || !pg_exec_text(sl->s, "BEGIN", "beginning", NULL, err))
        return false;
    if (lock_mark(sl, err) && read_events(sl, err)) {
        if (sl->n == 0) {
            pg_rollback(sl->s);
            return true;
        }
        if (pg_project(sl->s, sl->writer, sl->events, sl->n, sl->mem, err))
            return true;
    }
    pg_rollback(sl->s);
    return false;
}

/* If a slow server cannot fold a slice in time, the next slice is smaller; otherwise these events
 * would never be folded. */
static void adapt(struct pg_store *s, bool ok)
{
    size_t n = ok ? 2 * s->slice_events : s->slice_events / 2;
    s->slice_events = n > SLICE_EVENTS ? SLICE_EVENTS : n < SLICE_EVENTS_MIN ? SLICE_EVENTS_MIN : n;
}

/* Folds one slice of the first pending writer.  Removes the writer when no events are left. */
static bool fold_writer(struct pg_store *s, size_t max, size_t *ret_n, struct error *err)
{
    struct slice sl = {.s = s, .writer = s->pending[0]};
    if (s->slice_events == 0)
        s->slice_events = SLICE_EVENTS;
    sl.max = max < s->slice_events ? max : s->slice_events;
    sl.mem = arena_new(SLICE_ARENA);
    sl.events = xcalloc(sl.max, sizeof(*sl.events));
    bool ok = fold_slice(&sl, err);
    adapt(s, ok);
    if (ok && !sl.left) {
        s->n_pending--;
        memmove(s->pending, s->pending + 1, s->n_pending * sizeof(*s->pending));
    }
    *ret_n = sl.n;
    free(sl.events);
    arena_free(sl.mem);
    return ok;
}

static bool fold(struct store *store, struct store_call *c, struct error *err)
{
    bool *ret_left = c->ret;
    struct pg_store *s = pg_of(store);
    size_t left = c->limit ? c->limit : 1;
    if (!s->discovered && !pg_fold_discover(s, clock_life_ms(), err))
        return false;
    s->discovered = true;
    while (s->n_pending && left) {
        size_t n = 0;
        if (!fold_writer(s, left, &n, err))
            return false;
        left -= n;
    }
    *ret_left = s->n_pending > 0;
    return true;
}

bool pg_fold_all(struct store *s, int64_t now_ms, struct error *err)
{
    if (!pg_fold_discover(pg_of(s), now_ms, err))
        return false;
    for (bool left = true; left;)
        if (!store_fold(s, SLICE_EVENTS, &left, err))
            return false;
    return true;
}

const struct verb_handler pg_fold_verbs[] = {
    {VERB_FOLD, fold},
    {0},
};
