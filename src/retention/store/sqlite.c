/* SPDX-License-Identifier: Apache-2.0 */
/* Retention in SQLite. */
#include "retention/store/impl.h"

#include "store/pack.h"
#include "store/sqlite_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum sq_retention_statement {
    SQ_RETENTION_BEGIN = SQ_COUNT + RETENTION_STATEMENTS,
    SQ_SEGMENT_DROP,
    SQ_SEGMENT_PUT,
    SQ_SEGMENTS,
    SQ_REMOVED_DELETE,
    SQ_REMOVED_ADD,
    SQ_TALLY_ADD,
    SQ_TALLY_PRUNE,
    SQ_EXECUTION_DELETE,
    SQ_FILE_SPACE,
};

static const struct sql_text texts[] = {
    {SQ_RETENTION_BEGIN, "UPDATE audit_retention SET version = version + 1 WHERE version = ?1"},
    {SQ_SEGMENT_DROP, "DELETE FROM events WHERE id = ?1"},
    {SQ_SEGMENT_PUT, "INSERT OR REPLACE INTO events (id, records, bodies, packed) "
                     "VALUES (?1, ?2, ?3, 1)"},
    {SQ_SEGMENTS,
     "SELECT id, packed, records, CASE WHEN ?3 THEN bodies END FROM events "
     "WHERE id >= ?1 AND id <= ?2 AND (NOT ?4 OR coalesce(length(bodies), 0) > 0) ORDER BY id "
     "LIMIT ?5"},
    {SQ_REMOVED_DELETE, "DELETE FROM audit_removed WHERE writer = ?1 AND tenant = ?2 "
                        "AND first_seq >= ?3 AND last_seq <= ?4"},
    {SQ_REMOVED_ADD, "INSERT INTO audit_removed VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"},
    {SQ_TALLY_ADD, "INSERT INTO audit_tallies VALUES (?1,?2,?3,?4,?5,?6) ON CONFLICT DO UPDATE SET "
                   "events = events + excluded.events, bytes = bytes + excluded.bytes, "
                   "body_bytes = body_bytes + excluded.body_bytes"},
    {SQ_TALLY_PRUNE, "DELETE FROM audit_tallies WHERE kind = ?1 AND tenant = ?2 AND at = ?3 "
                     "AND events = 0 AND bytes = 0 AND body_bytes = 0"},
    {SQ_EXECUTION_DELETE, "DELETE FROM long_executions WHERE id = ?1"},
    {SQ_FILE_SPACE,
     "SELECT p.page_size * c.page_count, p.page_size * f.freelist_count, v.auto_vacuum = 2 FROM "
     "pragma_page_size p, pragma_page_count c, pragma_freelist_count f, pragma_auto_vacuum v"},
    {0},
};

static bool begin(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct retention_state *row = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_RETENTION_BEGIN, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, row->version);
    return sq_run_verdict(batch->s, st, op, VERDICT_STALE, err);
}

static bool delete_by_id(struct sqlite_store *s, unsigned which, int64_t id, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, which, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, id);
    return sq_run(s, st, err);
}

static bool segment_drop(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct segment_row *row = op->row;
    op->verdict = VERDICT_OK;
    return delete_by_id(batch->s, SQ_SEGMENT_DROP, row->id, err);
}

static struct str packed(struct sqlite_store *s, struct str plain, struct buf *to)
{
    buf_reset(to);
    if (!plain.p)
        return STR_NONE;
    pack_bytes(s->packer, plain, to);
    return to->n ? buf_str(to) : STR("");
}

/* The packed bytes use buffers of their own: those of the store belong to the appended events. */
static bool segment_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct segment_row *row = op->row;
    struct sqlite_store *s = batch->s;
    sqlite3_stmt *st = sq_prepare(s, SQ_SEGMENT_PUT, err);
    if (!st)
        return false;
    struct buf records, bodies;
    buf_init(&records, SIZE_MAX / 4);
    buf_init(&bodies, SIZE_MAX / 4);
    struct sq_bind b = {.st = st};
    sq_int(&b, row->id);
    sq_blob(&b, packed(s, row->records, &records));
    sq_blob(&b, packed(s, row->bodies, &bodies));
    op->verdict = VERDICT_OK;
    bool ok = sq_run(s, st, err);
    buf_release(&records);
    buf_release(&bodies);
    return ok;
}

static bool removed_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct removed_row *row = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_REMOVED_DELETE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, row->writer);
    sq_text(&b, row->tenant);
    sq_int(&b, row->first_seq);
    sq_int(&b, row->last_seq);
    if (!sq_run(batch->s, st, err) || !(st = sq_prepare(batch->s, SQ_REMOVED_ADD, err)))
        return false;
    b = (struct sq_bind){.st = st};
    sq_bind_row(&b, &sql_removed, row, NULL);
    op->verdict = VERDICT_OK;
    return sq_run(batch->s, st, err);
}

