/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the calls of a session from the events.
 *
 * Events have no index by session, so a page scans a range of ids.  Ids of one writer follow time,
 * so a search by halves finds the first event of each writer that may belong to the session, and
 * the scan of a writer ends with the first event after the session's end.  A page has two passes:
 * the first reads events without bodies and decides which calls fit, the second reads the bodies of
 * those calls alone. */
#include "recording/recording.h"

#include "base/clock.h"
#include "recording/impl.h"

#include <assert.h>
#include <stdlib.h>

/* Bodies whose ids differ by at most this much are read by one scan. */
#define BODY_GAP 64

void recording_begin(struct recording *r, const struct session_row *row, int64_t now_ms)
{
    bool is_over = row->status == SESSION_EXPIRED || row->status == SESSION_TERMINATED;
    int64_t last = row->last_activity_ms;

    assert(row->tenant.n <= sizeof(r->tenant) && row->id.n <= sizeof(r->session_id));
    *r = (struct recording){.tenant_n = row->tenant.n, .session_n = row->id.n};
    memcpy(r->tenant, row->tenant.p, row->tenant.n);
    memcpy(r->session_id, row->id.p, row->id.n);
    if (row->terminated_ms > last)
        last = row->terminated_ms;
    r->since_ms = row->created_ms - EVENT_CLOCK_SLACK_MS;
    r->until_ms = now_ms;
    r->over_ms = is_over ? last + EVENT_CLOCK_SLACK_MS : INT64_MAX;
}

/* Finding the range. */

static int64_t end_of_writer(int64_t writer)
{
    return (writer + 1) << EVENT_WRITER_SHIFT;
}

/* The first event after `after`, or with `newest` the last one, before `before` (0: any). */
static bool probe(struct store *store, int64_t after, int64_t before, bool newest,
                  struct event_row *ret, bool *ret_found, struct error *err)
{
    struct event_filter f = {.after = after, .before = before, .kind = -1, .newest_first = newest};
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_row *rows = NULL;
    size_t n = 0;
    bool ok = store_events_page(store, &f, 1, mem, &rows, &n, err);

    *ret_found = ok && n;
    if (*ret_found)
        *ret = (struct event_row){.id = rows[0].id, .at_ms = rows[0].at_ms};
    arena_free(mem);
    return ok;
}

/* Finds the id of the writer's first event that is not older than since_ms; one exists in
 * low..high. */
static bool search(struct store *store, int64_t since_ms, int64_t low, int64_t high, int64_t *ret,
                   struct error *err)
{
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        struct event_row e;
        bool found;
        if (!probe(store, mid - 1, high + 1, false, &e, &found, err))
            return false;
        if (found && e.at_ms < since_ms)
            low = e.id + 1;
        else
            high = mid;
    }
    *ret = low;
    return true;
}

/* Moves r->after to just before the next event that may belong to the session, in any writer.
 * r->in_writer is the writer of that event. */
static bool enter_writer(struct recording *r, struct store *store, struct error *err)
{
    for (;;) {
        struct event_row first, last;
        bool found;
        if (!probe(store, r->after, 0, false, &first, &found, err))
            return false;
        if (!found) {
            r->at_end = true;
            return true;
        }
        int64_t writer = first.id >> EVENT_WRITER_SHIFT, at = first.id;
        bool is_past = first.at_ms > r->over_ms;
        if (!is_past && r->in_writer != writer && first.at_ms < r->since_ms) {
            if (!probe(store, first.id - 1, end_of_writer(writer), true, &last, &found, err))
                return false;
            is_past = !found || last.at_ms < r->since_ms;
            if (!is_past && !search(store, r->since_ms, first.id, last.id, &at, err))
                return false;
        }
        r->in_writer = writer;
        r->after = at - 1;
        if (!is_past)
            return true;
        r->after = end_of_writer(writer) - 1;
    }
}

/* A page. */

struct wanted {
    struct event_row *event; /* its `body` is to be read */
};

