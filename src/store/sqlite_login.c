/* SPDX-License-Identifier: Apache-2.0 */
/* Users with passwords, and their logins, in SQLite.  Every verb runs inside the batch's
 * transaction on the only writing connection, so no row changes between two statements of a
 * verb. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

static struct str hash_bytes(const uint8_t hash[32])
{
    return str_n((const char *)hash, 32);
}

static bool user_create(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct user_row *u = op->user;
    if (!sq_tenant_make(batch->s, u->tenant, batch->now_ms, err))
        return false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_USER_CREATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, u->id);
    sq_text(&b, u->tenant);
    sq_text(&b, u->name);
    sq_text(&b, str_of(role_name(u->role)));
    sq_text(&b, u->password);
    sq_int(&b, u->created_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool revoke_all(struct sq_batch *batch, struct str tenant, struct str user_id, int64_t at_ms,
                       struct str reason, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LOGINS_REVOKE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, user_id);
    sq_text(&b, tenant);
    sq_int(&b, at_ms);
    sq_text(&b, reason);
    return sq_run(batch->s, st, err);
}

static bool user_password(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct user_row *u = op->user;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_USER_PASSWORD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, u->id);
    sq_text(&b, u->tenant);
    sq_text(&b, u->password);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err) &&
           (op->verdict != VERDICT_OK ||
            revoke_all(batch, u->tenant, u->id, batch->now_ms, STR("password"), err));
}

static bool user_end(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct user_row *u = op->user;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_USER_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, u->id);
    sq_text(&b, u->tenant);
    sq_time(&b, u->ended_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err) &&
           (op->verdict != VERDICT_OK ||
            revoke_all(batch, u->tenant, u->id, batch->now_ms, STR("disabled"), err));
}

static bool login_failed(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LOGIN_FAILED, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->user->id);
    sq_text(&b, op->user->tenant);
    sq_int(&b, batch->now_ms);
    sq_int(&b, LOGIN_FREE_FAILURES);
    sq_int(&b, LOGIN_LOCK_MS);
    sq_int(&b, LOGIN_LOCK_MAX_MS);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

/* Finds out why nothing was inserted. */
static bool find_refusal(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    bool found = false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LOGIN_USER, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->login->user_id);
    sq_text(&b, op->login->tenant);
    sq_text(&b, op->login->password);
    if (!sq_step(batch->s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    if (!found)
        op->verdict = VERDICT_MISSING;
    else
        op->verdict = sq_get_int(&r) ? VERDICT_DUPLICATE : VERDICT_NOT_ACTIVE;
    sq_reset(st);
    return true;
}

/* Clears the counted failures of the user, and revokes logins past the limit. */
static bool clear_and_prune(struct sq_batch *batch, const struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LOGIN_CLEAR, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->login->user_id);
    if (!sq_run(batch->s, st, err))
        return false;
    st = sq_prepare(batch->s, SQ_LOGIN_PRUNE, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_text(&b, op->login->user_id);
    sq_text(&b, op->login->id);
    sq_int(&b, batch->now_ms);
    sq_int(&b, op->max_counted);
    return sq_run(batch->s, st, err);
}

static bool login_create(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct login_row *l = op->login;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LOGIN_CREATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, l->id);
    sq_text(&b, l->user_id);
    sq_text(&b, l->tenant);
    sq_blob(&b, hash_bytes(l->refresh_hash));
    sq_text(&b, l->device_info);
    sq_text(&b, l->ip_address);
    sq_int(&b, l->created_ms);
    sq_int(&b, l->expires_ms);
    sq_int(&b, l->last_activity_ms);
    sq_text(&b, l->password);
    if (!sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err))
        return false;
    return op->verdict == VERDICT_OK ? clear_and_prune(batch, op, err)
                                     : find_refusal(batch, op, err);
}

