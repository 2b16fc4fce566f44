/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants' keys in SQLite, and sealed credentials under another key.  The store sees sealed bytes
 * alone; what they hold is not its to know. */
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
    bool exists = false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_RESEAL, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->id);
    sq_text(&b, row->tenant);
    sq_blob(&b, row->sealed_auth);
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
    if (!sq_run_exists(batch->s, st, &exists, err))
        return false;
    op->verdict = exists ? VERDICT_STALE : VERDICT_MISSING;
    return true;
}

/* Reads at most `limit` keys off a bound statement. */
static bool read_keys(struct sqlite_store *s, sqlite3_stmt *st, unsigned limit, struct arena *mem,
                      struct tenant_key_row *rows, size_t *ret_n, struct error *err)
{
    size_t n = 0;
    for (bool row = true; n < limit; n++) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st, .mem = mem};
        rows[n].id = sq_get_bytes(&r);
        rows[n].tenant = sq_get_bytes(&r);
        rows[n].master_id = sq_get_bytes(&r);
        rows[n].wrapped = sq_get_bytes(&r);
        rows[n].created_ms = sq_get_int(&r);
    }
    sq_reset(st);
    *ret_n = n;
    return true;
}

bool sq_tenant_key_get(struct store *store, struct str tenant, struct str id, struct arena *mem,
                       struct tenant_key_row **ret_row, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct tenant_key_row *row = arena_new_of(mem, struct tenant_key_row);
    size_t n = 0;
    sqlite3_stmt *st = sq_prepare(s, id.p ? SQ_TENANT_KEY_GET : SQ_TENANT_KEY_NEWEST, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    sq_text(&b, id);
    if (!read_keys(s, st, 1, mem, row, &n, err))
        return false;
    *ret_row = n ? row : NULL;
    return true;
}

bool sq_tenant_keys_page(struct store *store, struct str after, unsigned limit, struct arena *mem,
                         struct tenant_key_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct tenant_key_row *rows = arena_zalloc(mem, limit * sizeof(*rows));
    sqlite3_stmt *st = sq_prepare(s, SQ_TENANT_KEYS_PAGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, after.p ? after : STR(""));
    sq_int(&b, limit);
    if (!read_keys(s, st, limit, mem, rows, ret_n, err))
        return false;
    *ret_rows = rows;
    return true;
}
