/* SPDX-License-Identifier: Apache-2.0 */
/* Events in PostgreSQL: lookups and pages.
 *
 * A row is a segment (store/segment.h) under the id of its first event.  That key is the table's
 * only index, so every query other than by id scans a range of ids and filters the events here.
 * Scans read some segments at a time, more with each step.  Scans for readers have a deadline. */
#include "store/postgres_impl.h"

#include <stdlib.h>

#define CHUNK_FIRST 4
#define CHUNK_MOST 64

bool pg_event_at(struct pg_store *s, int64_t id, PGresult **ret_res, struct event_row *ret,
                 bool *ret_found, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    struct segment_walk walk = {0};
    pg_int(&p, id);
    if (!pg_run(s, PG_EVENT_AT, &p, &res, err))
        return false;
    if (pq.ntuples(res) > 0) {
        struct pg_row r = {.res = res};
        walk.id = pg_get_int(&r);
        walk.records = pg_peek_bytes(&r);
    }
    *ret_found = false;
    while (!*ret_found && walk.records.n && segment_next(&walk, ret))
        *ret_found = ret->id == id;
    *ret_res = res;
    return true;
}

void pg_events_open(struct pg_store *s, struct pg_events *c, int64_t from, int64_t upto)
{
    *c = (struct pg_events){.s = s, .next = from, .chunk = CHUNK_FIRST};
    c->scan = (struct segment_scan){.from = from, .upto = upto};
}

void pg_events_close(struct pg_events *c)
{
    pq.clear(c->res);
    c->res = NULL;
    segment_scan_release(&c->scan);
}

static bool next_chunk(struct pg_events *c, struct error *err)
{
    bool down = c->scan.down;
    enum pg_statement which = down ? PG_EVENTS_DOWN : PG_EVENTS_UP;
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_bool(&p, c->with_bodies);
    pg_int(&p, down ? c->scan.from : c->next);
    pg_int(&p, down ? c->next : c->scan.upto);
    pg_int(&p, c->chunk);
    pg_bool(&p, !down && c->is_begun);
    if (!(c->is_page ? pg_page(c->s, which, &p, &res, err) : pg_run(c->s, which, &p, &res, err)))
        return false;
    pq.clear(c->res);
    c->res = res;
    c->row = 0;
    c->is_begun = true;
    c->is_last = pq.ntuples(res) < c->chunk;
    c->chunk = c->chunk < CHUNK_MOST ? 2 * c->chunk : CHUNK_MOST;
    return true;
}

static bool next_segment(struct pg_events *c, bool *ret_found, struct error *err)
{
    *ret_found = false;
    while (!c->res || c->row == pq.ntuples(c->res)) {
        if (c->is_last)
            return true;
        if (!next_chunk(c, err))
            return false;
    }
    struct pg_row r = {.res = c->res, .row = c->row++};
    int64_t id = pg_get_int(&r);
    int64_t n = pg_get_int(&r);
    c->next = c->scan.down ? id - 1 : id + n;
    c->scan.walk.id = id;
    c->scan.walk.records = pg_peek_bytes(&r);
    c->scan.walk.bodies = pg_peek_bytes(&r);
    *ret_found = true;
    return true;
}

