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

/* One row of a list, unpacked; the caller frees *ret. */
static size_t unpack_row(int64_t first, struct str ids, struct sq_listed **ret)
{
    struct sq_listed *all = xcalloc(ids.n / 2 + 1, sizeof(*all));
    uint64_t step, outcome;
    size_t n = 0;
    for (int64_t exec = first; get_number(&ids, &step) && get_number(&ids, &outcome); n++) {
        exec += (int64_t)step;
        all[n].exec = exec;
        all[n].outcome = outcome ? exec + (int64_t)(outcome - 1) : 0;
    }
    *ret = all;
    return n;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool delete_row(struct sqlite_store *s, struct str session, int64_t first, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_EXECUTIONS_DELETE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, session);
    sq_int(&b, first);
    return sq_run(s, st, err);
}

/* Writes the row that begins at `first` anew without `ids`. */
static bool write_rest(struct sqlite_store *s, struct str session, int64_t first,
                       struct sq_listed *all, size_t n_all, const int64_t *ids, size_t n,
                       struct error *err)
{
    struct sq_listed *head = NULL, **end = &head;
    struct buf scratch;
    for (size_t i = 0; i < n_all; i++)
        if (!bsearch(&all[i].exec, ids, n, sizeof(*ids), by_number)) {
            all[i].next = NULL;
            *end = &all[i];
            end = &all[i].next;
        }
    buf_init(&scratch, SIZE_MAX / 4);
    bool ok =
        delete_row(s, session, first, err) && sq_executions_add(s, session, head, &scratch, err);
    buf_release(&scratch);
    return ok;
}

/* The last row that begins before `before`; *ret is NULL when there is none. */
static bool row_before(struct sqlite_store *s, struct str session, int64_t before,
                       int64_t *ret_first, struct sq_listed **ret, size_t *ret_n, struct error *err)
{
    bool found = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_EXECUTIONS, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, session);
    sq_int(&b, before);
    *ret = NULL;
    if (!sq_step(s, st, &found, err))
        return false;
    if (found) {
        struct sq_row r = {.st = st};
        *ret_first = sq_get_int(&r);
        *ret_n = unpack_row(*ret_first, sq_peek_bytes(&r), ret);
    }
    sq_reset(st);
    return true;
}

/* From the last row that may hold one of the ids down to the one that holds the first of them. */
bool sq_executions_remove(struct sqlite_store *s, struct str session, const int64_t *ids, size_t n,
                          struct error *err)
{
    for (int64_t before = ids[n - 1] + 1; before > ids[0];) {
        struct sq_listed *all = NULL;
        size_t n_all = 0;
        int64_t first = 0;
        if (!row_before(s, session, before, &first, &all, &n_all, err))
            return false;
        if (!all)
            return true;
        bool ok = write_rest(s, session, first, all, n_all, ids, n, err);
        free(all);
        if (!ok)
            return false;
        before = first;
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
    struct sq_listed *all;
    size_t n = unpack_row(first, ids, &all);
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
