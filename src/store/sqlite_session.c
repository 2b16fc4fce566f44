/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs on sessions in SQLite.  Tenant and owner are in every WHERE.  For a tenant-wide caller
 * no owner is bound, and the same statement matches every owner. */
#include "store/sqlite_impl.h"

/* *ret is the number of counted sessions in the tenant's row; -1 when the tenant does not exist
 * yet. */
static bool tenant_counted(struct sqlite_store *s, struct str tenant, int64_t *ret,
                           struct error *err)
{
    bool row = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_TENANT_COUNTED, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    if (!sq_step(s, st, &row, err))
        return false;
    *ret = row ? sqlite3_column_int64(st, 0) : -1;
    sq_reset(st);
    return true;
}

/* *ret: there is room for one more counted session.  Sessions past their end take no room; the
 * reaper ends and reports them.  Sessions that session_row_counts() excludes take no room
 * either. */
static bool tenant_has_room(struct sq_batch *batch, const struct store_op *op, bool *ret,
                            struct error *err)
{
    int64_t counted = 0;
    bool row = false;
    if (op->max_counted < 0) {
        *ret = true;
        return true;
    }
    if (!tenant_counted(batch->s, op->who->tenant, &counted, err))
        return false;
    if (counted >= op->max_counted) {
        sqlite3_stmt *st = sq_prepare(batch->s, SQ_TENANT_LAPSED, err);
        if (!st)
            return false;
        struct sq_bind b = {.st = st};
        sq_text(&b, op->who->tenant);
        sq_int(&b, batch->now_ms);
        if (!sq_step(batch->s, st, &row, err))
            return false;
        counted -= sqlite3_column_int64(st, 0);
        sq_reset(st);
    }
    *ret = counted < op->max_counted;
    return true;
}

/* Expires a session past its end that still has the key, so that the key is free again. */
static bool lapse_key(struct sq_batch *batch, const struct store_op *op, struct error *err)
{
    if (!op->session->carrier_key.p)
        return true;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_LAPSE_KEY, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    sq_text(&b, op->session->carrier);
    sq_text(&b, op->session->carrier_key);
    sq_int(&b, batch->now_ms);
    return sq_run(batch->s, st, err);
}

static bool session_is_taken(struct sq_batch *batch, const struct store_op *op, bool *ret,
                             struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_TAKEN, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->session->handle);
    sq_text(&b, op->who->owner);
    sq_text(&b, op->session->carrier);
    sq_text(&b, op->session->carrier_key);
    sq_text(&b, op->session->id);
    return sq_run_exists(batch->s, st, ret, err);
}

static bool session_create(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    bool room = true;
    bool taken = false;
    if (!sq_tenant_make(batch->s, op->who->tenant, batch->now_ms, err) ||
        !lapse_key(batch, op, err))
        return false;
    if (op->session->counted && !tenant_has_room(batch, op, &room, err))
        return false;
    if (!room) {
        if (!session_is_taken(batch, op, &taken, err))
            return false;
        op->verdict = taken ? VERDICT_DUPLICATE : VERDICT_LIMIT;
        return true;
    }
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    struct session_row row = *op->session;
    row.version = row.version ? row.version : 1;
    sq_bind_row(&b, &sql_session, &row, op->who);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

bool sq_session_state(struct sqlite_store *s, const struct principal *who, struct str id,
                      int64_t now_ms, struct sq_session_state *ret, struct error *err)
{
    struct sq_session_state state = {0};
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_STATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, id);
    sq_text(&b, who->tenant);
    sq_owner(&b, who);
    sq_int(&b, now_ms);
    if (!sq_step(s, st, &state.found, err))
        return false;
    if (state.found) {
        struct sq_row r = {.st = st};
        state.named = sq_get_int(&r);
        state.counted = sq_get_int(&r);
        state.live = sq_get_int(&r);
        state.version = sq_get_int(&r);
    }
    sq_reset(st);
    *ret = state;
    return true;
}

