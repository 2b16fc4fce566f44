/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of erasures, for both SQL backends. */
#include "erasure/store/impl.h"

#define AT(member) offsetof(struct erasure_row, member)
static const struct row_column columns[] = {
    {COLUMN_UUID, AT(id), "id"},
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_UUID, AT(user_id), "user_id"},
    {COLUMN_TEXT, AT(made_by), "made_by"},
    {COLUMN_TEXT, AT(reason), "reason"},
    {COLUMN_TEXT, AT(names), "names"},
    {COLUMN_INT, AT(next_id), "next_id"},
    {COLUMN_INT, AT(bodies), "bodies"},
    {COLUMN_INT, AT(body_bytes), "body_bytes"},
    {COLUMN_INT, AT(sessions), "sessions"},
    {COLUMN_INT, AT(held), "held"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(moved_ms), "moved_at"},
    {COLUMN_TIME, AT(done_ms), "done_at"},
};
#undef AT
const struct row_type sql_erasure = {sizeof(struct erasure_row), columns, countof(columns), NULL};

#define AT(member) offsetof(struct erasure_left, member)
static const struct row_column left_columns[] = {
    {COLUMN_INT, AT(live), "live"},       {COLUMN_INT, AT(over), "over"},
    {COLUMN_INT, AT(held), "held"},       {COLUMN_INT, AT(calls), "calls"},
    {COLUMN_INT, AT(keys), "keys"},       {COLUMN_INT, AT(logins), "logins"},
    {COLUMN_INT, AT(is_held), "is_held"},
};
#undef AT
static const struct row_type left = {sizeof(struct erasure_left), left_columns,
                                     countof(left_columns), NULL};

static const struct row_column owner_columns[] = {
    {COLUMN_TEXT, offsetof(struct erasure_owner, owner), "owner"},
};
static const struct row_type owner = {sizeof(struct erasure_owner), owner_columns, 1, NULL};

static const struct row_column document_columns[] = {
    {COLUMN_UUID, offsetof(struct erasure_document, id), "id"},
};
static const struct row_type document = {sizeof(struct erasure_document), document_columns, 1,
                                         NULL};

enum { OF_ALL, OF_TENANT };
static unsigned by_tenant(const struct store_call *c)
{
    return c->tenant.p ? OF_TENANT : OF_ALL;
}

#define SQ_PAGE "AND id < ?2 AND (?3 = 0 OR done_at IS NULL) ORDER BY id DESC LIMIT ?4"
#define PG_PAGE                                                                                    \
    "AND ($2::uuid IS NULL OR id < $2) AND (NOT $3::boolean OR done_at IS NULL) "                  \
    "ORDER BY id DESC LIMIT $4::bigint"

/* Sessions of the person, with whether each is held. */
#define SQ_LEFT                                                                                    \
    "WITH s AS (SELECT e.status IN ('active', 'idle') AS live, e.tool_execution_count AS n, "      \
    "EXISTS (SELECT 1 FROM audit_held h WHERE h.tenant_id = e.tenant_id AND h.kind = 0 AND "       \
    "h.name = e.id) AS held FROM edge_mcp_sessions e WHERE e.tenant_id = ?1 AND e.owner IN "       \
    "(SELECT 'user:' || ?2 UNION ALL SELECT 'key:' || id FROM api_keys WHERE user_id = ?2)), "     \
    "t AS (SELECT count(*) FILTER (WHERE live AND NOT held) AS live, count(*) FILTER (WHERE NOT "  \
    "live AND NOT held) AS over, count(*) FILTER (WHERE held) AS held, coalesce(sum(n) FILTER "    \
    "(WHERE NOT held), 0) AS calls, (SELECT count(*) FROM api_keys WHERE user_id = ?2 AND "        \
    "revoked_at IS NULL) AS keys, (SELECT count(*) FROM user_sessions WHERE user_id = ?2 AND "     \
    "revoked_at IS NULL AND id = family) AS logins, (SELECT count(*) FROM audit_holds WHERE "      \
    "tenant_id = ?1 AND kind = 1 AND target = ?2 AND released_at IS NULL) AS is_held FROM s) "     \
    "SELECT @ FROM t"
#define PG_LEFT                                                                                    \
    "WITH s AS (SELECT e.status IN ('active', 'idle') AS live, e.tool_execution_count AS n, "      \
    "EXISTS (SELECT FROM mcp.audit_held h WHERE h.tenant_id = e.tenant_id AND h.kind = 0 AND "     \
    "h.name = e.id::text) AS held FROM mcp.edge_mcp_sessions e WHERE e.tenant_id = $1::text AND "  \
    "e.owner IN (SELECT mcp.hf_owners_of($2::uuid))), "                                            \
    "t AS (SELECT count(*) FILTER (WHERE live AND NOT held) AS live, count(*) FILTER (WHERE NOT "  \
    "live AND NOT held) AS over, count(*) FILTER (WHERE held) AS held, coalesce(sum(n) FILTER "    \
    "(WHERE NOT held), 0)::bigint AS calls, (SELECT count(*) FROM mcp.api_keys WHERE user_id = "   \
    "$2 AND revoked_at IS NULL) AS keys, (SELECT count(*) FROM mcp.user_sessions WHERE user_id "   \
    "= $2 AND revoked_at IS NULL AND id = family) AS logins, (SELECT count(*) FROM "               \
    "mcp.audit_holds WHERE tenant_id = $1 AND kind = 1 AND target = $2 AND released_at IS NULL) "  \
    "AS is_held FROM s) SELECT @ FROM t"

const struct sql_read sql_erasure_reads[] = {
    {VERB_ERASURES_PAGE,
     &sql_erasure,
     {CALL_ARG(ARG_TEXT, tenant),
      CALL_ARG(ARG_UUID_BEFORE, after),
      CALL_ARG(ARG_BOOL, flag),
      {ARG_LIMIT}},
     by_tenant,
     {{[OF_ALL] = "SELECT @ FROM audit_erasures WHERE ?1 IS NULL " SQ_PAGE,
       [OF_TENANT] = "SELECT @ FROM audit_erasures WHERE tenant_id = ?1 " SQ_PAGE},
      {[OF_ALL] = "SELECT @ FROM mcp.audit_erasures WHERE $1::text IS NULL " PG_PAGE,
       [OF_TENANT] = "SELECT @ FROM mcp.audit_erasures WHERE tenant_id = $1::text " PG_PAGE}}},
    {VERB_ERASURE_LEFT,
     &left,
     {CALL_ARG(ARG_TEXT, tenant), CALL_ARG(ARG_UUID, id)},
     NULL,
     {{SQ_LEFT}, {PG_LEFT}},
     .no_page_limit = true},
    {VERB_ERASURE_OWNERS,
     &owner,
     {CALL_ARG(ARG_UUID, id)},
     NULL,
     {{"SELECT @ FROM (SELECT 'user:' || ?1 AS owner UNION ALL SELECT 'key:' || id FROM api_keys "
       "WHERE user_id = ?1)"},
      {"SELECT @ FROM mcp.hf_owners_of($1::uuid) AS o (owner)"}},
     .no_page_limit = true},
    {VERB_ERASURE_DOCUMENTS,
     &document,
     {CALL_ARG(ARG_TEXT, name), CALL_ARG(ARG_UUID_AFTER, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM documents WHERE folder = ?1 AND id > ?2 ORDER BY id LIMIT ?3"},
      {"SELECT @ FROM mcp.documents WHERE folder = $1::text AND ($2::uuid IS NULL OR id > $2) "
       "ORDER BY id LIMIT $3::bigint"}},
     .no_page_limit = true},
    {0},
};
