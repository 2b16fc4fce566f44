/* SPDX-License-Identifier: Apache-2.0 */
/* The executions of a session in SQLite: the list that the fold writes, and pages for readers.
 *
 * A row of session_executions lists the executions of one session and one writer in one slice of
 * the fold, under the id of the first.  Rows neither overlap nor change.  The executions themselves
 * are read from the events. */
#include "store/sqlite_impl.h"

#include <stdlib.h>

static void put_number(struct buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_addc(b, (char)(value | 0x80));
    buf_addc(b, (char)value);
}

/* Returns false at the end, or when the rest is not a number. */
static bool get_number(struct str *s, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && s->n; shift += 7) {
        uint8_t byte = (uint8_t)*s->p++;
        s->n--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool insert_row(struct sqlite_store *s, struct str session, int64_t first, struct str ids,
                       struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_EXECUTIONS_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, session);
    sq_int(&b, first);
    sq_blob(&b, ids);
    return sq_run(s, st, err);
}

bool sq_executions_add(struct sqlite_store *s, struct str session, const struct sq_listed *listed,
                       struct buf *scratch, struct error *err)
{
    while (listed) {
        int64_t first = listed->exec;
        buf_reset(scratch);
        for (int64_t before = first;
             listed && listed->exec >> EVENT_WRITER_SHIFT == first >> EVENT_WRITER_SHIFT;
             listed = listed->next) {
            put_number(scratch, (uint64_t)(listed->exec - before));
            put_number(scratch,
                       listed->outcome ? (uint64_t)(listed->outcome - listed->exec) + 1 : 0);
            before = listed->exec;
        }
        if (!insert_row(s, session, first, buf_str(scratch), err))
            return false;
    }
    return true;
}

/* A page that is being filled, newest first. */
struct page {
    struct sqlite_store *s;
    int64_t before;
    struct sq_listed *items;
    size_t n, limit;
};

/* Adds the executions of one row, the last one first. */
static void page_add(struct page *p, int64_t first, struct str ids)
{
    size_t n = 0;
    uint64_t step, outcome;
    struct sq_listed *all = xcalloc(ids.n / 2 + 1, sizeof(*all));
    for (int64_t exec = first; get_number(&ids, &step) && get_number(&ids, &outcome); n++) {
        exec += (int64_t)step;
        all[n].exec = exec;
        all[n].outcome = outcome ? exec + (int64_t)(outcome - 1) : 0;
    }
    while (n-- > 0 && p->n < p->limit)
        if (all[n].exec < p->before)
            p->items[p->n++] = all[n];
    free(all);
}

static bool page_gather(struct page *p, struct str session, struct error *err)
{
    p->n = 0;
    sqlite3_stmt *st = sq_prepare(p->s, SQ_SESSION_EXECUTIONS, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, session);
    sq_int(&b, p->before);
    for (bool row = true; p->n < p->limit;) {
        if (!sq_step(p->s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st};
        int64_t first = sq_get_int(&r);
        page_add(p, first, sq_peek_bytes(&r));
    }
    sq_reset(st);
    return true;
}

static bool read_event(struct sqlite_store *s, int64_t id, bool with_body, struct arena *mem,
                       struct event_row *ret, bool *ret_found, struct error *err)
{
    struct sq_events c;
    struct event_row e;
    if (!sq_events_open(s, &c, SQ_EVENTS_UP, id, id, with_body, err) ||
        !sq_events_next(&c, &e, ret_found, err))
        return false;
    if (*ret_found)
        event_row_keep(mem, &e, ret);
    sq_events_close(&c);
    return true;
}

/* *ret_found is false when the execution's events cannot be read; the verification reports that. */
static bool read_execution(struct sqlite_store *s, const struct sq_listed *x,
                           const struct principal *who, bool with_bodies, struct arena *mem,
                           struct execution_row *ret, bool *ret_found, struct error *err)
{
    struct event_row first, outcome;
    int64_t outcome_id = x->outcome;
    bool closed = outcome_id != 0;
    struct arena *scratch = arena_new(SIZE_MAX / 4);
    bool ok =
        (closed || sq_select_number(s, SQ_LONG_OUTCOME, x->exec, &closed, &outcome_id, err)) &&
        read_event(s, x->exec, with_bodies, scratch, &first, ret_found, err);
    closed = outcome_id != 0 && outcome_id != x->exec; /* a record is its own outcome */
    if (ok && closed)
        ok = read_event(s, outcome_id, with_bodies, scratch, &outcome, &closed, err);
    *ret_found = ok && *ret_found && str_eq(first.tenant, who->tenant);
    if (*ret_found)
        store_execution_join(&first, closed ? &outcome : NULL, with_bodies, mem, ret);
    arena_free(scratch);
    return ok;
}

/* Reads the gathered executions.  Those of which retention removed the events are passed over. */
static bool read_gathered(struct page *p, const struct principal *who, bool with_bodies,
                          struct arena *mem, struct execution_row *rows, size_t *n,
                          struct error *err)
{
    for (size_t i = 0; i < p->n && *n < p->limit; i++) {
        bool found = false;
        if (!read_execution(p->s, &p->items[i], who, with_bodies, mem, &rows[*n], &found, err))
            return false;
        *n += found;
        p->before = p->items[i].exec;
    }
    return true;
}

static bool read_page(struct page *p, const struct store_call *c, struct execution_row *rows,
                      size_t *ret_n, struct error *err)
{
    size_t n = 0;
    do
        if (!page_gather(p, c->session_id, err) ||
            !read_gathered(p, c->who, c->flag, c->mem, rows, &n, err))
            return false;
    while (n < p->limit && p->n == p->limit);
    *ret_n = n;
    return true;
}

static bool executions_page(struct store *store, struct store_call *c, struct error *err)
{
    struct page p = {
        .s = sq_of(store), .before = c->after_id ? c->after_id : INT64_MAX, .limit = c->limit};
    struct sq_session_state state;
    size_t n = 0;
    if (!sq_session_state(p.s, c->who, c->session_id, 0, &state, err))
        return false;
    struct execution_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    p.items = xcalloc(c->limit, sizeof(*p.items));
    sq_page_begin(p.s);
    bool ok = !state.found || read_page(&p, c, rows, &n, err);
    sq_page_end(p.s);
    free(p.items);
    if (ok) {
        c->rows = rows;
        c->n = n;
    }
    return ok;
}

const struct verb_handler sq_execution_verbs[] = {
    {VERB_EXECUTIONS_PAGE, executions_page},
    {0},
};
