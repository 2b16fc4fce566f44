/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of one run: through the bodies of all writers, then through their events.  The walk through
 * the events checks every event up to those that stay for their age, as a verification does, because
 * a checkpoint must not cover what was tampered with. */
#include "retention/plan.h"

#include "audit/checkpoint.h"
#include "audit/event_id.h"
#include "base/clock.h"
#include "base/map.h"
#include "holds/store/verbs.h"
#include "retention/plan_impl.h"

#include <stdio.h>
#include <stdlib.h>

#define SLICE_US 10000 /* then other queries have their turn */
/* Events of one writer may be out of order in time by this much, by a clock that was set. */
#define DISORDER_MS ((int64_t)3600 * 1000)

struct plan *plan_new(struct chain *c, struct rules *rules)
{
    struct plan *p = xcalloc(1, sizeof(*p));

    p->chain = c;
    p->rules = rules;
    p->mem = arena_new(SIZE_MAX / 4);
    p->walk_mem = arena_new(SIZE_MAX / 4);
    p->known = checkpoints_new();
    p->segments_max = PLAN_SEGMENTS;
    p->events_max = SIZE_MAX;
    map_init(&p->links);
    return p;
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    map_release(&p->links);
    checkpoints_free(p->known);
    rules_free(p->rules);
    arena_free(p->walk_mem);
    arena_free(p->mem);
    free(p);
}

const char *plan_complaint(const struct plan *p)
{
    return p->complaint[0] ? p->complaint : NULL;
}

static bool read_open(struct plan *p, struct store *store, struct error *err)
{
    struct event_filter filter = {.kind = -1, .open = true};

    for (size_t n = STORE_PAGE_MAX; n == STORE_PAGE_MAX;) {
        struct event_row *rows = NULL;
        if (!store_events_page(store, &filter, STORE_PAGE_MAX, p->mem, &rows, &n, err))
            return false;
        int64_t *more = arena_alloc(p->mem, (p->n_open + n + 1) * sizeof(*more));
        if (p->n_open)
            memcpy(more, p->open, p->n_open * sizeof(*more));
        for (size_t i = 0; i < n; i++)
            more[p->n_open + i] = rows[i].id;
        p->open = more;
        p->n_open += n;
        filter.after = n ? rows[n - 1].id : 0;
    }
    return true;
}

/* What a run begins with is read after the version, so the first removal finds out whether it has
 * changed since. */
bool plan_begin(struct plan *p, struct store *store, struct error *err)
{
    struct retention_state *state = NULL;
    struct held_row *held = NULL;
    struct size_row *sizes = NULL;
    size_t n = 0, n_sizes = 0;

    if (!store_retention_state(store, p->mem, &state, err) || !state ||
        !store_held(store, p->mem, &held, &n, err) ||
        !store_sizes_by_day(store, p->mem, &sizes, &n_sizes, err) ||
        !store_folded(store, p->mem, &p->writers, &p->n_writers, err) || !read_open(p, store, err))
        return false;
    rules_hold(p->rules, held, n);
    rules_measure(p->rules, sizes, n_sizes);
    p->version = state->version;
    p->now_ms = clock_wall_ms();
    p->before_ms = rules_bodies_before(p->rules);
    if (!p->before_ms)
        plan_next_phase(p);
    return true;
}

void plan_next_phase(struct plan *p)
{
    p->phase++;
    p->at = 0;
    p->next = 0;
    p->before_ms = rules_events_before(p->rules);
    if (p->phase == PLAN_EVENTS && !p->before_ms)
        p->phase = PLAN_DONE;
}

static void next_writer(struct plan *p)
{
    p->next = 0;
    if (++p->at >= p->n_writers)
        plan_next_phase(p);
}

/* False at the end of what is old enough. */
static bool is_old(const struct plan *p, const struct slice *sl)
{
    for (size_t i = 0; i < sl->n; i++)
        if (sl->events[i].at_ms < p->before_ms + DISORDER_MS)
            return true;
    return sl->n == 0;
}

static void add_segment(struct slice *sl, const struct segment_row *segment)
{
    struct event_row *events = segment_events(segment, sl->mem);

    memcpy(sl->events + sl->n, events, segment->n * sizeof(*events));
    sl->n += segment->n;
}

bool plan_read(struct plan *p, struct store *store, struct slice *sl, struct error *err)
{
    const struct folded_row *w = &p->writers[p->at];
    const struct segment_page page = {.from = p->next,
                                      .upto = w->last_id,
                                      .with_bodies = true,
                                      .only_bodies = p->phase == PLAN_BODIES,
                                      .events = PLAN_EVENTS_PAGE};
    size_t n = 0;

    if (!store_segments(store, &page, p->segments_max, sl->mem, &sl->segments, &sl->n_segments,
                        err))
        return false;
    for (size_t i = 0; i < sl->n_segments; i++)
        n += sl->segments[i].n;
    sl->last_id = w->last_id;
    sl->events = arena_zalloc(sl->mem, (n + 1) * sizeof(*sl->events));
    sl->fates = arena_zalloc(sl->mem, (n + 1) * sizeof(*sl->fates));
    for (size_t i = 0; i < sl->n_segments; i++)
        add_segment(sl, &sl->segments[i]);
    return true;
}

