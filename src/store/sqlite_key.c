/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants, users and keys in SQLite.  Keys are looked up by their public part; the store does not
 * compare hashes. */
#include "store/sqlite_impl.h"

/* Looks first: the tenant mostly exists, and a lookup is cheaper than an insert. */
bool sq_tenant_make(struct sqlite_store *s, struct str tenant, int64_t now_ms, struct error *err)
{
    bool exists = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_TENANT_COUNTED, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    if (!sq_run_exists(s, st, &exists, err))
        return false;
    if (exists)
        return true;
    st = sq_prepare(s, SQ_TENANT_ADD, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_text(&b, tenant);
    sq_int(&b, now_ms);
    return sq_run(s, st, err);
}

static bool tenant_ensure(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    op->verdict = VERDICT_OK;
    return sq_tenant_make(batch->s, op->tenant->id, op->tenant->created_ms, err);
}

static bool user_ensure(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct user_row *u = op->user;
    if (!sq_tenant_make(batch->s, u->tenant, batch->now_ms, err))
        return false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_USER_ENSURE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, u->id);
    sq_text(&b, u->tenant);
    sq_text(&b, u->name);
    sq_text(&b, str_of(role_name(u->role)));
    sq_text(&b, u->issuer);
    sq_int(&b, u->created_ms);
    sq_time(&b, u->ended_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool key_create(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    if (!op->key->user_id.p && !sq_tenant_make(batch->s, op->key->tenant, batch->now_ms, err))
        return false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_KEY_CREATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_bind_row(&b, &sql_key, op->key, NULL);
    if (!sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = sq_prepare(batch->s, SQ_KEY_EXISTS, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_text(&b, op->key->id);
    return sq_run_refusal(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool key_revoke(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_KEY_REVOKE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->key->id);
    sq_text(&b, op->key->tenant);
    sq_int(&b, op->key->revoked_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool key_used(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_KEY_USED, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->key->id);
    sq_int(&b, op->key->last_used_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

const struct sq_op sq_key_ops[] = {
    {OP_TENANT_ENSURE, tenant_ensure}, {OP_USER_ENSURE, user_ensure}, {OP_KEY_CREATE, key_create},
    {OP_KEY_REVOKE, key_revoke},       {OP_KEY_USED, key_used},       {0},
};
