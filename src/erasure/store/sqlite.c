/* SPDX-License-Identifier: Apache-2.0 */
/* Erasures in SQLite.  Deleted cells and freed pages are overwritten with zeros (secure_delete), so
 * only the WAL has to be emptied besides. */
#include "erasure/store/impl.h"

#include "store/sqlite_impl.h"

enum sq_erasure_statement {
    SQ_ERASURE_USER_IS = SQ_COUNT + ERASURE_STATEMENTS,
    SQ_ERASURE_RUNS,
    SQ_ERASURE_HELD,
    SQ_ERASURE_ADD,
    SQ_ERASURE_END_USER,
    SQ_ERASURE_REVOKE_KEYS,
    SQ_ERASURE_DROP_LOGINS,
    SQ_ERASURE_MOVE,
    SQ_ERASURE_COUNT_SESSIONS,
    SQ_ERASURE_DROP_SESSIONS,
    SQ_ERASURE_DROP_TRANSPORTS,
    SQ_ERASURE_DROP_UNDELIVERED,
    SQ_ERASURE_DROP_ANSWERS,
    SQ_ERASURE_DROP_BINDINGS,
    SQ_ERASURE_JOINED,
    SQ_ERASURE_AUTHORS,
    SQ_ERASURE_NAME_USER,
    SQ_ERASURE_NAME_KEYS,
    SQ_ERASURE_REASONS,
    SQ_ERASURE_NAMELESS,
    SQ_ERASURE_DONE,
};

/* ?1 tenant, ?2 user. */
#define OWNERS                                                                                     \
    "(SELECT 'user:' || ?2 UNION ALL SELECT 'key:' || id FROM api_keys WHERE user_id = ?2)"
#define OF_PERSON(row) row ".tenant_id = ?1 AND " row ".owner IN " OWNERS
#define NOT_HELD(id)                                                                               \
    "NOT EXISTS (SELECT 1 FROM audit_held h WHERE h.tenant_id = ?1 AND h.kind = 0 AND h.name "     \
    "= " id ")"
#define SOME_SESSIONS                                                                              \
    "(SELECT e.id FROM edge_mcp_sessions e WHERE " OF_PERSON("e") " AND " NOT_HELD(                \
        "e.id") " ORDER BY e.id LIMIT ?3)"

