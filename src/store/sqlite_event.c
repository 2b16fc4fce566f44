/* SPDX-License-Identifier: Apache-2.0 */
/* Events in SQLite: appending, paging, and the heads of their chains.
 *
 * The table has no index but its key, so everything that is not asked by id is a scan of a range of
 * ids.  Scans by readers have a deadline; what must be quick however old the database is (heads,
 * counts, one execution) goes by the fold's own table and reads only the tail behind it. */
#include "store/sqlite_impl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"
#include "store/record.h"

static struct str record_of(struct sqlite_store *s, const struct event_row *e)
{
    if (e->record.p)
        return e->record;
    buf_reset(&s->record);
    size_t n = record_write(e, buf_room(&s->record, record_room(e)));
    buf_grown(&s->record, n);
    return buf_str(&s->record);
}

void sq_peek_event(struct sq_row *r, struct event_row *e)
{
    uint8_t mac[32];
    int64_t id = sq_get_int(r);
    sq_get_sha(r, mac);
    struct str record = sq_peek_bytes(r);
    if (!record_read(id, record, e))
        *e = (struct event_row){.id = id, .tenant = STR("")};
    memcpy(e->mac, mac, sizeof(mac));
    e->body = sq_peek_bytes(r);
}

static void keep_event(struct arena *mem, const struct event_row *from, struct event_row *to)
{
    struct str *const texts[] = {&to->tenant,  &to->owner,   &to->session_id, &to->transport,
                                 &to->carrier, &to->server,  &to->method,     &to->tool,
                                 &to->era,     &to->outcome, &to->error,      &to->body};
    *to = *from;
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(mem, *texts[i]);
}

void sq_read_event(struct sq_row *r, struct event_row *e)
{
    struct event_row peeked;
    sq_peek_event(r, &peeked);
    keep_event(r->mem, &peeked, e);
}

/* An id that is taken must be taken by this very event: a commit of unknown fate is repeated, but
 * one event never hides another. */
static bool check_repeated(struct sqlite_store *s, const struct event_row *e, struct error *err)
{
    uint8_t mac[32];
    bool row = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_EVENT_MAC, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, e->id);
    if (!sq_step(s, st, &row, err))
        return false;
    struct sq_row r = {.st = st};
    if (row)
        sq_get_sha(&r, mac);
    sq_reset(st);
    if (row && memcmp(mac, e->mac, 32) == 0)
        return true;
    return error_set(err, ERR_INTERNAL,
                     "Event id %" PRId64 ".%" PRId64
                     " is taken by another event; restart holdfast to "
                     "begin a new writer.",
                     e->id >> EVENT_WRITER_SHIFT, e->id & EVENT_COUNT_MASK);
}

bool sq_event_append(struct sqlite_store *s, const struct event_row *e, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_EVENT_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, e->id);
    sq_sha(&b, e->mac);
    sq_blob(&b, record_of(s, e));
    sq_blob(&b, e->body);
    if (!sq_run(s, st, err))
        return false;
    if (sqlite3_changes(s->db) == 0)
        return check_repeated(s, e, err);
    sq_fact_append(s, e);
    return true;
}

/* Reads the single number of a one-parameter statement; *ret_found false when there is no row. */
static bool select_number(struct sqlite_store *s, enum sq_statement which, int64_t key,
                          bool *ret_found, int64_t *ret, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, which, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, key);
    if (!sq_step(s, st, ret_found, err))
        return false;
    *ret = *ret_found ? sqlite3_column_int64(st, 0) : 0;
    sq_reset(st);
    return true;
}

bool sq_event_next(struct sqlite_store *s, int64_t id, int64_t *ret_id, struct error *err)
{
    bool found = false;
    return select_number(s, SQ_EVENT_NEXT, id, &found, ret_id, err);
}

