/* SPDX-License-Identifier: Apache-2.0 */
/* The statement of each verb and its parameters. */
#include "store/postgres_impl.h"

static void add_caller(struct pg_params *p, const struct principal *who)
{
    pg_text(p, who->tenant);
    pg_text(p, who->owner);
}

static void add_reach(struct pg_params *p, const struct principal *who)
{
    add_caller(p, who);
    pg_bool(p, who->tenant_wide);
}

static void session_create(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct session_row *r = op->session;
    pg_own_uuid(p, r->id);
    pg_text(p, r->handle);
    pg_text(p, op->who->tenant);
    pg_own_uuid(p, r->user_id);
    pg_text(p, r->edge_mcp_id);
    pg_text(p, r->client_name);
    pg_text(p, r->client_type);
    pg_text(p, r->client_version);
    pg_text(p, str_of(session_status_name(r->status)));
    pg_bool(p, r->initialized);
    pg_text(p, r->core_session_id);
    pg_bytes(p, r->sealed_auth);
    pg_own_uuid(p, r->context_id);
    pg_instant(p, r->last_activity_ms);
    pg_int(p, r->tool_count);
    pg_int(p, r->tokens_used);
    pg_instant(p, r->created_ms);
    pg_time(p, r->expires_ms);
    pg_time(p, r->terminated_ms);
    pg_text(p, r->termination_reason);
    pg_text(p, op->who->owner);
    pg_text(p, str_of(session_origin_name(r->origin)));
    pg_bool(p, r->provisional);
    pg_bool(p, r->counted);
    pg_text(p, r->carrier);
    pg_bytes(p, r->carrier_key);
    pg_int(p, r->ttl_ms);
    pg_int(p, r->version ? r->version : 1);
    pg_text(p, r->connection_metadata);
    pg_text(p, r->toolsets);
    pg_bytes(p, r->sealed_context);
    pg_text(p, r->setup);
    pg_text(p, r->lineage);
    pg_instant(p, now_ms);
    pg_int(p, op->max_counted);
}

static void session_promote(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->session->id);
    add_caller(p, op->who);
    pg_time(p, op->session->expires_ms);
    pg_instant(p, now_ms);
    pg_int(p, op->max_counted);
}

static void session_end(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->session->id);
    add_reach(p, op->who);
    pg_text(p, str_of(session_status_name(op->session->status)));
    pg_time(p, op->session->terminated_ms);
    pg_text(p, op->session->termination_reason);
    pg_instant(p, now_ms);
}

static void transport_create(struct pg_params *p, const struct store_op *op,
                             int64_t now_ms unused_arg)
{
    pg_row_params(p, &sql_transport, op->transport, op->who);
}

static void transport_link(struct pg_params *p, const struct store_op *op,
                           int64_t now_ms unused_arg)
{
    pg_sha(p, op->transport->id_hash);
    add_caller(p, op->who);
    pg_uuid(p, op->transport->session_id);
}

static void transport_touch(struct pg_params *p, const struct store_op *op,
                            int64_t now_ms unused_arg)
{
    pg_sha(p, op->transport->id_hash);
    add_caller(p, op->who);
    pg_instant(p, op->transport->last_used_ms);
}

static void transport_end(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_sha(p, op->transport->id_hash);
    add_caller(p, op->who);
    pg_time(p, op->transport->ended_ms);
}

static void link_put(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_row_params(p, &sql_link, op->link, NULL);
    add_caller(p, op->who);
}

static void link_end(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_uuid(p, op->link->session_id);
    pg_text(p, op->link->server);
    add_caller(p, op->who);
    pg_time(p, op->link->ended_ms);
    pg_text(p, op->link->end_reason);
}

static void writer_renew(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_int(p, op->writer->number);
    pg_instant(p, op->writer->lease_until_ms);
}

static void writer_end(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_int(p, op->writer->number);
    pg_instant(p, op->writer->ended_ms);
}

static void undelivered_put(struct pg_params *p, const struct store_op *op,
                            int64_t now_ms unused_arg)
{
    const struct undelivered_row *u = op->undelivered;
    pg_int(p, u->id);
    add_caller(p, op->who);
    pg_uuid(p, u->session_id);
    pg_sha(p, u->digest);
    pg_int(p, u->exec);
    pg_instant(p, u->created_ms);
    pg_instant(p, u->expires_ms);
    pg_bytes(p, u->sealed);
}

static void undelivered_take(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_int(p, op->undelivered->id);
    add_caller(p, op->who);
    pg_instant(p, now_ms);
}

static void session_use(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->session->id);
    add_reach(p, op->who);
    pg_instant(p, op->session->last_activity_ms);
    pg_instant(p, now_ms);
    pg_int(p, SESSION_LIFE_MAX_MS);
    pg_time(p, op->is_in_event ? now_ms + SESSION_END_NEAR_MS : 0);
}

static void session_patch(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct session_row *r = op->session;
    pg_uuid(p, r->id);
    add_reach(p, op->who);
    pg_text(p, r->client_name);
    pg_text(p, r->client_type);
    pg_text(p, r->client_version);
    pg_bool(p, r->initialized);
    pg_text(p, r->core_session_id);
    pg_bytes(p, r->sealed_auth);
    pg_own_uuid(p, r->context_id);
    pg_int(p, r->version);
    pg_text(p, r->connection_metadata);
    pg_text(p, r->toolsets);
    pg_text(p, r->setup);
    pg_int4(p, (int32_t)op->fields);
    pg_instant(p, now_ms);
}

