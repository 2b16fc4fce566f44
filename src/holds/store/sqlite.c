/* SPDX-License-Identifier: Apache-2.0 */
/* Holds in SQLite. */
#include "holds/store/impl.h"

#include "store/sqlite_impl.h"

enum sq_hold_statement {
    SQ_HOLD_SESSION_IS = SQ_COUNT + HOLD_STATEMENTS,
    SQ_HOLD_USER_IS,
    SQ_HOLDS_LIVE,
    SQ_HOLD_ADD,
    SQ_HOLD_RELEASE,
    SQ_HOLDS_PRUNE,
};

static const struct sql_text texts[] = {
    {SQ_HOLD_SESSION_IS, "SELECT 1 FROM edge_mcp_sessions WHERE id = ?1 AND tenant_id = ?2"},
    {SQ_HOLD_USER_IS, "SELECT 1 FROM users WHERE id = ?1 AND tenant_id = ?2"},
    {SQ_HOLDS_LIVE, "SELECT count(*), count(*) FILTER (WHERE kind = ?2 AND target = ?3) "
                    "FROM audit_holds WHERE tenant_id = ?1 AND released_at IS NULL"},
    {SQ_HOLD_ADD, "INSERT INTO audit_holds (id, tenant_id, kind, target, reason, made_by, "
                  "created_at) VALUES (?,?,?,?,?,?,?)"},
    {SQ_HOLD_RELEASE, "UPDATE audit_holds SET released_at = ?3, released_by = ?4 WHERE id = ?1 "
                      "AND tenant_id = ?2 AND released_at IS NULL"},
    {SQ_HOLDS_PRUNE,
     "DELETE FROM audit_holds WHERE tenant_id = ?1 AND released_at IS NOT NULL AND id <= (SELECT "
     "id FROM audit_holds WHERE tenant_id = ?1 AND released_at IS NOT NULL ORDER BY id DESC "
     "LIMIT 1 OFFSET ?2)"},
    {0},
};

static bool exists(struct sqlite_store *s, const struct hold_row *row, bool *ret, struct error *err)
{
    sqlite3_stmt *st =
        sq_prepare(s, row->kind == HOLD_SESSION ? SQ_HOLD_SESSION_IS : SQ_HOLD_USER_IS, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->target);
    sq_text(&b, row->tenant);
    return sq_run_exists(s, st, ret, err);
}

/* The live holds of the tenant, and those of this target: 0 or 1. */
static bool live(struct sqlite_store *s, const struct hold_row *row, int64_t *ret_n,
                 int64_t *ret_same, struct error *err)
{
    bool found = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_HOLDS_LIVE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->tenant);
    sq_int(&b, row->kind);
    sq_text(&b, row->target);
    if (!sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    *ret_n = sq_get_int(&r);
    *ret_same = sq_get_int(&r);
    sq_reset(st);
    return true;
}

static bool add(struct sqlite_store *s, const struct hold_row *row, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_HOLD_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->id);
    sq_text(&b, row->tenant);
    sq_int(&b, row->kind);
    sq_text(&b, row->target);
    sq_text(&b, row->reason);
    sq_text(&b, row->made_by);
    sq_int(&b, row->created_ms);
    return sq_run(s, st, err);
}

static bool hold_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct hold_row *row = op->row;
    bool found = false;
    int64_t n = 0, same = 0;
    if (!exists(batch->s, row, &found, err) || !live(batch->s, row, &n, &same, err))
        return false;
    op->verdict = !found           ? VERDICT_MISSING
                  : same           ? VERDICT_DUPLICATE
                  : n >= HOLDS_MAX ? VERDICT_LIMIT
                                   : VERDICT_OK;
    return op->verdict != VERDICT_OK || add(batch->s, row, err);
}

static bool prune(struct sqlite_store *s, struct str tenant, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_HOLDS_PRUNE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    sq_int(&b, HOLDS_RELEASED_KEPT);
    return sq_run(s, st, err);
}

static bool hold_release(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct hold_row *row = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_HOLD_RELEASE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->id);
    sq_text(&b, row->tenant);
    sq_int(&b, row->released_ms);
    sq_text(&b, row->released_by);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err) &&
           (op->verdict != VERDICT_OK || prune(batch->s, row->tenant, err));
}

static const struct sq_op ops[] = {
    {OP_HOLD_PUT, hold_put},
    {OP_HOLD_RELEASE, hold_release},
    {0},
};

static const struct verb_handler verbs[] = {{0}};

const struct sqlite_family hold_sqlite = {.texts = texts, .ops = ops, .verbs = verbs};