static const struct sql_text texts[] = {
    {SQ_ERASURE_USER_IS, "SELECT 1 FROM users WHERE tenant_id = ?1 AND id = ?2"},
    {SQ_ERASURE_RUNS, "SELECT 1 FROM audit_erasures WHERE tenant_id = ?1 AND user_id = ?2 AND "
                      "done_at IS NULL"},
    {SQ_ERASURE_HELD, "SELECT 1 FROM audit_holds WHERE tenant_id = ?1 AND kind = 1 AND target = ?2 "
                      "AND released_at IS NULL"},
    {SQ_ERASURE_ADD, "INSERT INTO audit_erasures VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"},
    {SQ_ERASURE_END_USER, "UPDATE users SET password = NULL, ended_at = coalesce(ended_at, ?3) "
                          "WHERE tenant_id = ?1 AND id = ?2"},
    {SQ_ERASURE_REVOKE_KEYS, "UPDATE api_keys SET revoked_at = ?3 WHERE tenant_id = ?1 AND "
                             "user_id = ?2 AND revoked_at IS NULL"},
    {SQ_ERASURE_DROP_LOGINS, "DELETE FROM user_sessions WHERE tenant_id = ?1 AND user_id = ?2"},
    {SQ_ERASURE_MOVE, "UPDATE audit_erasures SET next_id = ?3, bodies = bodies + ?4, body_bytes = "
                      "body_bytes + ?5, moved_at = ?6 WHERE id = ?1 AND next_id = ?2 AND done_at "
                      "IS NULL"},
    {SQ_ERASURE_COUNT_SESSIONS,
     "UPDATE audit_erasures SET sessions = sessions + (SELECT count(*) FROM " SOME_SESSIONS
     "), moved_at = ?4 WHERE id = ?5"},
    {SQ_ERASURE_DROP_SESSIONS, "DELETE FROM edge_mcp_sessions WHERE id IN " SOME_SESSIONS},
    {SQ_ERASURE_DROP_TRANSPORTS, "DELETE FROM transport_sessions AS r WHERE " OF_PERSON("r")},
    {SQ_ERASURE_DROP_UNDELIVERED,
     "DELETE FROM undelivered AS r WHERE " OF_PERSON("r") " AND " NOT_HELD("r.session_id")},
    {SQ_ERASURE_DROP_ANSWERS, "DELETE FROM idempotency AS r WHERE " OF_PERSON("r")},
    {SQ_ERASURE_DROP_BINDINGS, "DELETE FROM session_bindings AS r WHERE " OF_PERSON("r")},
    {SQ_ERASURE_JOINED, "UPDATE session_shares SET joined_client = NULL WHERE tenant_id = ?1 AND "
                        "grantee IN " OWNERS},
    {SQ_ERASURE_AUTHORS,
     "UPDATE document_revisions SET author = '" ERASED_AUTHOR "' WHERE author = ?1 AND document_id "
     "IN (SELECT id FROM documents WHERE folder = ?2 AND id >= ?3 AND id <= ?4)"},
    {SQ_ERASURE_NAME_USER,
     "UPDATE users SET name = 'erased-' || id WHERE tenant_id = ?1 AND id = ?2"},
    {SQ_ERASURE_NAME_KEYS, "UPDATE api_keys SET name = NULL WHERE tenant_id = ?1 AND user_id = ?2"},
    {SQ_ERASURE_REASONS,
     "UPDATE audit_holds SET reason = NULL WHERE tenant_id = ?1 AND kind = 1 AND target = ?2"},
    {SQ_ERASURE_NAMELESS, "UPDATE audit_erasures SET names = NULL, moved_at = ?2 WHERE id = ?1"},
    {SQ_ERASURE_DONE, "UPDATE audit_erasures SET held = ?2, moved_at = ?3, done_at = ?3 WHERE id = "
                      "?1 AND done_at IS NULL"},
    {0},
};

/* The first parameters of most statements.  NULL: *err says why. */
static sqlite3_stmt *of_person(struct sqlite_store *s, unsigned which, struct str tenant,
                               struct str user, struct sq_bind *ret, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, which, err);
    *ret = (struct sq_bind){.st = st};
    if (st) {
        sq_text(ret, tenant);
        sq_text(ret, user);
    }
    return st;
}

static bool exists(struct sqlite_store *s, unsigned which, const struct erasure_row *row, bool *ret,
                   struct error *err)
{
    struct sq_bind b;
    sqlite3_stmt *st = of_person(s, which, row->tenant, row->user_id, &b, err);
    return st && sq_run_exists(s, st, ret, err);
}

static bool run_at(struct sqlite_store *s, unsigned which, const struct erasure_row *row,
                   int64_t at_ms, struct error *err)
{
    struct sq_bind b;
    sqlite3_stmt *st = of_person(s, which, row->tenant, row->user_id, &b, err);
    if (!st)
        return false;
    if (at_ms)
        sq_int(&b, at_ms);
    return sq_run(s, st, err);
}

static bool add(struct sqlite_store *s, const struct erasure_row *row, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_ERASURE_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_bind_row(&b, &sql_erasure, row, NULL);
    return sq_run(s, st, err);
}

static bool begin(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct erasure_row *row = op->row;
    struct sqlite_store *s = batch->s;
    bool is = false, runs = false, held = false;
    if (!exists(s, SQ_ERASURE_USER_IS, row, &is, err) ||
        !exists(s, SQ_ERASURE_RUNS, row, &runs, err) ||
        !exists(s, SQ_ERASURE_HELD, row, &held, err))
        return false;
    op->verdict = !is    ? VERDICT_MISSING
                  : runs ? VERDICT_DUPLICATE
                  : held ? VERDICT_NOT_ACTIVE
                         : VERDICT_OK;
    return op->verdict != VERDICT_OK ||
           (add(s, row, err) && run_at(s, SQ_ERASURE_END_USER, row, batch->now_ms, err) &&
            run_at(s, SQ_ERASURE_REVOKE_KEYS, row, batch->now_ms, err) &&
            run_at(s, SQ_ERASURE_DROP_LOGINS, row, 0, err));
}