bool sq_watermark(struct sqlite_store *s, int64_t writer, int64_t *ret_id, struct error *err)
{
    bool found = false;
    int64_t id = 0;
    if (!select_number(s, SQ_FOLD_WATERMARK, writer, &found, &id, err))
        return false;
    *ret_id = id > writer << EVENT_WRITER_SHIFT ? id : writer << EVENT_WRITER_SHIFT;
    return true;
}

static bool is_note(struct sqlite_store *s, int64_t id, bool *ret, struct error *err)
{
    bool row = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_EVENTS_UP, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, false);
    sq_int(&b, id - 1);
    sq_int(&b, id + 1);
    if (!sq_step(s, st, &row, err))
        return false;
    struct sq_row r = {.st = st};
    struct event_row e = {0};
    if (row)
        sq_peek_event(&r, &e);
    *ret = row && e.kind == EVENT_NOTE;
    sq_reset(st);
    return true;
}

/* Where the events of one execution are.  *ret_second is 0 when only a scan can tell; a note stands
 * alone, a closed execution has its outcome's id in the projection. */
static bool find_pair(struct sqlite_store *s, int64_t exec, int64_t *ret_second, struct error *err)
{
    bool found = false;
    int64_t outcome = 0;
    *ret_second = 0;
    if (!select_number(s, SQ_EXEC_OUTCOME, exec, &found, &outcome, err))
        return false;
    if (!found && !is_note(s, exec, &found, err))
        return false;
    if (found)
        *ret_second = outcome ? outcome : exec;
    return true;
}

static void bind_range(sqlite3_stmt *st, const struct event_filter *f, int64_t second)
{
    struct sq_bind b = {.st = st};
    int64_t after = f->exec && !second && f->after < f->exec ? f->exec - 1 : f->after;
    sq_int(&b, f->with_bodies);
    sq_int(&b, after);
    sq_int(&b, f->before ? f->before : INT64_MAX);
    if (second) {
        sq_int(&b, f->exec);
        sq_int(&b, second);
    }
}

static bool text_matches(struct str want, struct str have)
{
    return !want.p || (have.p && str_eq(want, have));
}

static bool matches(const struct event_filter *f, const struct event_row *e)
{
    return e->at_ms >= f->since_ms && (!f->exec || e->exec == f->exec) &&
           (f->kind < 0 || (int)e->kind == f->kind) && text_matches(f->tenant, e->tenant) &&
           text_matches(f->session_id, e->session_id) && text_matches(f->server, e->server) &&
           text_matches(f->tool, e->tool) && text_matches(f->outcome, e->outcome);
}

static bool read_events(struct sqlite_store *s, sqlite3_stmt *st, const struct event_filter *f,
                        unsigned limit, struct arena *mem, struct event_row **ret_rows,
                        size_t *ret_n, struct error *err)
{
    struct event_row *rows = arena_zalloc(mem, limit * sizeof(*rows));
    size_t n = 0;
    for (bool row = true; n < limit;) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st};
        struct event_row e;
        sq_peek_event(&r, &e);
        if (matches(f, &e))
            keep_event(mem, &e, &rows[n++]);
    }
    sq_reset(st);
    *ret_rows = rows;
    *ret_n = n;
    return true;
}

bool sq_events_page(struct store *store, const struct event_filter *f, unsigned limit,
                    struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                    struct error *err)
{
    static const enum sq_statement texts[2][2] = {{SQ_EVENTS_UP, SQ_EVENTS_DOWN},
                                                  {SQ_EVENTS_PAIR_UP, SQ_EVENTS_PAIR_DOWN}};
    struct sqlite_store *s = sq_of(store);
    int64_t second = 0;
    if (f->exec && !find_pair(s, f->exec, &second, err))
        return false;
    sqlite3_stmt *st = sq_prepare(s, texts[second != 0][f->newest_first], err);
    if (!st)
        return false;
    bind_range(st, f, second);
    sq_page_begin(s);
    bool ok = read_events(s, st, f, limit, mem, ret_rows, ret_n, err);
    sq_page_end(s);
    return ok;
}

