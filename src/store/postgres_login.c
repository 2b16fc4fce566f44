/* SPDX-License-Identifier: Apache-2.0 */
/* Users with passwords, and their logins, in PostgreSQL.  Functions of the schema (sql/postgres)
 * decide the verdicts, under the lock of the row in question. */
#include "store/postgres_impl.h"

#include "base/clock.h"

static void user_create(struct pg_params *p, const struct store_op *op, int64_t now_ms)
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

static void user_password(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->user->id);
    pg_text(p, op->user->tenant);
    pg_text(p, op->user->password);
    pg_instant(p, now_ms);
}

static void user_end(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->user->id);
    pg_text(p, op->user->tenant);
    pg_time(p, op->user->ended_ms);
    pg_instant(p, now_ms);
}

static void login_failed(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->user->id);
    pg_text(p, op->user->tenant);
    pg_int(p, LOGIN_FREE_FAILURES);
    pg_int(p, LOGIN_LOCK_MS);
    pg_int(p, LOGIN_LOCK_MAX_MS);
    pg_instant(p, now_ms);
}

static void login_create(struct pg_params *p, const struct store_op *op, int64_t now_ms)
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

static void login_rotate(struct pg_params *p, const struct store_op *op, int64_t now_ms)
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

static void login_revoke(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    pg_uuid(p, l->id);
    pg_text(p, l->tenant);
    pg_uuid(p, l->user_id);
    pg_instant(p, l->revoked_ms);
    pg_text(p, l->revoke_reason);
    pg_instant(p, now_ms);
}

static void logins_revoke(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    pg_text(p, l->tenant);
    pg_uuid(p, l->user_id);
    pg_instant(p, l->revoked_ms);
    pg_text(p, l->revoke_reason);
    pg_instant(p, now_ms);
}

const struct pg_verb pg_login_ops[] = {
    {OP_USER_CREATE, PG_USER_CREATE, user_create, NULL},
    {OP_USER_PASSWORD, PG_USER_PASSWORD, user_password, NULL},
    {OP_USER_END, PG_USER_END, user_end, NULL},
    {OP_LOGIN_FAILED, PG_LOGIN_FAILED, login_failed, NULL},
    {OP_LOGIN_CREATE, PG_LOGIN_CREATE, login_create, NULL},
    {OP_LOGIN_ROTATE, PG_LOGIN_ROTATE, login_rotate, NULL},
    {OP_LOGIN_REVOKE, PG_LOGIN_REVOKE, login_revoke, NULL},
    {OP_LOGINS_REVOKE, PG_LOGINS_REVOKE, logins_revoke, NULL},
    {0},
};