static bool move(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct erasure_move *m = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_ERASURE_MOVE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, m->id);
    sq_int(&b, m->from);
    sq_int(&b, m->to);
    sq_int(&b, m->bodies);
    sq_int(&b, m->body_bytes);
    sq_int(&b, batch->now_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_STALE, err);
}

static bool drop_sessions(struct sq_batch *batch, const struct erasure_rows *row, struct error *err)
{
    static const unsigned steps[] = {SQ_ERASURE_COUNT_SESSIONS, SQ_ERASURE_DROP_SESSIONS};
    for (size_t i = 0; i < countof(steps); i++) {
        struct sq_bind b;
        sqlite3_stmt *st = of_person(batch->s, steps[i], row->tenant, row->user_id, &b, err);
        if (!st)
            return false;
        sq_int(&b, row->most);
        if (steps[i] == SQ_ERASURE_COUNT_SESSIONS) {
            sq_int(&b, batch->now_ms);
            sq_text(&b, row->id);
        }
        if (!sq_run(batch->s, st, err))
            return false;
    }
    return true;
}

static bool drop_rows(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    static const unsigned steps[] = {SQ_ERASURE_DROP_TRANSPORTS, SQ_ERASURE_DROP_UNDELIVERED,
                                     SQ_ERASURE_DROP_ANSWERS, SQ_ERASURE_DROP_BINDINGS,
                                     SQ_ERASURE_JOINED};
    const struct erasure_rows *row = op->row;
    const struct erasure_row person = {.tenant = row->tenant, .user_id = row->user_id};
    op->verdict = VERDICT_OK;
    for (size_t i = 0; i < countof(steps); i++)
        if (!run_at(batch->s, steps[i], &person, 0, err))
            return false;
    return drop_sessions(batch, row, err);
}

static bool authors(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct erasure_authors *a = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_ERASURE_AUTHORS, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, a->author);
    sq_text(&b, a->folder);
    sq_text(&b, a->from);
    sq_text(&b, a->upto);
    op->verdict = VERDICT_OK;
    return sq_run(batch->s, st, err);
}

static bool names(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    static const unsigned steps[] = {SQ_ERASURE_NAME_USER, SQ_ERASURE_NAME_KEYS,
                                     SQ_ERASURE_REASONS};
    const struct erasure_row *row = op->row;
    for (size_t i = 0; i < countof(steps); i++)
        if (!run_at(batch->s, steps[i], row, 0, err))
            return false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_ERASURE_NAMELESS, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->id);
    sq_int(&b, batch->now_ms);
    op->verdict = VERDICT_OK;
    return sq_run(batch->s, st, err);
}

static bool done(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct erasure_row *row = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_ERASURE_DONE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->id);
    sq_int(&b, row->held);
    sq_int(&b, batch->now_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_STALE, err);
}

static const struct sq_op ops[] = {
    {OP_ERASURE_BEGIN, begin},
    {OP_ERASURE_MOVE, move},
    {OP_ERASURE_ROWS, drop_rows},
    {OP_ERASURE_AUTHORS, authors},
    {OP_ERASURE_NAMES, names},
    {OP_ERASURE_DONE, done},
    {0},
};

/* The WAL has pages as they were before. */
static bool clean(struct store *store, struct store_call *c, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    if (s->broken)
        return error_set(err, ERR_UNAVAILABLE, "The database cannot be written.");
    int rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    *(bool *)c->ret = rc == SQLITE_OK;
    return rc == SQLITE_OK || rc == SQLITE_BUSY || sq_error(s, err, "emptying its log");
}

static const struct verb_handler verbs[] = {
    {VERB_ERASURE_CLEAN, clean},
    {0},
};

const struct sqlite_family erasure_sqlite = {.texts = texts, .ops = ops, .verbs = verbs};
