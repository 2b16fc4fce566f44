/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of sharing, for both SQL backends. */
#include "session/share_store/impl.h"

#define AT(member) offsetof(struct share_row, member)
static const struct row_column share_columns[] = {
    {COLUMN_UUID, AT(id), "id"},
    {COLUMN_TENANT, AT(tenant), "tenant_id"},
    {COLUMN_UUID, AT(session_id), "session_id"},
    {COLUMN_OWNER, AT(made_by), "made_by"},
    {COLUMN_TEXT, AT(grantee), "grantee"},
    {COLUMN_INT32, AT(may), "may"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_TIME, AT(expires_ms), "expires_at"},
    {COLUMN_INT, AT(access_ms), "access_ms"},
    {COLUMN_TIME, AT(joined_ms), "joined_at"},
    {COLUMN_TEXT, AT(joined_client), "joined_client"},
    {COLUMN_TIME, AT(ended_ms), "ended_at"},
    {COLUMN_TEXT, AT(end_reason), "end_reason"},
    {COLUMN_SHA, AT(code_hash), "code_hash"},
};
#undef AT
const struct row_type sql_share = {sizeof(struct share_row), share_columns, countof(share_columns),
                                   NULL};

#define SQ_LIVE(s, now)                                                                            \
    "(" s "ended_at IS NULL AND (" s "expires_at IS NULL OR " s "expires_at > " now "))"
#define PG_LIVE SQ_LIVE

#define AT(member) offsetof(struct binding_row, member)
static const struct row_column binding_columns[] = {
    {COLUMN_TENANT, AT(tenant), "b.tenant_id"},
    {COLUMN_OWNER, AT(owner), "b.owner"},
    {COLUMN_TEXT, AT(carrier), "b.carrier"},
    {COLUMN_RAW_TEXT, AT(carrier_key), "b.carrier_key"},
    {COLUMN_UUID, AT(session_id), "b.session_id"},
    {COLUMN_UUID, AT(share_id), "b.share_id"},
    {COLUMN_INSTANT, AT(bound_ms), "b.bound_at"},
    {COLUMN_INT32, AT(may), "s.may"},
    {COLUMN_BOOL, AT(is_live), "coalesce(s.grantee = b.owner, 0) AND " SQ_LIVE("s.", "?5"),
     "coalesce(s.grantee = b.owner, false) AND " PG_LIVE("s.", "$5::timestamptz")},
    {COLUMN_TEXT, AT(end_reason), "s.end_reason"},
};
#undef AT
static const struct row_type binding = {sizeof(struct binding_row), binding_columns,
                                        countof(binding_columns), NULL};

enum { FIND_CODE, FIND_ID, FIND_ACCESS };
static unsigned find_variant(const struct store_call *c)
{
    const struct share_find *by = c->filter;
    return by->code_hash ? FIND_CODE : by->id.p ? FIND_ID : FIND_ACCESS;
}

static unsigned by_id(const struct store_call *c)
{
    return c->flag;
}

enum { BINDING_OF, BINDING_ANY };
static unsigned binding_variant(const struct store_call *c)
{
    return c->name.p ? BINDING_OF : BINDING_ANY;
}

/* ?1 tenant, ?2 owner, ?3 code, ?4 id, ?5 session, ?6 now. */
#define SQ_FIND "SELECT @ FROM session_shares WHERE tenant_id = ?1 AND ?2 IS NOT NULL "
#define PG_FIND                                                                                    \
    "SELECT @ FROM mcp.session_shares WHERE tenant_id = $1::text AND $2::text IS NOT NULL "
#define SQ_UNUSED "AND ?6 IS NOT NULL "
#define PG_UNUSED "AND $6::timestamptz IS NOT NULL "

#define SQ_SHARED                                                                                  \
    "SELECT @ FROM edge_mcp_sessions WHERE tenant_id = ?1 AND EXISTS (SELECT 1 FROM "              \
    "session_shares s WHERE s.session_id = edge_mcp_sessions.id AND s.grantee = ?2 "               \
    "AND " SQ_LIVE("s.", "?4") ") "
#define PG_SHARED                                                                                  \
    "SELECT @ FROM mcp.edge_mcp_sessions WHERE tenant_id = $1::text AND EXISTS (SELECT FROM "      \
    "mcp.session_shares s WHERE s.session_id = mcp.edge_mcp_sessions.id AND s.grantee = $2::text " \
    "AND " PG_LIVE("s.", "$4::timestamptz") ") "

