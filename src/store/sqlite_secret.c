/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of tenants in SQLite, credentials sealed again by another key, and sealed secrets.  The
 * store sees only sealed bytes, never their content. */
#include "store/sqlite_impl.h"

static bool tenant_key_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct tenant_key_row *k = op->tenant_key;
    if (!sq_tenant_make(batch->s, k->tenant, batch->now_ms, err))
        return false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TENANT_KEY_PUT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_bind_row(&b, &sql_tenant_key, k, NULL);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool tenant_key_wrap(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TENANT_KEY_WRAP, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->tenant_key->id);
    sq_text(&b, op->tenant_key->tenant);
    sq_text(&b, op->tenant_key->master_id);
    sq_blob(&b, op->tenant_key->wrapped);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool session_reseal(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct session_row *row = op->session;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_RESEAL, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->id);
    sq_text(&b, row->tenant);
    sq_blob(&b, row->sealed_auth);
    sq_blob(&b, row->sealed_context);
    sq_int(&b, row->version);
    if (!sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = sq_prepare(batch->s, SQ_SESSION_SEALED, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_text(&b, row->id);
    sq_text(&b, row->tenant);
    return sq_run_refusal(batch->s, st, op, VERDICT_STALE, err);
}

static bool secret_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SECRET_UPDATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->secret->name);
    sq_blob(&b, op->secret->sealed);
    sq_int(&b, op->secret->updated_ms);
    if (!sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = sq_prepare(batch->s, SQ_SECRET_INSERT, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_bind_row(&b, &sql_secret, op->secret, NULL);
    sq_int(&b, op->max_counted);
    return sq_run_verdict(batch->s, st, op, VERDICT_LIMIT, err);
}

static bool secret_remove(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SECRET_REMOVE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->secret->name);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

const struct sq_op sq_secret_ops[] = {
    {OP_TENANT_KEY_PUT, tenant_key_put}, {OP_TENANT_KEY_WRAP, tenant_key_wrap},
    {OP_SESSION_RESEAL, session_reseal}, {OP_SECRET_PUT, secret_put},
    {OP_SECRET_REMOVE, secret_remove},   {0},
};
