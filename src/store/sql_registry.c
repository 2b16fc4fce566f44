/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of contexts, idempotency rows, keys, users, logins, tenants and changes, for both SQL
 * backends. */
#include "store/sql.h"

#define AT(member) offsetof(struct context_row, member)
static const struct row_column context_columns[] = {
    {COLUMN_UUID, AT(id), "id"},
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_TEXT, AT(document), "document"},
    {COLUMN_INT, AT(version), "version"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(updated_ms), "updated_at"},
};
#undef AT
const struct row_type sql_context = {sizeof(struct context_row), context_columns,
                                     countof(context_columns), NULL};

#define AT(member) offsetof(struct idempotency_row, member)
static const struct row_column idempotency_columns[] = {
    {COLUMN_TENANT, AT(tenant), "tenant_id"},
    {COLUMN_OWNER, AT(owner), "owner"},
    {COLUMN_RAW_TEXT, AT(key), "key"},
    {COLUMN_SHA, AT(request_sha), "request_sha"},
    {COLUMN_INT32, AT(status), "status"},
    {COLUMN_RAW_TEXT, AT(headers), "headers"},
    {COLUMN_BYTES, AT(body), "body"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(expires_ms), "expires_at"},
};
#undef AT
const struct row_type sql_idempotency = {sizeof(struct idempotency_row), idempotency_columns,
                                         countof(idempotency_columns), NULL};

#define AT(member) offsetof(struct key_row, member)
static const struct row_column key_columns[] = {
    {COLUMN_TEXT, AT(id), "id"},
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_UUID, AT(user_id), "user_id"},
    {COLUMN_TEXT, AT(name), "name"},
    {COLUMN_ROLE, AT(role), "role"},
    {COLUMN_SHA, AT(hash), "hash"},
    {COLUMN_TEXT, AT(scopes), "scopes"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_TIME, AT(expires_ms), "expires_at"},
    {COLUMN_TIME, AT(revoked_ms), "revoked_at"},
    {COLUMN_TIME, AT(last_used_ms), "last_used_at"},
};
#undef AT
const struct row_type sql_key = {sizeof(struct key_row), key_columns, countof(key_columns), NULL};

#define AT(member) offsetof(struct user_row, member)
static const struct row_column user_columns[] = {
    {COLUMN_UUID, AT(id), "id"},
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_TEXT, AT(name), "name"},
    {COLUMN_ROLE, AT(role), "role"},
    {COLUMN_TEXT, AT(issuer), "issuer"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_TIME, AT(ended_ms), "ended_at"},
    {COLUMN_TEXT, AT(password), "password"},
    {COLUMN_INT, AT(failed_logins), "failed_logins"},
    {COLUMN_TIME, AT(locked_until_ms), "locked_until"},
};
#undef AT
const struct row_type sql_user = {sizeof(struct user_row), user_columns, countof(user_columns),
                                  NULL};

#define AT(member) offsetof(struct login_row, member)
static const struct row_column login_columns[] = {
    {COLUMN_UUID, AT(id), "id"},
    {COLUMN_UUID, AT(family), "family"},
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_UUID, AT(user_id), "user_id"},
    {COLUMN_SHA, AT(refresh_hash), "refresh_token_hash"},
    {COLUMN_TEXT, AT(device_info), "device_info"},
    {COLUMN_TEXT, AT(ip_address), "ip_address"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(expires_ms), "expires_at"},
    {COLUMN_INSTANT, AT(last_activity_ms), "last_activity"},
    {COLUMN_TIME, AT(revoked_ms), "revoked_at"},
    {COLUMN_TEXT, AT(revoke_reason), "revoke_reason"},
};
#undef AT
const struct row_type sql_login = {sizeof(struct login_row), login_columns, countof(login_columns),
                                   NULL};

/* Sessions that no longer count are subtracted, even before the reaper ends them: those past their
 * end, and those promoted and unused for SESSION_PROMOTED_IDLE_MS (see session_row_counts()).  In
 * SQLite each half uses an index that holds few other rows.  ?1 is now. */
