/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks in SQLite. */
#include "sinks/store/impl.h"

#include "store/sqlite_impl.h"

enum sq_sink_statement {
    SQ_SINK_TAKE = SQ_COUNT + SINK_STATEMENTS,
    SQ_SINK_SAVE,
};

/* ?2 the writer or 0, ?3 now, ?4 the end of the lease, ?5 the writer that asks. */
static const struct sql_text texts[] = {
    {SQ_SINK_TAKE,
     "INSERT INTO sink_positions (name, writer, saved_at, lease_until) VALUES (?1, ?2, ?3, ?4) "
     "ON CONFLICT (name) DO UPDATE SET writer = excluded.writer, lease_until = "
     "excluded.lease_until WHERE ?6 OR writer IN (0, ?5) OR lease_until <= ?3 OR EXISTS "
     "(SELECT 1 FROM writers w WHERE w.number = sink_positions.writer AND w.ended_at IS NOT NULL)"},
    {SQ_SINK_SAVE, "UPDATE sink_positions SET writer = ?2, saved_at = ?3, lease_until = ?4, "
                   "position = coalesce(?6, position) WHERE name = ?1 AND writer = ?5"},
    {0},
};

static void bind_lease(struct sq_bind *b, const struct sink_claim *c)
{
    sq_text(b, c->name);
    sq_int(b, c->lease_ms ? c->writer : 0);
    sq_int(b, c->now_ms);
    sq_int(b, c->now_ms + c->lease_ms);
    sq_int(b, c->writer);
}

static bool sink_take(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct sink_claim *c = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SINK_TAKE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_lease(&b, c);
    sq_int(&b, c->is_alone);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool sink_save(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct sink_claim *c = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SINK_SAVE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_lease(&b, c);
    sq_text(&b, c->position);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static const struct sq_op ops[] = {{OP_SINK_TAKE, sink_take}, {OP_SINK_SAVE, sink_save}, {0}};
static const struct verb_handler verbs[] = {{0}};

const struct sqlite_family sink_sqlite = {.texts = texts, .ops = ops, .verbs = verbs};