static bool tally_add(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct tally_row *row = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TALLY_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, row->kind);
    sq_text(&b, row->tenant);
    sq_int(&b, row->at);
    sq_int(&b, row->events);
    sq_int(&b, row->bytes);
    sq_int(&b, row->body_bytes);
    if (!sq_run(batch->s, st, err) || !(st = sq_prepare(batch->s, SQ_TALLY_PRUNE, err)))
        return false;
    b = (struct sq_bind){.st = st};
    sq_int(&b, row->kind);
    sq_text(&b, row->tenant);
    sq_int(&b, row->at);
    op->verdict = VERDICT_OK;
    return sq_run(batch->s, st, err);
}

static bool executions_gone(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct executions_gone *row = op->row;
    const struct execution_gone *all = row->removed;
    for (size_t i = 0, next; i < row->n_removed; i = next) {
        int64_t *ids = arena_alloc(row->mem, (row->n_removed - i) * sizeof(*ids));
        for (next = i; next < row->n_removed && str_eq(all[next].session, all[i].session); next++) {
            ids[next - i] = all[next].exec;
            if (!delete_by_id(batch->s, SQ_EXECUTION_DELETE, all[next].exec, err))
                return false;
        }
        if (all[i].session.n && !sq_executions_remove(batch->s, all[i].session, ids, next - i, err))
            return false;
    }
    op->verdict = VERDICT_OK;
    return true;
}

static const struct sq_op ops[] = {
    {OP_RETENTION_BEGIN, begin},
    {OP_SEGMENT_DROP, segment_drop},
    {OP_SEGMENT_PUT, segment_put},
    {OP_REMOVED_PUT, removed_put},
    {OP_TALLY_ADD, tally_add},
    {OP_EXECUTIONS_GONE, executions_gone},
    {0},
};

/* Bytes that cannot be unpacked count as a segment without events; the verification reports them. */
static struct str unpacked(struct sq_row *r, bool is_packed, struct arena *mem, size_t *bytes)
{
    struct str stored = sq_peek_bytes(r), plain = stored;
    struct buf room;
    if (!stored.p)
        return STR_NONE;
    buf_init(&room, SIZE_MAX / 4);
    if (is_packed && stored.n && !unpack_bytes(stored, &room, &plain))
        plain = STR("");
    *bytes += plain.n;
    plain = arena_dup(mem, plain);
    buf_release(&room);
    return plain;
}

static size_t count_events(struct str records)
{
    struct segment_walk walk = {.id = 1, .records = records};
    struct event_row e;
    size_t n = 0;
    while (segment_next(&walk, &e))
        n++;
    return n;
}

static bool segments(struct store *store, struct store_call *c, struct error *err)
{
    const struct segment_page *page = c->filter;
    struct sqlite_store *s = sq_of(store);
    struct segment_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    sqlite3_stmt *st = sq_prepare(s, SQ_SEGMENTS, err);
    size_t n = 0, bytes = 0, events = 0, most = page->events ? page->events : SIZE_MAX;
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, page->from);
    sq_int(&b, page->upto);
    sq_int(&b, page->with_bodies);
    sq_int(&b, page->only_bodies);
    sq_int(&b, c->limit);
    for (bool row = true; n < c->limit && bytes < SEGMENT_PAGE_BYTES && events < most;) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st};
        rows[n].id = sq_get_int(&r);
        bool is_packed = sq_get_int(&r) != 0;
        rows[n].records = unpacked(&r, is_packed, c->mem, &bytes);
        rows[n].bodies = unpacked(&r, is_packed, c->mem, &bytes);
        rows[n].n = count_events(rows[n].records);
        events += rows[n++].n;
    }
    sq_reset(st);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool file_space(struct store *store, struct store_call *c, struct error *err)
{
    struct file_space *ret = c->ret;
    struct sqlite_store *s = sq_of(store);
    bool row = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_FILE_SPACE, err);
    if (!st || !sq_step(s, st, &row, err))
        return false;
    struct sq_row r = {.st = st};
    *ret = (struct file_space){0};
    if (row)
        *ret = (struct file_space){
            .bytes = sq_get_int(&r), .free = sq_get_int(&r), .shrinks = sq_get_int(&r) != 0};
    sq_reset(st);
    return true;
}

static bool file_shrink(struct store *store, struct store_call *c, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    char sql[64];
    int64_t pages = c->number / 8192 + 1;
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%" PRId64 ")", pages);
    if (!sq_begin(s, err))
        return false;
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        sq_error(s, err, "giving back unused pages");
        sq_rollback(s);
        return false;
    }
    if (!sq_commit(s, err))
        return false;
    sq_checkpoint(s);
    return true;
}

static const struct verb_handler verbs[] = {
    {VERB_SEGMENTS, segments},
    {VERB_FILE_SPACE, file_space},
    {VERB_FILE_SHRINK, file_shrink},
    {0},
};

const struct sqlite_family retention_sqlite = {.texts = texts, .ops = ops, .verbs = verbs};
