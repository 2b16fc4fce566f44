/* SPDX-License-Identifier: Apache-2.0 */
/* Shares and bindings in SQLite.  A trigger deletes the bindings of a share with the share. */
#include "session/share_store/impl.h"
#include "store/sqlite_impl.h"

enum sq_sharing_statement {
    SQ_SHARES_LIVE = SQ_COUNT + SHARING_STATEMENTS,
    SQ_SHARE_ADD,
    SQ_SHARES_PRUNE,
    SQ_SHARE_END,
    SQ_SHARE_JOIN,
    SQ_SHARE_BOUND,
    SQ_BINDING_PUT,
    SQ_BINDING_DROP,
    SQ_OWNER_OF,
    SQ_HAND_BIND_TRANSPORTS,
    SQ_HAND_BIND_KEY,
    SQ_HAND_SHARES,
    SQ_HAND_UNDELIVERED,
    SQ_HAND_SESSION,
    SQ_SHARES_UPTO,
    SQ_SHARES_REAP,
};

#define LIVE(now) "ended_at IS NULL AND (expires_at IS NULL OR expires_at > " now ")"

static const struct sql_text texts[] = {
    {SQ_SHARES_LIVE, "SELECT count(*) FROM session_shares WHERE session_id = ?1 AND " LIVE("?2")},
    {SQ_SHARE_ADD,
     "INSERT INTO session_shares (id, tenant_id, session_id, made_by, grantee, may, created_at, "
     "expires_at, access_ms, code_hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
     "ON CONFLICT DO NOTHING"},
    {SQ_SHARES_PRUNE, "DELETE FROM session_shares WHERE session_id = ?1 AND NOT (" LIVE(
                          "?2") ") AND id <= (SELECT "
                                "id FROM session_shares WHERE session_id = ?1 AND NOT (" LIVE(
                                    "?2") ") ORDER BY id DESC LIMIT 1 OFFSET ?3)"},
    {SQ_SHARE_END, "UPDATE session_shares SET ended_at = ?3, end_reason = ?4 WHERE id = ?1 "
                   "AND session_id = ?2 AND ended_at IS NULL"},
    {SQ_SHARE_JOIN,
     "UPDATE session_shares SET joined_at = ?3, joined_client = ?4, expires_at = iif(grantee IS "
     "NULL, iif(access_ms > 0, ?3 + access_ms, NULL), expires_at), grantee = ?2 WHERE id = ?1"},
    {SQ_SHARE_BOUND, "SELECT 1 FROM session_bindings WHERE tenant_id = ?1 AND owner = ?2 "
                     "AND carrier = ?3 AND carrier_key = ?4 AND share_id = ?5"},
    {SQ_BINDING_PUT,
     "INSERT INTO session_bindings (tenant_id, owner, carrier, carrier_key, session_id, share_id, "
     "bound_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (tenant_id, owner, carrier, "
     "carrier_key) DO UPDATE SET session_id = excluded.session_id, share_id = excluded.share_id, "
     "bound_at = excluded.bound_at"},
    {SQ_BINDING_DROP, "DELETE FROM session_bindings WHERE tenant_id = ?1 AND owner = ?2 "
                      "AND carrier = ?3 AND carrier_key = ?4 AND share_id = ?5"},
    {SQ_OWNER_OF, "SELECT owner FROM edge_mcp_sessions WHERE id = ?1"},
    {SQ_HAND_BIND_TRANSPORTS,
     "INSERT INTO session_bindings (tenant_id, owner, carrier, carrier_key, session_id, share_id, "
     "bound_at) SELECT t.tenant_id, t.owner, '" BINDING_TRANSPORT "', lower(hex(t.id_hash)), ?1, "
     "?2, ?3 FROM transport_sessions t WHERE t.session_id = ?1 AND t.ended_at IS NULL "
     "ON CONFLICT DO NOTHING"},
    {SQ_HAND_BIND_KEY,
     "INSERT INTO session_bindings (tenant_id, owner, carrier, carrier_key, session_id, share_id, "
     "bound_at) SELECT tenant_id, owner, carrier, carrier_key, ?1, ?2, ?3 FROM edge_mcp_sessions "
     "WHERE id = ?1 AND carrier IS NOT NULL AND carrier_key IS NOT NULL ON CONFLICT DO NOTHING"},
    {SQ_HAND_SHARES, "UPDATE session_shares SET ended_at = ?3, end_reason = 'handed_over' WHERE "
                     "session_id = ?1 AND id <> ?2 AND ended_at IS NULL"},
    {SQ_HAND_UNDELIVERED, "DELETE FROM undelivered WHERE session_id = ?1"},
    {SQ_HAND_SESSION,
     "UPDATE edge_mcp_sessions SET owner = ?2, user_id = iif(substr(?2, 1, 5) = 'user:', "
     "substr(?2, 6), NULL), carrier_key = NULL, passthrough_auth_encrypted = NULL, "
     "profile_context_encrypted = NULL, provisional = 0, "
     "origin = iif(origin = 'derived', 'transport', origin), version = version + 1 WHERE id = ?1"},
    /* The last of the next ?2 sessions after ?1, and how many there are. */
    {SQ_SHARES_UPTO,
     "WITH RECURSIVE s(id) AS (SELECT min(session_id) FROM session_shares WHERE session_id > ?1 "
     "UNION ALL SELECT (SELECT min(session_id) FROM session_shares WHERE session_id > s.id) "
     "FROM s WHERE s.id IS NOT NULL LIMIT ?2) SELECT max(id), count(id) FROM s"},
    {SQ_SHARES_REAP,
     "DELETE FROM session_shares WHERE session_id > ?1 AND session_id <= ?2 AND NOT EXISTS "
     "(SELECT 1 FROM edge_mcp_sessions e WHERE e.id = session_shares.session_id "
     "AND e.status IN ('active', 'idle'))"},
    {0},
};

