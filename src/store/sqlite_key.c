/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants, users and keys in SQLite.  Keys are looked up by their public part; the store does not
 * compare hashes. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

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

bool sq_tenant_ensure(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    op->verdict = VERDICT_OK;
    return sq_tenant_make(batch->s, op->tenant->id, op->tenant->created_ms, err);
}

bool sq_user_ensure(struct sq_batch *batch, struct store_op *op, struct error *err)
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

static void bind_key(struct sq_bind *b, const struct key_row *k)
{
    sq_text(b, k->id);
    sq_text(b, k->tenant);
    sq_text(b, k->user_id);
    sq_text(b, k->name);
    sq_text(b, str_of(role_name(k->role)));
    sq_blob(b, str_n((const char *)k->hash, sizeof(k->hash)));
    sq_text(b, k->scopes);
    sq_int(b, k->created_ms);
    sq_time(b, k->expires_ms);
    sq_time(b, k->revoked_ms);
    sq_time(b, k->last_used_ms);
}

bool sq_key_create(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    if (!op->key->user_id.p && !sq_tenant_make(batch->s, op->key->tenant, batch->now_ms, err))
        return false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_KEY_CREATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_key(&b, op->key);
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

bool sq_key_revoke(struct sq_batch *batch, struct store_op *op, struct error *err)
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

bool sq_key_used(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_KEY_USED, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->key->id);
    sq_int(&b, op->key->last_used_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool read_role(struct sq_row *r, enum role *ret, struct error *err)
{
    return role_parse(sq_peek_bytes(r), ret) ||
           error_set(err, ERR_INTERNAL, "A row has an unknown role; report it.");
}

static bool read_key(struct sq_row *r, void *to, struct error *err)
{
    struct key_row *row = to;
    row->id = sq_get_bytes(r);
    row->tenant = sq_get_bytes(r);
    row->user_id = sq_get_bytes(r);
    row->name = sq_get_bytes(r);
    if (!read_role(r, &row->role, err))
        return false;
    sq_get_sha(r, row->hash);
    row->scopes = sq_get_bytes(r);
    row->created_ms = sq_get_int(r);
    row->expires_ms = sq_get_int(r);
    row->revoked_ms = sq_get_int(r);
    row->last_used_ms = sq_get_int(r);
    return true;
}

bool sq_key_get(struct store *store, struct str id, struct arena *mem, struct key_row **ret_row,
                struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows keys = {.read = read_key, .size = sizeof(struct key_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, SQ_KEY_GET, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, id);
    if (!sq_read_row(s, st, &keys, err))
        return false;
    *ret_row = keys.items;
    return true;
}

bool sq_keys_page(struct store *store, struct str tenant, struct str after, unsigned limit,
                  struct arena *mem, struct key_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows keys = {.read = read_key, .size = sizeof(struct key_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, tenant.p ? SQ_KEYS_OF_TENANT : SQ_KEYS_PAGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    sq_text(&b, after.p ? after : STR(""));
    sq_int(&b, limit);
    if (!sq_read_rows(s, st, limit, &keys, err))
        return false;
    *ret_rows = keys.items;
    *ret_n = keys.n;
    return true;
}

static bool read_user(struct sq_row *r, void *to, struct error *err)
{
    struct user_row *row = to;
    row->id = sq_get_bytes(r);
    row->tenant = sq_get_bytes(r);
    row->name = sq_get_bytes(r);
    if (!read_role(r, &row->role, err))
        return false;
    row->issuer = sq_get_bytes(r);
    row->created_ms = sq_get_int(r);
    row->ended_ms = sq_get_int(r);
    row->password = sq_get_bytes(r);
    row->failed_logins = sq_get_int(r);
    row->locked_until_ms = sq_get_int(r);
    return true;
}

bool sq_read_user(struct sqlite_store *s, sqlite3_stmt *st, struct arena *mem,
                  struct user_row **ret_row, struct error *err)
{
    struct sq_rows users = {.read = read_user, .size = sizeof(struct user_row), .mem = mem};
    if (!sq_read_row(s, st, &users, err))
        return false;
    *ret_row = users.items;
    return true;
}

bool sq_user_get(struct store *store, struct str id, struct arena *mem, struct user_row **ret_row,
                 struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    sqlite3_stmt *st = sq_prepare(s, SQ_USER_GET, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, id);
    return sq_read_user(s, st, mem, ret_row, err);
}

static bool read_tenant(struct sq_row *r, void *to, struct error *err unused_arg)
{
    struct tenant_row *row = to;
    row->id = sq_get_bytes(r);
    row->created_ms = sq_get_int(r);
    row->counted_sessions = sq_get_int(r);
    return true;
}

bool sq_tenant_get(struct store *store, struct str id, struct arena *mem,
                   struct tenant_row **ret_row, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows tenants = {.read = read_tenant, .size = sizeof(struct tenant_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, SQ_TENANT_GET, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, clock_life_ms());
    sq_text(&b, id);
    if (!sq_read_row(s, st, &tenants, err))
        return false;
    *ret_row = tenants.items;
    return true;
}

bool sq_tenants_page(struct store *store, struct str after, unsigned limit, struct arena *mem,
                     struct tenant_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows tenants = {.read = read_tenant, .size = sizeof(struct tenant_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, SQ_TENANTS_PAGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, clock_life_ms());
    sq_text(&b, after.p ? after : STR(""));
    sq_int(&b, limit);
    if (!sq_read_rows(s, st, limit, &tenants, err))
        return false;
    *ret_rows = tenants.items;
    *ret_n = tenants.n;
    return true;
}