/* Heads while they are gathered: those the fold knows, moved on by the tail behind it. */
struct heads {
    struct arena *mem;
    struct map by_key; /* "writer/tenant" → struct chain_head */
    struct chain_head **order;
    size_t n, cap;
};

static struct chain_head *head_of(struct heads *h, int64_t writer, struct str tenant)
{
    struct str key = arena_printf(h->mem, "%" PRId64 "/%.*s", writer, STR_ARG(tenant));
    struct chain_head *head = map_get(&h->by_key, key);
    if (head)
        return head;
    head = arena_new_of(h->mem, struct chain_head);
    head->writer = writer;
    head->tenant = tenant;
    map_put(&h->by_key, key, head);
    if (h->n == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 16;
        h->order = xrealloc(h->order, h->cap * sizeof(struct chain_head *));
    }
    h->order[h->n++] = head;
    return head;
}

static bool heads_folded(struct sqlite_store *s, struct heads *h, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_FOLD_HEADS, err);
    if (!st)
        return false;
    for (bool row = true;;) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st, .mem = h->mem};
        struct str tenant = sq_get_bytes(&r);
        struct chain_head *head = head_of(h, sq_get_int(&r), tenant);
        head->seq = sq_get_int(&r);
        head->last_id = sq_get_int(&r);
        sq_get_sha(&r, head->mac);
    }
    sq_reset(st);
    return true;
}

static bool heads_tail(struct sqlite_store *s, struct heads *h, int64_t writer, struct error *err)
{
    int64_t watermark = 0;
    struct chain_head *head = NULL;
    sqlite3_stmt *st = sq_prepare(s, SQ_EVENTS_TAIL, err);
    if (!st || !sq_watermark(s, writer, &watermark, err))
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, watermark);
    sq_int(&b, writer << EVENT_WRITER_SHIFT | EVENT_COUNT_MASK);
    sq_int(&b, -1);
    for (bool row = true;;) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st};
        struct event_row e;
        sq_peek_event(&r, &e);
        if (!head || !str_eq(head->tenant, e.tenant))
            head = head_of(h, writer, arena_dup(h->mem, e.tenant));
        head->last_id = e.id;
        head->seq = e.seq;
        memcpy(head->mac, e.mac, sizeof(head->mac));
    }
    sq_reset(st);
    return true;
}

static bool heads_gather(struct sqlite_store *s, struct heads *h, struct error *err)
{
    if (!heads_folded(s, h, err))
        return false;
    for (int64_t id = 0;;) {
        if (!sq_event_next(s, id, &id, err))
            return false;
        if (id == 0)
            return true;
        int64_t writer = id >> EVENT_WRITER_SHIFT;
        if (!heads_tail(s, h, writer, err))
            return false;
        id = (writer + 1) << EVENT_WRITER_SHIFT;
    }
}

static int by_writer_and_tenant(const void *a, const void *b)
{
    const struct chain_head *x = a;
    const struct chain_head *y = b;
    if (x->writer != y->writer)
        return x->writer < y->writer ? -1 : 1;
    return str_cmp(x->tenant, y->tenant);
}

bool sq_chain_heads(struct store *store, struct arena *mem, struct chain_head **ret_heads,
                    size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct heads h = {.mem = mem};
    if (!sq_begin_read(s, err))
        return false;
    bool ok = heads_gather(s, &h, err);
    sq_end_read(s);
    if (ok) {
        struct chain_head *heads = arena_zalloc(mem, h.n * sizeof(*heads) + 1);
        for (size_t i = 0; i < h.n; i++)
            heads[i] = *h.order[i];
        qsort(heads, h.n, sizeof(*heads), by_writer_and_tenant);
        *ret_heads = heads;
        *ret_n = h.n;
    }
    map_release(&h.by_key);
    free(h.order);
    return ok;
}