#define SQ_COUNTED                                                                                 \
    "counted_sessions - ((SELECT count(*) FROM edge_mcp_sessions INDEXED BY "                      \
    "idx_edge_sessions_counted WHERE tenant_id = tenants.id AND counted = 1 "                      \
    "AND status IN ('active', 'idle') AND expires_at <= ?1) + (SELECT count(*) FROM "              \
    "edge_mcp_sessions INDEXED BY idx_edge_sessions_promoted WHERE tenant_id = tenants.id "        \
    "AND counted = 1 AND status IN ('active', 'idle') "                                            \
    "AND origin NOT IN ('rest', 'tool', 'keyed') AND last_activity_at <= ?1 - 1800000 "            \
    "AND (expires_at IS NULL OR expires_at > ?1)))"
#define PG_COUNTED                                                                                 \
    "t.counted_sessions - (SELECT count(*) FROM mcp.edge_mcp_sessions s WHERE s.tenant_id = t.id " \
    "AND s.counted AND s.status IN ('active', 'idle') AND (s.expires_at <= $1::timestamptz "       \
    "OR (s.origin NOT IN ('rest', 'tool', 'keyed') "                                               \
    "AND s.last_activity_at <= $1::timestamptz - interval '30 minutes')))"
#define AT(member) offsetof(struct tenant_row, member)
static const struct row_column tenant_columns[] = {
    {COLUMN_TEXT, AT(id), "id", "t.id"},
    {COLUMN_INSTANT, AT(created_ms), "created_at", "t.created_at"},
    {COLUMN_INT, AT(counted_sessions), SQ_COUNTED, PG_COUNTED},
};
#undef AT
const struct row_type sql_tenant = {sizeof(struct tenant_row), tenant_columns,
                                    countof(tenant_columns), NULL};

#define AT(member) offsetof(struct tenant_key_row, member)
static const struct row_column tenant_key_columns[] = {
    {COLUMN_TEXT, AT(id), "id"},
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_TEXT, AT(master_id), "master_id"},
    {COLUMN_BYTES, AT(wrapped), "wrapped"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
};
#undef AT
const struct row_type sql_tenant_key = {sizeof(struct tenant_key_row), tenant_key_columns,
                                        countof(tenant_key_columns), NULL};

#define AT(member) offsetof(struct secret_row, member)
static const struct row_column secret_columns[] = {
    {COLUMN_TEXT, AT(name), "name"},
    {COLUMN_BYTES, AT(sealed), "sealed"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(updated_ms), "updated_at"},
};
#undef AT
const struct row_type sql_secret = {sizeof(struct secret_row), secret_columns,
                                    countof(secret_columns), NULL};

#define AT(member) offsetof(struct change_row, member)
static const struct row_column change_columns[] = {
    {COLUMN_INT, AT(id), "id"},
    {COLUMN_INT32, AT(kind), "kind"},
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_TEXT, AT(name), "name"},
};
#undef AT
const struct row_type sql_change = {sizeof(struct change_row), change_columns,
                                    countof(change_columns), NULL};

static unsigned by_tenant(const struct store_call *c)
{
    return c->tenant.p != NULL;
}

static unsigned by_id(const struct store_call *c)
{
    return c->id.p != NULL;
}

static unsigned newest_change(const struct store_call *c)
{
    return c->after_id < 0;
}