static bool session_promote(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct sq_session_state state;
    struct principal owner = *op->who;
    bool room = true;
    owner.tenant_wide = false; /* only the owner promotes a session */
    if (!sq_session_state(batch->s, &owner, op->session->id, batch->now_ms, &state, err))
        return false;
    if (!state.found || !state.live || state.named) {
        op->verdict = !state.found  ? VERDICT_MISSING
                      : !state.live ? VERDICT_NOT_ACTIVE
                                    : VERDICT_OK;
        return true;
    }
    if (!state.counted && !tenant_has_room(batch, op, &room, err))
        return false;
    if (!room) {
        op->verdict = VERDICT_LIMIT;
        return true;
    }
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_PROMOTE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->session->id);
    sq_time(&b, op->session->expires_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool session_end(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->session->id);
    sq_text(&b, op->who->tenant);
    sq_owner(&b, op->who);
    sq_text(&b, str_of(session_status_name(op->session->status)));
    sq_time(&b, op->session->terminated_ms);
    sq_text(&b, op->session->termination_reason);
    sq_int(&b, batch->now_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

/* Finds out why a verb for live sessions found none. */
static bool not_live(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct sq_session_state state;
    if (!sq_session_state(batch->s, op->who, op->session->id, batch->now_ms, &state, err))
        return false;
    op->verdict = state.found ? VERDICT_NOT_ACTIVE : VERDICT_MISSING;
    return true;
}

/* Binds id, tenant, owner and now, the first parameters of every statement on live sessions. */
static void bind_live(struct sq_bind *b, const struct sq_batch *batch, const struct store_op *op)
{
    sq_text(b, op->session->id);
    sq_text(b, op->who->tenant);
    sq_owner(b, op->who);
    sq_int(b, batch->now_ms);
}

static bool wake(struct sq_batch *batch, const struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_WAKE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->session->id);
    return sq_run(batch->s, st, err);
}

/* *ret: the session is live, and its use can wait for the fold. */
static bool can_wait(struct sq_batch *batch, const struct store_op *op, bool *ret,
                     struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_CAN_WAIT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_live(&b, batch, op);
    sq_int(&b, batch->now_ms + SESSION_END_NEAR_MS);
    if (!sq_step(batch->s, st, ret, err))
        return false;
    sq_reset(st);
    return true;
}

static bool session_use(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    bool found = false;
    op->verdict = VERDICT_OK;
    if (op->is_in_event && !can_wait(batch, op, &found, err))
        return false;
    if (found)
        return true;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_USE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_live(&b, batch, op);
    sq_int(&b, op->session->last_activity_ms);
    sq_int(&b, SESSION_LIFE_MAX_MS);
    if (!sq_step(batch->s, st, &found, err))
        return false;
    bool idle = found && sqlite3_column_int(st, 0);
    sq_reset(st);
    if (!found)
        return not_live(batch, op, err);
    op->verdict = VERDICT_OK;
    return !idle || wake(batch, op, err);
}

static bool patch_columns(struct sq_batch *batch, const struct store_op *op, struct error *err)
{
    const struct session_row *r = op->session;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_PATCH, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, r->id);
    sq_int(&b, op->fields);
    sq_text(&b, r->client_name);
    sq_text(&b, r->client_type);
    sq_text(&b, r->client_version);
    sq_text(&b, r->connection_metadata);
    sq_text(&b, r->core_session_id);
    sq_text(&b, r->context_id);
    sq_int(&b, r->initialized);
    sq_blob(&b, r->sealed_auth);
    sq_text(&b, r->toolsets);
    sq_text(&b, r->setup);
    return sq_run(batch->s, st, err);
}

static bool session_patch(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct sq_session_state state;
    int64_t expected = op->session->version;
    if (!sq_session_state(batch->s, op->who, op->session->id, batch->now_ms, &state, err))
        return false;
    op->verdict = !state.found                            ? VERDICT_MISSING
                  : !state.live                           ? VERDICT_NOT_ACTIVE
                  : expected && expected != state.version ? VERDICT_STALE
                                                          : VERDICT_OK;
    return op->verdict != VERDICT_OK || patch_columns(batch, op, err);
}

static bool session_refresh(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_REFRESH, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_live(&b, batch, op);
    sq_time(&b, op->session->expires_ms);
    sq_int(&b, op->session->ttl_ms);
    if (!sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err))
        return false;
    return op->verdict == VERDICT_OK || not_live(batch, op, err);
}

const struct sq_op sq_session_ops[] = {
    {OP_SESSION_CREATE, session_create},
    {OP_SESSION_PROMOTE, session_promote},
    {OP_SESSION_END, session_end},
    {OP_SESSION_USE, session_use},
    {OP_SESSION_PATCH, session_patch},
    {OP_SESSION_REFRESH, session_refresh},
    {0},
};