bool pg_events_next(struct pg_events *c, struct event_row *ret, bool *ret_found, struct error *err)
{
    while (!segment_scan_next(&c->scan, ret)) {
        if (!next_segment(c, ret_found, err))
            return false;
        if (!*ret_found)
            return true;
    }
    *ret_found = true;
    return true;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

bool pg_events_of(struct pg_store *s, const int64_t *ids, size_t n, bool with_bodies,
                  struct arena *mem, struct event_row *ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    int64_t *sorted = arena_alloc(mem, (n + 1) * sizeof(*sorted));
    memcpy(sorted, ids, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_number);
    pg_bool(&p, with_bodies);
    pg_ints(&p, sorted, n, mem);
    if (!pg_query(s, PG_EVENTS_OF, &p, &res, err))
        return false;
    size_t found = 0;
    for (int row = 0; row < pq.ntuples(res); row++) {
        struct pg_row r = {.res = res, .row = row};
        struct segment_walk walk = {.id = pg_get_int(&r)};
        struct event_row e;
        pg_get_int(&r);
        walk.records = pg_peek_bytes(&r);
        walk.bodies = pg_peek_bytes(&r);
        while (found < n && segment_next(&walk, &e))
            if (bsearch(&e.id, sorted, n, sizeof(*sorted), by_number))
                event_row_keep(mem, &e, &ret_rows[found++]);
    }
    pq.clear(res);
    *ret_n = found;
    return true;
}

/* A page being filled. */
struct page {
    struct pg_store *s;
    const struct event_filter *f;
    unsigned limit;
    struct arena *mem;
    struct event_row *rows;
    size_t n;
    int64_t until_us;
};

static bool is_late(const struct page *g, struct error *err)
{
    if (!g->s->read_only || pg_now_us() < g->until_us)
        return false;
    error_set(err, ERR_TIMEOUT, "The page took too long; ask for a narrower one.");
    return true;
}

static void open_range(const struct page *g, struct pg_events *c, int64_t from, int64_t upto)
{
    pg_events_open(g->s, c, from, upto);
    c->scan.down = g->f->newest_first;
    c->next = c->scan.down ? upto : from;
    c->with_bodies = g->f->with_bodies;
    c->is_page = true;
}

/* Reads the matching events of one range until the page is full.  Nodes write at the same time,
 * each under its own ids, so an event that is too old ends only the events of its own writer. */
static bool read_range(struct page *g, int64_t from, int64_t upto, struct error *err)
{
    struct pg_events c;
    struct event_row e;
    bool found = true, ok = true;
    int64_t last = 0;
    open_range(g, &c, from, upto);
    while (g->n < g->limit) {
        ok = pg_events_next(&c, &e, &found, err);
        if (ok && found && is_late(g, err)) {
            if (g->f->ret_scanned && last)
                *g->f->ret_scanned = last;
            else
                ok = false;
            break;
        }
        if (!ok || !found)
            break;
        last = e.id;
        if (event_is_before_all(g->f, &e)) {
            last = e.id >> EVENT_WRITER_SHIFT << EVENT_WRITER_SHIFT;
            pg_events_close(&c);
            open_range(g, &c, from, last - 1);
        } else if (event_filter_matches(g->f, &e)) {
            event_row_keep(g->mem, &e, &g->rows[g->n++]);
        }
    }
    pg_events_close(&c);
    return ok;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int by_id(const void *a, const void *b)
{
    return by_number(&((const struct event_row *)a)->id, &((const struct event_row *)b)->id);
}

/* Reads the unfolded events of one execution.  The caller reads the folded events afterwards: an
 * event that is folded in between is then seen twice rather than not at all. */
static bool gather_execution(struct page *g, struct event_row *rows, size_t room, size_t *ret_n,
                             struct error *err)
{
    struct pg_tail *tails = NULL;
    size_t n_tails = 0, n = 0;
    if (!pg_ready(g->s, err) || !pg_tails(g->s, -1, g->mem, &tails, &n_tails, err))
        return false;
    for (size_t i = 0; i < n_tails; i++) {
        struct event_filter f = {.kind = -1, .exec = g->f->exec, .with_bodies = g->f->with_bodies};
        struct page tail = *g;
        tail.f = &f;
        tail.limit = (unsigned)(room - n);
        tail.rows = rows + n;
        tail.n = 0;
        if (!read_range(&tail, most(tails[i].mark + 1, g->f->exec), tails[i].last_id, err))
            return false;
        n += tail.n;
    }
    *ret_n = n;
    return true;
}

/* The event ids that the projection has for one execution; the execution's own id is first. */
static bool folded_ids(struct page *g, int64_t *ids, size_t room, size_t *ret_n, struct error *err)
{
    char uuid[EXECUTION_UUID_TEXT];
    struct pg_params p = {0};
    PGresult *res = NULL;
    execution_uuid(g->f->exec, uuid);
    pg_uuid(&p, str_of(uuid));
    if (!pg_query(g->s, PG_EXEC_OUTCOMES, &p, &res, err))
        return false;
    size_t n = 0;
    ids[n++] = g->f->exec;
    for (int i = 0; i < pq.ntuples(res) && n < room; i++) {
        struct pg_row r = {.res = res, .row = i};
        ids[n++] = pg_get_int(&r);
    }
    pq.clear(res);
    *ret_n = n;
    return true;
}

#define EVENTS_OF_ONE STORE_PAGE_MAX

static bool read_execution(struct page *g, struct error *err)
{
    struct event_row *rows = arena_zalloc(g->mem, 2 * EVENTS_OF_ONE * sizeof(*rows));
    int64_t ids[EVENTS_OF_ONE];
    size_t n_tail = 0, n_ids = 0, n_folded = 0;
    if (!gather_execution(g, rows, EVENTS_OF_ONE, &n_tail, err) ||
        !folded_ids(g, ids, EVENTS_OF_ONE, &n_ids, err) ||
        !pg_events_of(g->s, ids, n_ids, g->f->with_bodies, g->mem, rows + n_tail, &n_folded, err))
        return false;
    size_t n = n_tail + n_folded;
    qsort(rows, n, sizeof(*rows), by_id);
    for (size_t i = 0; i < n && g->n < g->limit; i++) {
        size_t at = g->f->newest_first ? n - 1 - i : i;
        bool seen = g->n && g->rows[g->n - 1].id == rows[at].id;
        if (!seen && event_filter_matches(g->f, &rows[at]))
            g->rows[g->n++] = rows[at];
    }
    return true;
}

/* Reads the unfolded events before the projection, so that an event folded in between is seen in
 * both. */
static bool gather_open(struct page *g, struct open_set *open, struct error *err)
{
    struct pg_tail *tails = NULL;
    size_t n_tails = 0;
    PGresult *res = NULL;
    if (!pg_ready(g->s, err) || !pg_tails(g->s, -1, g->mem, &tails, &n_tails, err))
        return false;
    for (size_t i = 0; i < n_tails; i++) {
        struct pg_events c;
        struct event_row e;
        bool found = false, ok;
        pg_events_open(g->s, &c, tails[i].mark + 1, tails[i].last_id);
        c.is_page = true;
        while ((ok = pg_events_next(&c, &e, &found, err)) && found)
            open_set_note(open, &e);
        pg_events_close(&c);
        if (!ok)
            return false;
    }
    if (!pg_page(g->s, PG_OPEN_ALL, NULL, &res, err))
        return false;
    struct arena *scratch = arena_new(1024);
    for (int i = 0; i < pq.ntuples(res); i++) {
        struct pg_row r = {.res = res, .row = i, .mem = scratch};
        int64_t exec;
        if (execution_uuid_parse(pg_get_uuid(&r), &exec))
            open_set_add(open, exec);
        arena_reset(scratch);
    }
    arena_free(scratch);
    pq.clear(res);
    return true;
}

/* Reads as many events at a time as fit on the page, because most of them match. */
static bool read_open(struct page *g, const struct open_set *open, struct error *err)
{
    struct event_row *rows = arena_zalloc(g->mem, g->limit * sizeof(*rows));
    for (size_t at = 0; at < open->n_opened && g->n < g->limit; at += g->limit) {
        size_t n = open->n_opened - at < g->limit ? open->n_opened - at : g->limit, found = 0;
        if (at && is_late(g, err)) {
            if (g->f->ret_scanned)
                *g->f->ret_scanned = open->opened[at - 1];
            return g->f->ret_scanned != NULL;
        }
        if (!pg_events_of(g->s, open->opened + at, n, g->f->with_bodies, g->mem, rows, &found, err))
            return false;
        for (size_t i = 0; i < found && g->n < g->limit; i++) {
            const struct event_row *e = &rows[g->f->newest_first ? found - 1 - i : i];
            if (event_filter_matches(g->f, e))
                g->rows[g->n++] = *e;
        }
    }
    return true;
}

static bool open_page(struct page *g, struct error *err)
{
    struct open_set open = {0};
    bool ok = gather_open(g, &open, err);
    if (ok) {
        open_set_filter(&open, g->f);
        ok = read_open(g, &open, err);
    }
    open_set_release(&open);
    return ok;
}

static bool events_page(struct store *store, struct store_call *c, struct error *err)
{
    const struct event_filter *f = c->filter;
    struct page g = {.s = pg_of(store), .f = f, .limit = c->limit, .mem = c->mem};
    g.rows = arena_zalloc(c->mem, c->limit * sizeof(*g.rows));
    g.until_us = pg_now_us() + STORE_PAGE_MS * 1000;
    int64_t from = f->after < INT64_MAX ? f->after + 1 : f->after;
    int64_t upto = f->before ? f->before - 1 : INT64_MAX;
    bool ok = f->open   ? open_page(&g, err)
              : f->exec ? read_execution(&g, err)
                        : read_range(&g, from, upto, err);
    if (ok) {
        c->rows = g.rows;
        c->n = g.n;
    }
    return ok;
}

const struct verb_handler pg_event_verbs[] = {
    {VERB_EVENTS_PAGE, events_page},
    {0},
};
