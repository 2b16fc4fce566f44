/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of tenants in SQLite, and credentials sealed again by another key.  The store sees only
 * sealed bytes, never their content. */
#include "store/sqlite_impl.h"

bool sq_tenant_key_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct tenant_key_row *k = op->tenant_key;
    if (!sq_tenant_make(batch->s, k->tenant, batch->now_ms, err))
        return false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TENANT_KEY_PUT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, k->id);
    sq_text(&b, k->tenant);
    sq_text(&b, k->master_id);
    sq_blob(&b, k->wrapped);
    sq_int(&b, k->created_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

bool sq_tenant_key_wrap(struct sq_batch *batch, struct store_op *op, struct error *err)
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

bool sq_session_reseal(struct sq_batch *batch, struct store_op *op, struct error *err)
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

static bool read_key(struct sq_row *r, void *to, struct error *err unused_arg)
{
    struct tenant_key_row *row = to;
    row->id = sq_get_bytes(r);
    row->tenant = sq_get_bytes(r);
    row->master_id = sq_get_bytes(r);
    row->wrapped = sq_get_bytes(r);
    row->created_ms = sq_get_int(r);
    return true;
}

bool sq_tenant_key_get(struct store *store, struct str tenant, struct str id, struct arena *mem,
                       struct tenant_key_row **ret_row, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows keys = {.read = read_key, .size = sizeof(struct tenant_key_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, id.p ? SQ_TENANT_KEY_GET : SQ_TENANT_KEY_NEWEST, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    sq_text(&b, id);
    if (!sq_read_row(s, st, &keys, err))
        return false;
    *ret_row = keys.items;
    return true;
}

bool sq_tenant_keys_page(struct store *store, struct str after, unsigned limit, struct arena *mem,
                         struct tenant_key_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows keys = {.read = read_key, .size = sizeof(struct tenant_key_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, SQ_TENANT_KEYS_PAGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, after.p ? after : STR(""));
    sq_int(&b, limit);
    if (!sq_read_rows(s, st, limit, &keys, err))
        return false;
    *ret_rows = keys.items;
    *ret_n = keys.n;
    return true;
}