static void session_refresh(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_uuid(p, op->session->id);
    add_reach(p, op->who);
    pg_time(p, op->session->expires_ms);
    pg_int(p, op->session->ttl_ms);
    pg_instant(p, now_ms);
}

static void context_put(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct context_row *c = op->context;
    pg_uuid(p, c->session_id);
    add_reach(p, op->who);
    pg_uuid(p, c->id);
    pg_text(p, c->document);
    pg_int(p, c->version);
    pg_instant(p, c->created_ms);
    pg_instant(p, c->updated_ms);
    pg_instant(p, now_ms);
}

static void tenant_ensure(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_text(p, op->tenant->id);
    pg_instant(p, op->tenant->created_ms);
}

static void user_ensure(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct user_row *u = op->user;
    pg_own_uuid(p, u->id);
    pg_text(p, u->tenant);
    pg_text(p, u->name);
    pg_text(p, str_of(role_name(u->role)));
    pg_text(p, u->issuer);
    pg_instant(p, u->created_ms);
    pg_time(p, u->ended_ms);
    pg_instant(p, now_ms);
}

static void key_create(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_row_params(p, &sql_key, op->key, NULL);
    pg_instant(p, now_ms);
}

static void key_revoke(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_text(p, op->key->id);
    pg_text(p, op->key->tenant);
    pg_instant(p, op->key->revoked_ms);
    pg_instant(p, now_ms);
}

static void key_used(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_text(p, op->key->id);
    pg_instant(p, op->key->last_used_ms);
}

static void idempotency_put(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_row_params(p, &sql_idempotency, op->idempotency, op->who);
    pg_instant(p, now_ms);
}

static void tenant_key_put(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_row_params(p, &sql_tenant_key, op->tenant_key, NULL);
    pg_instant(p, now_ms);
}

static void tenant_key_wrap(struct pg_params *p, const struct store_op *op,
                            int64_t now_ms unused_arg)
{
    pg_text(p, op->tenant_key->id);
    pg_text(p, op->tenant_key->tenant);
    pg_text(p, op->tenant_key->master_id);
    pg_bytes(p, op->tenant_key->wrapped);
}

static void secret_put(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_row_params(p, &sql_secret, op->secret, NULL);
    pg_int(p, op->max_counted);
    pg_instant(p, now_ms);
}

static void secret_remove(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_text(p, op->secret->name);
    pg_instant(p, now_ms);
}

static void session_reseal(struct pg_params *p, const struct store_op *op,
                           int64_t now_ms unused_arg)
{
    pg_uuid(p, op->session->id);
    pg_text(p, op->session->tenant);
    pg_bytes(p, op->session->sealed_auth);
    pg_bytes(p, op->session->sealed_context);
    pg_int(p, op->session->version);
}

const struct pg_verb pg_verb_ops[] = {
    {OP_SESSION_CREATE, PG_SESSION_CREATE, session_create, NULL},
    {OP_SESSION_PROMOTE, PG_SESSION_PROMOTE, session_promote, NULL},
    {OP_SESSION_END, PG_SESSION_END, session_end, NULL},
    {OP_TRANSPORT_CREATE, PG_TRANSPORT_CREATE, transport_create, NULL},
    {OP_TRANSPORT_LINK, PG_TRANSPORT_LINK, transport_link, NULL},
    {OP_TRANSPORT_TOUCH, PG_TRANSPORT_TOUCH, transport_touch, NULL},
    {OP_TRANSPORT_END, PG_TRANSPORT_END, transport_end, NULL},
    {OP_LINK_PUT, PG_LINK_PUT, link_put, NULL},
    {OP_LINK_END, PG_LINK_END, link_end, NULL},
    {OP_EVENT_APPEND, PG_EVENTS_APPEND, NULL, NULL},
    {OP_WRITER_RENEW, PG_WRITER_RENEW, writer_renew, NULL},
    {OP_WRITER_END, PG_WRITER_END, writer_end, NULL},
    {OP_UNDELIVERED_PUT, PG_UNDELIVERED_PUT, undelivered_put, NULL},
    {OP_UNDELIVERED_TAKE, PG_UNDELIVERED_TAKE, undelivered_take, NULL},
    {OP_SESSION_USE, PG_SESSION_USE, session_use, NULL},
    {OP_SESSION_PATCH, PG_SESSION_PATCH, session_patch, NULL},
    {OP_SESSION_REFRESH, PG_SESSION_REFRESH, session_refresh, NULL},
    {OP_CONTEXT_PUT, PG_CONTEXT_PUT, context_put, NULL},
    {OP_TENANT_ENSURE, PG_TENANT_ENSURE, tenant_ensure, NULL},
    {OP_USER_ENSURE, PG_USER_ENSURE, user_ensure, NULL},
    {OP_KEY_CREATE, PG_KEY_CREATE, key_create, NULL},
    {OP_KEY_REVOKE, PG_KEY_REVOKE, key_revoke, NULL},
    {OP_KEY_USED, PG_KEY_USED, key_used, NULL},
    {OP_IDEMPOTENCY_PUT, PG_IDEMPOTENCY_PUT, idempotency_put, NULL},
    {OP_TENANT_KEY_PUT, PG_TENANT_KEY_PUT, tenant_key_put, NULL},
    {OP_TENANT_KEY_WRAP, PG_TENANT_KEY_WRAP, tenant_key_wrap, NULL},
    {OP_SESSION_RESEAL, PG_SESSION_RESEAL, session_reseal, NULL},
    {OP_SECRET_PUT, PG_SECRET_PUT, secret_put, NULL},
    {OP_SECRET_REMOVE, PG_SECRET_REMOVE, secret_remove, NULL},
    {0},
};