#define FIND_ARG(kind, member) FILTER_ARG(kind, share_find, member)

const struct sql_read sql_sharing_reads[] = {
    {VERB_SHARES_PAGE,
     &sql_share,
     {{ARG_TENANT}, CALL_ARG(ARG_UUID, session_id), CALL_ARG(ARG_UUID_AFTER, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM session_shares WHERE tenant_id = ?1 AND session_id = ?2 AND id > ?3 "
       "ORDER BY id LIMIT ?4"},
      {"SELECT @ FROM mcp.session_shares WHERE tenant_id = $1::text AND session_id = $2::uuid "
       "AND ($3::uuid IS NULL OR id > $3) ORDER BY id LIMIT $4::bigint"}}},
    {VERB_SHARE,
     &sql_share,
     {{ARG_TENANT},
      {ARG_OWNER},
      FIND_ARG(ARG_HASH, code_hash),
      FIND_ARG(ARG_UUID, id),
      FIND_ARG(ARG_UUID, session_id),
      {ARG_NOW}},
     find_variant,
     {{[FIND_CODE] = SQ_FIND SQ_UNUSED "AND code_hash = ?3",
       [FIND_ID] = SQ_FIND SQ_UNUSED "AND id = ?4",
       [FIND_ACCESS] = SQ_FIND "AND session_id = ?5 AND grantee = ?2 AND " SQ_LIVE(
           "", "?6") " ORDER BY may DESC, id LIMIT 1"},
      {[FIND_CODE] = PG_FIND PG_UNUSED "AND $4::uuid IS NULL AND $5::uuid IS NULL "
                                       "AND code_hash = $3::bytea",
       [FIND_ID] = PG_FIND PG_UNUSED "AND $3::bytea IS NULL AND $5::uuid IS NULL "
                                     "AND id = $4::uuid",
       [FIND_ACCESS] = PG_FIND "AND $3::bytea IS NULL AND $4::uuid IS NULL AND session_id = "
                               "$5::uuid AND grantee = $2 AND " PG_LIVE(
                                   "", "$6::timestamptz") " ORDER BY may DESC, id LIMIT 1"}}},
    {VERB_SHARED_SESSION,
     &sql_session,
     {{ARG_TENANT}, {ARG_OWNER}, CALL_ARG(ARG_NAME, id), {ARG_NOW}, CALL_ARG(ARG_UUID, id)},
     by_id,
     {{SQ_SHARED "AND session_id = ?3 AND ?5 IS NOT NULL",
       SQ_SHARED "AND id = ?3 AND ?5 IS NOT NULL"},
      {PG_SHARED "AND session_id = $3::text AND $5::uuid IS NOT NULL",
       PG_SHARED "AND id = $5::uuid AND $3::text IS NOT NULL"}}},
    {VERB_BINDING,
     &binding,
     {{ARG_TENANT}, {ARG_OWNER}, CALL_ARG(ARG_TEXT, name), CALL_ARG(ARG_RAW_TEXT, id), {ARG_NOW}},
     binding_variant,
     {{[BINDING_OF] = "SELECT @ FROM session_bindings b JOIN session_shares s ON s.id = b.share_id "
                      "WHERE b.tenant_id = ?1 AND b.owner = ?2 AND b.carrier = ?3 "
                      "AND b.carrier_key = ?4",
       [BINDING_ANY] = "SELECT @ FROM session_bindings b JOIN session_shares s ON s.id = "
                       "b.share_id WHERE ?1 || ?2 = '' AND ?3 IS NULL AND ?4 IS NULL LIMIT 1"},
      {[BINDING_OF] = "SELECT @ FROM mcp.session_bindings b JOIN mcp.session_shares s ON s.id = "
                      "b.share_id WHERE b.tenant_id = $1::text AND b.owner = $2::text "
                      "AND b.carrier = $3::text AND b.carrier_key = $4::bytea",
       [BINDING_ANY] = "SELECT @ FROM mcp.session_bindings b JOIN mcp.session_shares s ON s.id = "
                       "b.share_id WHERE $1::text || $2::text = '' AND $3::text IS NULL "
                       "AND $4::bytea IS NULL LIMIT 1"}}},
    {0},
};