struct page {
    struct recording *r;
    struct store *store;
    struct arena *mem;
    struct event_row *events; /* of this scan, without bodies */
    size_t n_events;
    struct joined *joined;
    size_t n, limit;
    size_t bytes; /* of the bodies to be read */
    struct error *err;
};

static struct event_filter filter_of(const struct recording *r)
{
    return (struct event_filter){
        .tenant = str_n(r->tenant, r->tenant_n),
        .session_id = str_n(r->session_id, r->session_n),
        .kind = -1,
    };
}

static bool is_begin(const struct event_row *e)
{
    return e->kind == EVENT_INTENT || e->kind == EVENT_NOTE || e->kind == EVENT_RECORD ||
           e->kind == EVENT_IMPORT;
}

static bool is_zero(const uint8_t sha[32])
{
    static const uint8_t zero[32];
    return memcmp(sha, zero, 32) == 0;
}

static bool has_stored(const struct event_row *e)
{
    return e && e->body_len >= 0 && !is_zero(e->stored_sha);
}

static size_t room_of(const struct event_row *e)
{
    return has_stored(e) ? (size_t)e->body_len : 0;
}

static bool is_guess(const struct event_row *outcome)
{
    return str_eq(outcome->outcome, STR("indeterminate"));
}

/* The first outcome counts.  A later outcome replaces only a guessed one. */
static void take_outcome(struct joined *j, struct event_row *e)
{
    if (!j->outcome || is_guess(j->outcome))
        j->outcome = e;
}

/* Outcomes that are not in this scan.  Only behind a guessed one another is looked for, because that
 * scan goes over all later events. */
static bool look_up_outcome(struct page *p, struct joined *j)
{
    struct event_filter f = filter_of(p->r);
    struct event_row *rows = NULL;
    int64_t scanned;
    size_t n = 0;

    f.exec = j->begin->id;
    f.kind = EVENT_OUTCOME;
    f.ret_scanned = &scanned;
    if (!store_events_page(p->store, &f, 1, p->mem, &rows, &n, p->err) ||
        (n && is_guess(&rows[0]) && !store_events_page(p->store, &f, 4, p->mem, &rows, &n, p->err)))
        return false;
    for (size_t i = 0; i < n; i++)
        take_outcome(j, &rows[i]);
    return true;
}

/* Joins the calls of the scan until the page is full.  *ret_next is the first event that is left
 * for the next page; NULL: none. */
static bool join(struct page *p, struct event_row **ret_next)
{
    *ret_next = NULL;
    for (size_t i = 0; i < p->n_events; i++) {
        struct event_row *e = &p->events[i];
        if (!is_begin(e) || e->at_ms > p->r->until_ms)
            continue;
        if (p->n == p->limit || (p->n && p->bytes > RECORDING_PAGE_BYTES)) {
            *ret_next = e;
            return true;
        }
        struct joined *j = &p->joined[p->n++];
        *j = (struct joined){.begin = e};
        for (size_t k = i + 1; k < p->n_events && e->kind == EVENT_INTENT; k++)
            if (p->events[k].kind == EVENT_OUTCOME && p->events[k].exec == e->id)
                take_outcome(j, &p->events[k]);
        if (e->kind == EVENT_INTENT && !j->outcome && !look_up_outcome(p, j))
            return false;
        p->bytes += room_of(j->begin) + room_of(j->outcome);
    }
    return true;
}

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct wanted *)a)->event->id, y = ((const struct wanted *)b)->event->id;
    return x < y ? -1 : x > y;
}