static bool is_open(const struct plan *p, int64_t exec)
{
    for (size_t i = 0; i < p->n_open; i++)
        if (p->open[i] == exec)
            return true;
    return false;
}

bool plan_is_open(const struct plan *p, const struct event_row *e)
{
    return e->kind == EVENT_INTENT && is_open(p, e->id);
}

static bool may_lose_body(struct plan *p, const struct slice *sl, const struct event_row *e)
{
    return e->body.p && e->id <= sl->last_id && !plan_is_open(p, e) &&
           !rules_hold_event(p->rules, e);
}

static enum fate fate_of_body(struct plan *p, const struct event_row *e, struct removal *r)
{
    struct rule *rule = rules_of(p->rules, e->tenant);
    bool by_age = e->at_ms < rule->bodies_before_ms;
    bool by_size = rule->more_bodies > 0 && e->at_ms < rule->bodies_until_ms;

    if (e->kind == EVENT_ANCHOR && by_size)
        rules_leave_to_events(p->rules, rule, (int64_t)e->body.n);
    /* An anchor without its body would prove nothing; it goes whole. */
    if (e->kind == EVENT_ANCHOR || (!by_age && !by_size))
        return FATE_STAYS;
    const struct tally_row t = {.kind = by_age ? TALLY_BODIES_BY_AGE : TALLY_BODIES_BY_SIZE,
                                .tenant = e->tenant,
                                .events = 1,
                                .body_bytes = (int64_t)e->body.n};
    rule->more_bodies -= t.body_bytes;
    removal_tally(r, &t);
    return FATE_LOSES_BODY;
}

static void plan_bodies(struct plan *p, struct slice *sl, struct removal *r)
{
    for (size_t i = 0, first = 0; i < sl->n_segments; first += sl->segments[i++].n) {
        if (!segment_is_sound(&sl->segments[i], sl->events + first))
            continue;
        for (size_t k = first; k < first + sl->segments[i].n; k++)
            if (may_lose_body(p, sl, &sl->events[k]))
                sl->fates[k] = fate_of_body(p, &sl->events[k], r);
    }
}

/* One page: of segments with bodies, or of all. */
static bool plan_page(struct plan *p, struct store *store, struct removal *r, struct error *err)
{
    struct slice sl = {.mem = r->mem};

    if (p->at >= p->n_writers) {
        plan_next_phase(p);
        return true;
    }
    if (p->next == 0 && p->phase == PLAN_EVENTS && !plan_begin_writer(p, store, err)) {
        if (err->code != ERR_CHAIN_BROKEN)
            return false;
        snprintf(p->complaint, sizeof(p->complaint), "%s", err->text);
        next_writer(p);
        return true;
    }
    if (p->next == 0)
        p->next = event_id_make(p->writers[p->at].writer, 0);
    if (!plan_read(p, store, &sl, err))
        return false;
    if (p->phase == PLAN_BODIES) {
        plan_bodies(p, &sl, r);
    } else if (!plan_events(p, store, &sl, r, err)) {
        if (err->code != ERR_CHAIN_BROKEN)
            return false;
        snprintf(p->complaint, sizeof(p->complaint), "%s", err->text);
        sl.n_segments = 0;
    }
    size_t first = 0;
    for (size_t i = 0; i < sl.n_segments; first += sl.segments[i++].n)
        removal_segment(r, &sl.segments[i], sl.events + first, sl.fates + first);
    const struct segment_row *last = sl.n_segments ? &sl.segments[sl.n_segments - 1] : NULL;
    if (!last || !is_old(p, &sl))
        next_writer(p);
    else
        p->next = last->id + (int64_t)(last->n ? last->n : 1);
    return true;
}

bool plan_next(struct plan *p, struct store *store, struct arena *mem, struct removal *ret,
               bool *ret_more, struct error *err)
{
    int64_t until_us = clock_mono_us() + SLICE_US;

    removal_init(ret, mem, p->version);
    while (p->phase != PLAN_DONE && !ret->changes)
        if (!plan_page(p, store, ret, err))
            return false;
        else if (clock_mono_us() > until_us)
            break;
    removal_end(ret);
    if (ret->n >
        PLAN_OPS_MAX) { /* many gaps or tenants in few segments: again, with less at a time */
        p->events_max = p->segments_max > 1 ? SIZE_MAX : PLAN_EVENTS_FEW;
        p->segments_max = (p->segments_max + 3) / 4;
        p->next = 0;
        if (p->phase == PLAN_DONE)
            return error_set(err, ERR_CONFLICT, "the rest follows in the next run");
        removal_init(ret, mem, p->version);
    }
    *ret_more = p->phase != PLAN_DONE;
    return true;
}

void plan_written(struct plan *p)
{
    p->version++;
}