/* Sets the verdict unless the caller reaches a live session of this id. */
static bool reach(struct sq_batch *batch, struct store_op *op, struct str session_id,
                  struct error *err)
{
    struct sq_session_state state;

    if (!sq_session_state(batch->s, op->who, session_id, batch->now_ms, &state, err))
        return false;
    op->verdict = !state.found ? VERDICT_MISSING : state.live ? VERDICT_OK : VERDICT_NOT_ACTIVE;
    return true;
}

static bool has_room(struct sq_batch *batch, const struct share_row *r, bool *ret,
                     struct error *err)
{
    bool row = false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SHARES_LIVE, err);

    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, r->session_id);
    sq_int(&b, batch->now_ms);
    if (!sq_step(batch->s, st, &row, err))
        return false;
    *ret = sqlite3_column_int64(st, 0) < SHARES_LIVE_MAX;
    sq_reset(st);
    return true;
}

static bool prune(struct sq_batch *batch, const struct share_row *r, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SHARES_PRUNE, err);

    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, r->session_id);
    sq_int(&b, batch->now_ms);
    sq_int(&b, SHARES_ENDED_KEPT);
    return sq_run(batch->s, st, err);
}

static bool share_add(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct share_row *r = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SHARE_ADD, err);

    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, r->id);
    sq_text(&b, op->who->tenant);
    sq_text(&b, r->session_id);
    sq_text(&b, op->who->owner);
    sq_text(&b, r->grantee);
    sq_int(&b, r->may);
    sq_int(&b, r->created_ms);
    sq_time(&b, r->expires_ms);
    sq_int(&b, r->access_ms);
    sq_sha(&b, r->code_hash);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool share_create(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct share_row *r = op->row;
    bool room = false;

    if (!reach(batch, op, r->session_id, err))
        return false;
    if (op->verdict != VERDICT_OK)
        return true;
    if (!has_room(batch, r, &room, err))
        return false;
    op->verdict = VERDICT_LIMIT;
    return !room || (share_add(batch, op, err) && prune(batch, r, err));
}

static bool share_end(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct share_row *r = op->row;

    if (!reach(batch, op, r->session_id, err))
        return false;
    if (op->verdict == VERDICT_MISSING)
        return true;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SHARE_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, r->id);
    sq_text(&b, r->session_id);
    sq_time(&b, r->ended_ms);
    sq_text(&b, r->end_reason);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

/* Join. */

static sqlite3_stmt *bind_place(struct sq_batch *batch, const struct principal *who,
                                enum sq_sharing_statement which, struct str carrier, struct str key,
                                struct sq_bind *b, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, which, err);

    if (!st)
        return NULL;
    *b = (struct sq_bind){.st = st};
    sq_text(b, who->tenant);
    sq_text(b, who->owner);
    sq_text(b, carrier);
    sq_text(b, key);
    return st;
}

static bool is_bound(struct sq_batch *batch, const struct store_op *op, bool *ret,
                     struct error *err)
{
    const struct share_join *j = op->row;
    struct sq_bind b;
    sqlite3_stmt *st =
        bind_place(batch, op->who, SQ_SHARE_BOUND, j->carrier, j->carrier_key, &b, err);

    if (!st)
        return false;
    sq_text(&b, j->id);
    return sq_run_exists(batch->s, st, ret, err);
}

/* Decides whether `who` may join by this share. */
static bool may_join(struct sq_batch *batch, struct store_op *op, const struct share_row *share,
                     struct error *err)
{
    const struct share_join *j = op->row;
    bool bound = false,
         is_theirs = share && share->grantee.p && str_eq(share->grantee, op->who->owner);

    op->verdict = VERDICT_MISSING;
    if (!share || !str_eq(share->session_id, j->session_id))
        return true;
    static const uint8_t no_code[32];
    bool has_code = memcmp(share->code_hash, no_code, sizeof(no_code)) != 0;
    if (has_code && share->grantee.p && is_theirs && j->carrier.p &&
        !is_bound(batch, op, &bound, err))
        return false;
    if (!has_code && !is_theirs)
        return true;
    if (has_code && share->grantee.p && !bound)
        op->verdict = VERDICT_DUPLICATE;
    else if (share->ended_ms || (share->expires_ms && share->expires_ms <= batch->now_ms))
        op->verdict = VERDICT_STALE;
    else
        op->verdict = VERDICT_OK;
    return true;
}