/* Reads the bodies of the events first..last of `all`, whose ids are close to each other. */
static bool read_bodies(struct page *p, const struct wanted *all, size_t n)
{
    struct event_filter f = filter_of(p->r);
    int64_t scanned, last = all[n - 1].event->id;

    f.after = all[0].event->id - 1;
    f.before = last + 1;
    f.with_bodies = true;
    f.ret_scanned = &scanned;
    for (size_t at = 0; f.after < last;) {
        struct event_row *rows = NULL;
        size_t n_rows = 0;
        if (!store_events_page(p->store, &f, STORE_PAGE_MAX, p->mem, &rows, &n_rows, p->err))
            return false;
        for (size_t i = 0; i < n_rows && at < n; i++) {
            if (rows[i].id == all[at].event->id)
                all[at++].event->body = rows[i].body;
        }
        if (!scanned && n_rows < STORE_PAGE_MAX)
            break;
        f.after = scanned ? scanned : rows[n_rows - 1].id;
    }
    return true;
}

static bool load_bodies(struct page *p)
{
    struct wanted *all = arena_zalloc(p->mem, (2 * p->n + 1) * sizeof(*all));
    size_t n = 0, from = 0;

    for (size_t i = 0; i < p->n; i++) {
        if (has_stored(p->joined[i].begin))
            all[n++].event = p->joined[i].begin;
        if (has_stored(p->joined[i].outcome))
            all[n++].event = p->joined[i].outcome;
    }
    qsort(all, n, sizeof(*all), by_id);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && all[i].event->id - all[i - 1].event->id <= BODY_GAP)
            continue;
        if (!read_bodies(p, all + from, i - from))
            return false;
        from = i;
    }
    return true;
}

/* Scans, joins and reads bodies; moves r->after. */
static bool fill(struct page *p)
{
    struct recording *r = p->r;
    struct event_filter f = filter_of(r);
    struct event_row *next;
    int64_t scanned = 0;

    f.after = r->after;
    f.before = end_of_writer(r->in_writer);
    f.ret_scanned = &scanned;
    if (!store_events_page(p->store, &f, STORE_PAGE_MAX, p->mem, &p->events, &p->n_events,
                           p->err) ||
        !join(p, &next) || !load_bodies(p))
        return false;
    if (next)
        r->after = next->id - 1;
    else if (scanned)
        r->after = scanned;
    else if (p->n_events == STORE_PAGE_MAX)
        r->after = p->events[p->n_events - 1].id;
    else
        r->after = end_of_writer(r->in_writer) - 1;
    return true;
}

bool recording_page(struct recording *r, struct store *store, unsigned limit, struct arena *mem,
                    struct recorded_call **ret_calls, size_t *ret_n, struct error *err)
{
    struct recording at = *r;
    struct page p = {.r = &at, .store = store, .mem = mem, .limit = limit, .err = err};

    if (!limit || limit > RECORDING_PAGE_MAX)
        return error_set(err, ERR_BAD_INPUT, "A page has 1 to %d calls; ask for fewer.",
                         RECORDING_PAGE_MAX);
    p.joined = arena_zalloc(mem, limit * sizeof(*p.joined));
    if (!enter_writer(&at, store, err) || (!at.at_end && !fill(&p)))
        return false;
    struct recorded_call *calls = arena_zalloc(mem, (p.n + 1) * sizeof(*calls));
    for (size_t i = 0; i < p.n; i++) {
        recorded_call_join(&p.joined[i], mem, &calls[i]);
        calls[i].number = ++at.number;
    }
    *r = at;
    *ret_calls = calls;
    *ret_n = p.n;
    return true;
}

bool recording_walk(struct store *store, const struct session_row *row,
                    bool (*each)(void *arg, const struct recorded_call *call, struct error *err),
                    void *arg, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct recording r;
    bool ok = true;

    for (recording_begin(&r, row, clock_wall_ms()); ok && !r.at_end; arena_reset(mem)) {
        struct recorded_call *calls;
        size_t n = 0;
        ok = recording_page(&r, store, RECORDING_PAGE_MAX, mem, &calls, &n, err);
        for (size_t i = 0; ok && i < n; i++)
            ok = each(arg, &calls[i], err);
    }
    arena_free(mem);
    return ok;
}