const struct sql_read sql_registry_reads[] = {
    {VERB_CONTEXT_GET,
     &sql_context,
     {{ARG_TENANT}, CALL_ARG(ARG_UUID, id), {ARG_OWNER}, {ARG_WIDE}},
     NULL,
     {{"SELECT @ FROM contexts WHERE id = ?2 AND tenant_id = ?1 AND (?4 OR EXISTS (SELECT 1 "
       "FROM edge_mcp_sessions s WHERE s.context_id = ?2 AND s.tenant_id = ?1 "
       "AND s.owner = ?3))"},
      {"SELECT @ FROM mcp.contexts WHERE tenant_id = $1::text AND id = $2::uuid "
       "AND ($4::boolean OR EXISTS (SELECT FROM mcp.edge_mcp_sessions s "
       "WHERE s.context_id = $2::uuid AND s.tenant_id = $1::text AND s.owner = $3::text))"}}},
    {VERB_IDEMPOTENCY_GET,
     &sql_idempotency,
     {{ARG_TENANT}, {ARG_OWNER}, CALL_ARG(ARG_RAW_TEXT, id), {ARG_NOW}},
     NULL,
     {{"SELECT @ FROM idempotency WHERE tenant_id = ?1 AND owner = ?2 AND key = ?3 "
       "AND expires_at > ?4"},
      {"SELECT @ FROM mcp.idempotency WHERE tenant_id = $1::text AND owner = $2::text "
       "AND key = $3::bytea AND expires_at > $4::timestamptz"}}},
    {VERB_KEY_GET,
     &sql_key,
     {CALL_ARG(ARG_NAME, id)},
     NULL,
     {{"SELECT @ FROM api_keys WHERE id = ?1"},
      {"SELECT @ FROM mcp.api_keys WHERE id = $1::text"}}},
    {VERB_KEYS_PAGE,
     &sql_key,
     {CALL_ARG(ARG_TEXT, tenant), CALL_ARG(ARG_FROM, after), {ARG_LIMIT}},
     by_tenant,
     {{"SELECT @ FROM api_keys WHERE ?1 IS NULL AND id > ?2 ORDER BY id LIMIT ?3",
       "SELECT @ FROM api_keys WHERE tenant_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3"},
      {"SELECT @ FROM mcp.api_keys WHERE $1::text IS NULL AND id > $2::text ORDER BY id "
       "LIMIT $3::bigint",
       "SELECT @ FROM mcp.api_keys WHERE tenant_id = $1::text AND id > $2::text ORDER BY id "
       "LIMIT $3::bigint"}}},
    {VERB_USER_GET,
     &sql_user,
     {CALL_ARG(ARG_UUID, id)},
     NULL,
     {{"SELECT @ FROM users WHERE id = ?1"}, {"SELECT @ FROM mcp.users WHERE id = $1::uuid"}}},
    {VERB_USER_BY_NAME,
     &sql_user,
     {CALL_ARG(ARG_NAME, tenant), CALL_ARG(ARG_NAME, name)},
     NULL,
     {{"SELECT @ FROM users WHERE tenant_id = ?1 AND name = ?2 AND issuer IS NULL"},
      {"SELECT @ FROM mcp.users WHERE tenant_id = $1::text AND name = $2::text "
       "AND issuer IS NULL"}}},
    {VERB_USERS_PAGE,
     &sql_user,
     {CALL_ARG(ARG_TEXT, tenant), CALL_ARG(ARG_FROM, name), CALL_ARG(ARG_FROM, after), {ARG_LIMIT}},
     by_tenant,
     {{"SELECT @ FROM users WHERE ?1 IS NULL AND issuer IS NULL AND (tenant_id, name) > (?2, ?3) "
       "ORDER BY tenant_id, name LIMIT ?4",
       "SELECT @ FROM users WHERE tenant_id = ?1 AND issuer IS NULL "
       "AND (tenant_id, name) > (?2, ?3) ORDER BY name LIMIT ?4"},
      {"SELECT @ FROM mcp.users WHERE $1::text IS NULL AND issuer IS NULL "
       "AND (tenant_id COLLATE \"C\", name COLLATE \"C\") > ($2::text, $3::text) "
       "ORDER BY tenant_id COLLATE \"C\", name COLLATE \"C\" LIMIT $4::bigint",
       "SELECT @ FROM mcp.users WHERE tenant_id = $1::text AND issuer IS NULL "
       "AND (tenant_id COLLATE \"C\", name COLLATE \"C\") > ($2::text, $3::text) "
       "ORDER BY name COLLATE \"C\" LIMIT $4::bigint"}}},
    {VERB_LOGIN_GET,
     &sql_login,
     {CALL_ARG(ARG_UUID, id)},
     NULL,
     {{"SELECT @ FROM user_sessions WHERE id = ?1 AND family = id"},
      {"SELECT @ FROM mcp.user_sessions WHERE id = $1::uuid AND family = id"}}},
    {VERB_LOGIN_BY_HASH,
     &sql_login,
     {CALL_ARG(ARG_HASH, hash)},
     NULL,
     {{"SELECT @ FROM user_sessions WHERE refresh_token_hash = ?1"},
      {"SELECT @ FROM mcp.user_sessions WHERE refresh_token_hash = $1::bytea"}}},
    {VERB_LOGINS_PAGE,
     &sql_login,
     {CALL_ARG(ARG_UUID, id),
      CALL_ARG(ARG_TEXT, tenant),
      {ARG_NOW},
      CALL_ARG(ARG_UUID_BEFORE, after),
      {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM user_sessions WHERE user_id = ?1 AND tenant_id = ?2 AND revoked_at IS NULL "
       "AND expires_at > ?3 AND id < ?4 ORDER BY id DESC LIMIT ?5"},
      {"SELECT @ FROM mcp.user_sessions WHERE user_id = $1::uuid AND tenant_id = $2::text "
       "AND revoked_at IS NULL AND expires_at > $3::timestamptz "
       "AND id < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') "
       "ORDER BY id DESC LIMIT $5::bigint"}}},
    {VERB_TENANT_GET,
     &sql_tenant,
     {{ARG_NOW}, CALL_ARG(ARG_NAME, id)},
     NULL,
     {{"SELECT @ FROM tenants WHERE id = ?2"},
      {"SELECT @ FROM mcp.tenants t WHERE t.id = $2::text"}}},
    {VERB_TENANTS_PAGE,
     &sql_tenant,
     {{ARG_NOW}, CALL_ARG(ARG_FROM, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM tenants WHERE id > ?2 ORDER BY id LIMIT ?3"},
      {"SELECT @ FROM mcp.tenants t WHERE t.id COLLATE \"C\" > $2::text ORDER BY "
       "t.id COLLATE \"C\" LIMIT $3::bigint"}}},
    {VERB_TENANT_KEY_GET,
     &sql_tenant_key,
     {CALL_ARG(ARG_NAME, tenant), CALL_ARG(ARG_NAME, id)},
     by_id,
     {{"SELECT @ FROM tenant_keys WHERE tenant_id = ?1 AND ?2 IS NULL ORDER BY id DESC LIMIT 1",
       "SELECT @ FROM tenant_keys WHERE tenant_id = ?1 AND id = ?2"},
      {"SELECT @ FROM mcp.tenant_keys WHERE tenant_id = $1::text AND $2::text IS NULL "
       "ORDER BY id DESC LIMIT 1",
       "SELECT @ FROM mcp.tenant_keys WHERE tenant_id = $1::text AND id = $2::text"}}},
    {VERB_TENANT_KEYS_PAGE,
     &sql_tenant_key,
     {CALL_ARG(ARG_FROM, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM tenant_keys WHERE id > ?1 ORDER BY id LIMIT ?2"},
      {"SELECT @ FROM mcp.tenant_keys WHERE id > $1::text ORDER BY id LIMIT $2::bigint"}},
     .no_page_limit = true},
    {VERB_SECRETS_PAGE,
     &sql_secret,
     {CALL_ARG(ARG_FROM, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM secrets WHERE name > ?1 ORDER BY name LIMIT ?2"},
      {"SELECT @ FROM mcp.secrets WHERE name > $1::text ORDER BY name LIMIT $2::bigint"}},
     .no_page_limit = true},
    /* SQLite has a handler. */
    {VERB_CHANGES,
     &sql_change,
     {CALL_ARG(ARG_INT, after_id), {ARG_LIMIT}},
     newest_change,
     {{NULL},
      {"SELECT @ FROM mcp.changes WHERE id > $1::bigint ORDER BY id LIMIT $2::bigint",
       "SELECT @ FROM mcp.changes WHERE id IS NOT NULL AND $1::bigint < 0 ORDER BY id DESC "
       "LIMIT least($2::bigint, 1)"}},
     .no_page_limit = true},
    {0},
};