static bool take_share(struct sq_batch *batch, const struct store_op *op, struct error *err)
{
    const struct share_join *j = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SHARE_JOIN, err);

    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, j->id);
    sq_text(&b, op->who->owner);
    sq_int(&b, j->at_ms);
    sq_text(&b, j->client);
    return sq_run(batch->s, st, err);
}

static bool put_binding(struct sq_batch *batch, const struct store_op *op, struct error *err)
{
    const struct share_join *j = op->row;
    struct sq_bind b;

    if (!j->carrier.p)
        return true;
    sqlite3_stmt *st =
        bind_place(batch, op->who, SQ_BINDING_PUT, j->carrier, j->carrier_key, &b, err);
    if (!st)
        return false;
    sq_text(&b, j->session_id);
    sq_text(&b, j->id);
    sq_int(&b, j->at_ms);
    return sq_run(batch->s, st, err);
}

/* True in *ret when the session belongs to another owner than `who`. */
static bool is_foreign(struct sq_batch *batch, const struct store_op *op, bool *ret,
                       struct error *err)
{
    const struct share_join *j = op->row;
    bool row = false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_OWNER_OF, err);

    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, j->session_id);
    if (!sq_step(batch->s, st, &row, err))
        return false;
    struct sq_row r = {.st = st};
    *ret = row && !str_eq(sq_peek_bytes(&r), op->who->owner);
    sq_reset(st);
    return true;
}

/* Runs a statement of a hand-over, whose parameters are the session and up to two others. */
static bool hand(struct sq_batch *batch, enum sq_sharing_statement which,
                 const struct share_join *j, struct str second, bool with_time, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, which, err);

    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, j->session_id);
    if (second.p)
        sq_text(&b, second);
    if (with_time)
        sq_int(&b, j->at_ms);
    return sq_run(batch->s, st, err);
}

static bool hand_over(struct sq_batch *batch, const struct store_op *op, struct error *err)
{
    const struct share_join *j = op->row;
    bool foreign = false;

    if (!is_foreign(batch, op, &foreign, err))
        return false;
    return !foreign || (hand(batch, SQ_HAND_BIND_TRANSPORTS, j, j->id, true, err) &&
                        hand(batch, SQ_HAND_BIND_KEY, j, j->id, true, err) &&
                        hand(batch, SQ_HAND_SHARES, j, j->id, true, err) &&
                        hand(batch, SQ_HAND_UNDELIVERED, j, STR_NONE, false, err) &&
                        hand(batch, SQ_HAND_SESSION, j, op->who->owner, false, err));
}

static bool find_share(struct sq_batch *batch, const struct store_op *op, struct arena *mem,
                       struct share_row **ret, struct error *err)
{
    const struct share_join *j = op->row;
    struct share_find by = {.id = j->id};
    struct store_call c = {VERB_SHARE, .who = op->who, .filter = &by, .mem = mem};

    if (!sq_read_call(batch->s, &c, err))
        return false;
    *ret = c.rows;
    return true;
}

static bool join(struct sq_batch *batch, struct store_op *op, const struct share_row *share,
                 struct error *err)
{
    const struct share_join *j = op->row;
    struct sq_session_state state;
    struct principal anyone = *op->who;

    if (!may_join(batch, op, share, err))
        return false;
    if (op->verdict != VERDICT_OK)
        return true;
    anyone.tenant_wide = true;
    if (!sq_session_state(batch->s, &anyone, j->session_id, batch->now_ms, &state, err))
        return false;
    if (!state.live) {
        op->verdict = VERDICT_NOT_ACTIVE;
        return true;
    }
    return take_share(batch, op, err) && put_binding(batch, op, err) &&
           (share->may != SHARE_HAND_OVER || hand_over(batch, op, err));
}

static bool share_join(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct arena *mem = arena_new(1 << 16);
    struct share_row *share = NULL;
    bool ok = find_share(batch, op, mem, &share, err) && join(batch, op, share, err);

    arena_free(mem);
    return ok;
}

static bool binding_drop(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct binding_row *row = op->row;
    struct sq_bind b;
    sqlite3_stmt *st =
        bind_place(batch, op->who, SQ_BINDING_DROP, row->carrier, row->carrier_key, &b, err);

    if (!st)
        return false;
    sq_text(&b, row->share_id);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static const struct sq_op ops[] = {
    {OP_SHARE_CREATE, share_create},
    {OP_SHARE_END, share_end},
    {OP_SHARE_JOIN, share_join},
    {OP_BINDING_DROP, binding_drop},
    {0},
};
static const struct verb_handler verbs[] = {{0}};

const struct sqlite_family sharing_sqlite = {
    .texts = texts,
    .ops = ops,
    .verbs = verbs,
    .upto = SQ_SHARES_UPTO,
    .over = SQ_SHARES_REAP,
};