static bool revoke(struct sq_batch *batch, const struct login_row *l, struct store_op *op,
                   struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LOGIN_REVOKE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, l->id);
    sq_text(&b, l->tenant);
    sq_text(&b, l->user_id);
    sq_int(&b, l->revoked_ms);
    sq_text(&b, l->revoke_reason);
    sq_int(&b, batch->now_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool login_revoke(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    return revoke(batch, op->login, op, err);
}

static bool logins_revoke(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct login_row *l = op->login;
    op->verdict = VERDICT_OK;
    return revoke_all(batch, l->tenant, l->user_id, l->revoked_ms, l->revoke_reason, err);
}

/* The state of a refresh token; texts are in `mem`. */
struct token_state {
    bool found, spent, spent_meanwhile, live, user_live;
    struct str family, tenant, user_id;
    int64_t expires_ms, last_activity_ms; /* of the family */
};

static bool find_token(struct sq_batch *batch, const struct login_row *l, struct arena *mem,
                       struct token_state *ret, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LOGIN_STATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_blob(&b, hash_bytes(l->refresh_hash));
    sq_int(&b, l->arrived_ms);
    sq_int(&b, batch->now_ms);
    *ret = (struct token_state){0};
    if (!sq_step(batch->s, st, &ret->found, err))
        return false;
    if (ret->found) {
        struct sq_row r = {.st = st, .mem = mem};
        ret->family = sq_get_bytes(&r);
        ret->tenant = sq_get_bytes(&r);
        ret->user_id = sq_get_bytes(&r);
        ret->spent = sq_get_int(&r) != 0;
        ret->spent_meanwhile = sq_get_int(&r) != 0;
        ret->live = sq_get_int(&r) != 0;
        ret->user_live = sq_get_int(&r) != 0;
        ret->expires_ms = sq_get_int(&r);
        ret->last_activity_ms = sq_get_int(&r);
    }
    sq_reset(st);
    return true;
}

/* Puts the next token into the device's row, and adds a row for the used token. */
static bool rotate(struct sq_batch *batch, const struct login_row *l, const struct token_state *t,
                   struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LOGIN_ROTATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, t->family);
    sq_blob(&b, hash_bytes(l->next_hash));
    sq_int(&b, l->expires_ms);
    sq_int(&b, batch->now_ms);
    sq_text(&b, l->ip_address);
    if (!sq_run(batch->s, st, err))
        return false;
    st = sq_prepare(batch->s, SQ_LOGIN_SPEND, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_text(&b, t->family);
    sq_text(&b, l->id);
    sq_blob(&b, hash_bytes(l->refresh_hash));
    sq_int(&b, batch->now_ms);
    sq_int(&b, t->last_activity_ms);
    sq_int(&b, t->expires_ms);
    return sq_run(batch->s, st, err);
}

static bool judge(struct sq_batch *batch, struct store_op *op, const struct token_state *t,
                  struct error *err)
{
    if (!t->found || !t->live) {
        op->verdict = VERDICT_MISSING;
    } else if (t->spent && t->spent_meanwhile) {
        op->verdict = VERDICT_DUPLICATE;
    } else if (t->spent) {
        struct login_row copied = {.id = t->family,
                                   .tenant = t->tenant,
                                   .user_id = t->user_id,
                                   .revoked_ms = batch->now_ms,
                                   .revoke_reason = STR("reuse")};
        if (!revoke(batch, &copied, op, err))
            return false;
        op->verdict = VERDICT_STALE;
    } else if (!t->user_live) {
        op->verdict = VERDICT_NOT_ACTIVE;
    } else {
        op->verdict = VERDICT_OK;
        return rotate(batch, op->login, t, err);
    }
    return true;
}

static bool login_rotate(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct arena *mem = arena_new(4096);
    struct token_state t;
    bool ok = find_token(batch, op->login, mem, &t, err) && judge(batch, op, &t, err);
    arena_free(mem);
    return ok;
}

const struct sq_op sq_login_ops[] = {
    {OP_USER_CREATE, user_create},
    {OP_USER_PASSWORD, user_password},
    {OP_USER_END, user_end},
    {OP_LOGIN_FAILED, login_failed},
    {OP_LOGIN_CREATE, login_create},
    {OP_LOGIN_ROTATE, login_rotate},
    {OP_LOGIN_REVOKE, login_revoke},
    {OP_LOGINS_REVOKE, logins_revoke},
    {0},
};
