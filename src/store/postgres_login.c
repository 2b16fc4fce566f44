/* SPDX-License-Identifier: Apache-2.0 */
/* Users with passwords, and their logins, in PostgreSQL.  Functions of the schema (sql/postgres)
 * decide the verdicts, under the lock of the row in question. */
#include "store/postgres_impl.h"

#include "base/clock.h"

void pg_user_create(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct user_row *u = op->user;
    pg_own_uuid(p, u->id);
    pg_text(p, u->tenant);
    pg_text(p, u->name);
    pg_text(p, str_of(role_name(u->role)));
    pg_text(p, u->password);
    pg_instant(p, u->created_ms);
    pg_instant(p, now_ms);
}

void pg_user_password(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->user->id);
    pg_text(p, op->user->tenant);
    pg_text(p, op->user->password);
    pg_instant(p, now_ms);
}

void pg_user_end(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->user->id);
    pg_text(p, op->user->tenant);
    pg_time(p, op->user->ended_ms);
    pg_instant(p, now_ms);
}

void pg_login_failed(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->user->id);
    pg_text(p, op->user->tenant);
    pg_int(p, LOGIN_FREE_FAILURES);
    pg_int(p, LOGIN_LOCK_MS);
    pg_int(p, LOGIN_LOCK_MAX_MS);
    pg_instant(p, now_ms);
}

void pg_login_create(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    pg_own_uuid(p, l->id);
    pg_uuid(p, l->user_id);
    pg_text(p, l->tenant);
    pg_sha(p, l->refresh_hash);
    pg_text(p, l->device_info);
    pg_text(p, l->ip_address);
    pg_instant(p, l->created_ms);
    pg_instant(p, l->expires_ms);
    pg_instant(p, l->last_activity_ms);
    pg_text(p, l->password);
    pg_int(p, op->max_counted);
    pg_instant(p, now_ms);
}

void pg_login_rotate(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    pg_own_uuid(p, l->id);
    pg_sha(p, l->refresh_hash);
    pg_sha(p, l->next_hash);
    pg_instant(p, l->expires_ms);
    pg_text(p, l->ip_address);
    pg_instant(p, l->arrived_ms);
    pg_instant(p, now_ms);
}

void pg_login_revoke(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    pg_uuid(p, l->id);
    pg_text(p, l->tenant);
    pg_uuid(p, l->user_id);
    pg_instant(p, l->revoked_ms);
    pg_text(p, l->revoke_reason);
    pg_instant(p, now_ms);
}

void pg_logins_revoke(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    pg_text(p, l->tenant);
    pg_uuid(p, l->user_id);
    pg_instant(p, l->revoked_ms);
    pg_text(p, l->revoke_reason);
    pg_instant(p, now_ms);
}

/* Reads. */

bool pg_user_by_name(struct store *s, struct str tenant, struct str name, struct arena *mem,
                     struct user_row **ret_row, struct error *err)
{
    struct pg_params p = {0};
    pg_text(&p, pg_is_text(tenant) ? tenant : STR("")); /* the empty name does not exist */
    pg_text(&p, pg_is_text(name) ? name : STR(""));
    return pg_read_user(pg_of(s), PG_USER_BY_NAME, &p, mem, ret_row, err);
}

static bool read_login(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct login_row *row = to;
    row->id = pg_get_uuid(r);
    row->family = pg_get_uuid(r);
    row->tenant = pg_get_bytes(r);
    row->user_id = pg_get_uuid(r);
    pg_get_sha(r, row->refresh_hash);
    row->device_info = pg_get_bytes(r);
    row->ip_address = pg_get_bytes(r);
    row->created_ms = pg_get_time(r);
    row->expires_ms = pg_get_time(r);
    row->last_activity_ms = pg_get_time(r);
    row->revoked_ms = pg_get_time(r);
    row->revoke_reason = pg_get_bytes(r);
    return true;
}

static bool read_one(struct store *s, enum pg_statement which, const struct pg_params *p,
                     struct arena *mem, struct login_row **ret_row, struct error *err)
{
    struct pg_rows logins = {.read = read_login, .size = sizeof(struct login_row), .mem = mem};
    if (!pg_read_row(pg_of(s), which, p, &logins, err))
        return false;
    *ret_row = logins.items;
    return true;
}

bool pg_login_get(struct store *s, struct str id, struct arena *mem, struct login_row **ret_row,
                  struct error *err)
{
    struct pg_params p = {0};
    pg_uuid(&p, id);
    return read_one(s, PG_LOGIN_GET, &p, mem, ret_row, err);
}

bool pg_login_by_hash(struct store *s, const uint8_t hash[32], struct arena *mem,
                      struct login_row **ret_row, struct error *err)
{
    struct pg_params p = {0};
    pg_sha(&p, hash);
    return read_one(s, PG_LOGIN_BY_HASH, &p, mem, ret_row, err);
}

bool pg_logins_page(struct store *s, struct str tenant, struct str user_id, struct str before,
                    unsigned limit, struct arena *mem, struct login_row **ret_rows, size_t *ret_n,
                    struct error *err)
{
    struct pg_rows logins = {.read = read_login, .size = sizeof(struct login_row), .mem = mem};
    struct pg_params p = {0};
    pg_uuid(&p, user_id);
    pg_text(&p, tenant);
    pg_instant(&p, clock_life_ms());
    pg_uuid(&p, before);
    pg_int(&p, limit);
    if (!pg_read_page(pg_of(s), PG_LOGINS_PAGE, &p, &logins, err))
        return false;
    *ret_rows = logins.items;
    *ret_n = logins.n;
    return true;
}
