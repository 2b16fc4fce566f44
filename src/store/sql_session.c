/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of sessions, transports, links and undelivered results, for both SQL backends.  Tenant and
 * owner are in every WHERE, so a foreign row and a missing one give the same answer at the same
 * cost. */
#include "store/sql.h"

#include "base/clock.h"

#define LIVE "status IN ('active', 'idle')"
#define ENDED "status IN ('expired', 'terminated')"
#define NOT_PAST(now) "(expires_at IS NULL OR expires_at > " now ")"

#define AT(member) offsetof(struct session_row, member)
static const struct row_column session_columns[] = {
    {COLUMN_UUID, AT(id), "id"},
    {COLUMN_TEXT, AT(handle), "session_id"},
    {COLUMN_TENANT, AT(tenant), "tenant_id"},
    {COLUMN_OWNER, AT(owner), "owner"},
    {COLUMN_UUID, AT(user_id), "user_id"},
    {COLUMN_TEXT, AT(edge_mcp_id), "edge_mcp_id"},
    {COLUMN_TEXT, AT(client_name), "client_name"},
    {COLUMN_TEXT, AT(client_type), "client_type"},
    {COLUMN_TEXT, AT(client_version), "client_version"},
    {COLUMN_STATUS, AT(status), "status"},
    {COLUMN_ORIGIN, AT(origin), "origin"},
    {COLUMN_BOOL, AT(initialized), "initialized"},
    {COLUMN_BOOL, AT(provisional), "provisional"},
    {COLUMN_BOOL, AT(counted), "counted"},
    {COLUMN_TEXT, AT(carrier), "carrier"},
    {COLUMN_RAW_TEXT, AT(carrier_key), "carrier_key"},
    {COLUMN_TEXT, AT(core_session_id), "core_session_id"},
    {COLUMN_TEXT, AT(connection_metadata), "connection_metadata",
     "coalesce(connection_json, connection_metadata::text)"},
    {COLUMN_UUID, AT(context_id), "context_id"},
    {COLUMN_BYTES, AT(sealed_auth), "passthrough_auth_encrypted"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(last_activity_ms), "last_activity_at"},
    {COLUMN_TIME, AT(expires_ms), "expires_at"},
    {COLUMN_TIME, AT(terminated_ms), "terminated_at"},
    {COLUMN_INT, AT(ttl_ms), "ttl_ms"},
    {COLUMN_TEXT, AT(termination_reason), "termination_reason"},
    {COLUMN_INT, AT(tool_count), "tool_execution_count"},
    {COLUMN_INT, AT(tokens_used), "total_tokens_used"},
    {COLUMN_INT, AT(version), "version"},
    {COLUMN_TEXT, AT(toolsets), "toolsets"},
    {COLUMN_BYTES, AT(sealed_context), "profile_context_encrypted"},
    {COLUMN_TEXT, AT(setup), "setup"},
    {COLUMN_TEXT, AT(lineage), "lineage"},
};
#undef AT

static void expire(void *row)
{
    session_row_apply_expiry(row, clock_life_ms());
}
const struct row_type sql_session = {sizeof(struct session_row), session_columns,
                                     countof(session_columns), expire};

#define AT(member) offsetof(struct transport_row, member)
static const struct row_column transport_columns[] = {
    {COLUMN_SHA, AT(id_hash), "id_hash"},
    {COLUMN_TENANT, AT(tenant), "tenant_id"},
    {COLUMN_OWNER, AT(owner), "owner"},
    {COLUMN_TEXT, AT(endpoint), "endpoint"},
    {COLUMN_TEXT, AT(protocol_version), "protocol_version"},
    {COLUMN_BYTES, AT(initialize_params), "initialize_params"},
    {COLUMN_UUID, AT(session_id), "session_id"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(last_used_ms), "last_used_at"},
    {COLUMN_TIME, AT(ended_ms), "ended_at"},
};
#undef AT
const struct row_type sql_transport = {sizeof(struct transport_row), transport_columns,
                                       countof(transport_columns), NULL};

#define AT(member) offsetof(struct link_row, member)
static const struct row_column link_columns[] = {
    {COLUMN_UUID, AT(session_id), "session_id"},  {COLUMN_TEXT, AT(server), "server"},
    {COLUMN_INT, AT(writer), "writer"},           {COLUMN_TEXT, AT(remote_id), "remote_id"},
    {COLUMN_INSTANT, AT(opened_ms), "opened_at"}, {COLUMN_TIME, AT(ended_ms), "ended_at"},
    {COLUMN_TEXT, AT(end_reason), "end_reason"},
};
#undef AT
const struct row_type sql_link = {sizeof(struct link_row), link_columns, countof(link_columns),
                                  NULL};

#define AT(member) offsetof(struct undelivered_row, member)
static const struct row_column undelivered_columns[] = {
    {COLUMN_INT, AT(id), "id"},
    {COLUMN_TENANT, AT(tenant), "tenant_id"},
    {COLUMN_OWNER, AT(owner), "owner"},
    {COLUMN_UUID, AT(session_id), "session_id"},
    {COLUMN_SHA, AT(digest), "digest"},
    {COLUMN_INT, AT(exec), "execution"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(expires_ms), "expires_at"},
    {COLUMN_INT, AT(sealed_len), "length(sealed)", "length(sealed)::bigint"},
    {COLUMN_BYTES, AT(sealed), "sealed"},
};
#undef AT
const struct row_type sql_undelivered = {sizeof(struct undelivered_row), undelivered_columns,
                                         countof(undelivered_columns), NULL};
/* Without the sealed bytes. */
const struct row_type sql_undelivered_listed = {sizeof(struct undelivered_row), undelivered_columns,
                                                countof(undelivered_columns) - 1, NULL};

/* Pages of sessions: all, only live, or only ended sessions; of the tenant or of the owner.  Each
 * has its own index. */
enum { PAGE_ALL, PAGE_LIVE = 2, PAGE_ENDED = 4, PAGE_OWNER = 1 };
static unsigned page_variant(const struct store_call *c)
{
    static const unsigned live = 1U << SESSION_ACTIVE | 1U << SESSION_IDLE;
    static const unsigned ended = 1U << SESSION_EXPIRED | 1U << SESSION_TERMINATED;
    unsigned statuses = ((const struct session_filter *)c->filter)->statuses;
    unsigned owner = c->who->tenant_wide ? 0 : PAGE_OWNER;
    if (!(statuses & ended) && statuses)
        return PAGE_LIVE + owner;
    if (!(statuses & live) && statuses)
        return PAGE_ENDED + owner;
    return PAGE_ALL + owner;
}
/* The parameters of pages: ?5 bits of statuses or 0, ?6 now, ?7 idle after so many ms, ?8 client
 * type. */
#define PAGE_ARGS                                                                                  \
    {                                                                                              \
        {ARG_TENANT}, {ARG_OWNER}, FILTER_ARG(ARG_UUID_BEFORE, session_filter, before),            \
            {ARG_LIMIT}, FILTER_ARG(ARG_BITS, session_filter, statuses),                           \
            FILTER_ARG(ARG_INSTANT, session_filter, now_ms),                                       \
            FILTER_ARG(ARG_INT, session_filter, idle_ms),                                          \
            FILTER_ARG(ARG_TEXT, session_filter, client_type),                                     \
    }
/* SQLite: the bit of the status that a session has at ?6. */
#define SQ_STATUS_BIT                                                                              \
    "CASE WHEN status = 'terminated' THEN 8 WHEN status = 'expired' OR expires_at <= ?6 THEN 4 "   \
    "WHEN ?7 > 0 AND last_activity_at + ?7 <= ?6 THEN 2 ELSE 1 END"
_Static_assert(1 << SESSION_TERMINATED == 8 && 1 << SESSION_EXPIRED == 4 &&
                   1 << SESSION_IDLE == 2 && 1 << SESSION_ACTIVE == 1,
               "SQ_STATUS_BIT spells the statuses as their bits");
#define SQ_ALL_OWNERS "(?2 IS NULL OR true)"
#define SQ_ONE_OWNER "owner = ?2"
#define SQ_FROM_PAGE(index, owner_)                                                                \
    "FROM edge_mcp_sessions INDEXED BY " index " WHERE tenant_id = ?1 AND " owner_                 \
    " AND id < ?3 AND (?8 IS NULL OR client_type = ?8) "
#define SQ_PAGE(index, owner_, which)                                                              \
    "SELECT @ " SQ_FROM_PAGE(index, owner_) "AND (?5 = 0 OR ?5 & " SQ_STATUS_BIT ") " which        \
                                            "ORDER BY id DESC LIMIT ?4"
/* Ended sessions, and sessions past their end that are still stored as live; each newest first by
 * its own index. */
#define SQ_PAGE_ROWS(index, owner_, which)                                                         \
    "SELECT * FROM (SELECT rowid " SQ_FROM_PAGE(index, owner_) "AND ?5 & " SQ_STATUS_BIT           \
                                                               " AND " which                       \
                                                               " ORDER BY id DESC LIMIT ?4)"
#define SQ_ENDED_PAGE(index, owner_)                                                               \
    "SELECT @ FROM edge_mcp_sessions WHERE rowid IN (" SQ_PAGE_ROWS(                               \
        index, owner_,                                                                             \
        ENDED) " UNION ALL " SQ_PAGE_ROWS("idx_edge_sessions_active", owner_,                      \
                                          LIVE                                                     \
                                          " AND expires_at <= ?6") ") ORDER BY id DESC LIMIT ?4"
/* PostgreSQL: the same.  Ended sessions are found among all. */
#define PG_SEEN_STATUS                                                                             \
    "CASE WHEN status = 'expired' OR status = 'terminated' THEN status "                           \
    "WHEN expires_at <= $6::timestamptz THEN 'expired' "                                           \
    "WHEN $7::bigint > 0 AND last_activity_at + $7 * interval '1 millisecond' <= $6 THEN 'idle' "  \
    "ELSE 'active' END"
#define PG_PAGE(owner, live)                                                                       \
    "SELECT @ FROM mcp.edge_mcp_sessions WHERE tenant_id = $1::text AND $2::text IS NOT "          \
    "NULL " owner live "AND id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') "      \
    "AND ($5::integer = 0 OR ($5 >> array_position(ARRAY['active', 'idle', 'expired', "            \
    "'terminated'], " PG_SEEN_STATUS ") - 1) & 1 = 1) "                                            \
    "AND ($8::text IS NULL OR client_type = $8) ORDER BY id DESC LIMIT $4::bigint"
#define PG_ONE_OWNER "AND owner = $2::text "

/* ?1 tenant, ?2 owner, ?3 whether the whole tenant may be seen. */
#define SQ_VISIBLE "tenant_id = ?1 AND (?3 OR owner = ?2)"
#define PG_VISIBLE "tenant_id = $1::text AND ($3::boolean OR owner = $2::text)"

/* Text that begins with ?4: memcmp() order ends such texts before the greatest character. */
#define SQ_BEGINS(column) column " >= ?4 AND " column " < (?4 || char(1114111))"

const struct sql_read sql_session_reads[] = {
    {VERB_SESSION_BY_HANDLE,
     &sql_session,
     {{ARG_TENANT}, {ARG_OWNER}, {ARG_WIDE}, CALL_ARG(ARG_NAME, id)},
     NULL,
     {{"SELECT @ FROM edge_mcp_sessions WHERE " SQ_VISIBLE " AND session_id = ?4"},
      {"SELECT @ FROM mcp.edge_mcp_sessions WHERE " PG_VISIBLE " AND session_id = $4::text"}}},
    {VERB_SESSION_BY_ID,
     &sql_session,
     {{ARG_TENANT}, {ARG_OWNER}, {ARG_WIDE}, CALL_ARG(ARG_UUID, id)},
     NULL,
     {{"SELECT @ FROM edge_mcp_sessions WHERE " SQ_VISIBLE " AND id = ?4"},
      {"SELECT @ FROM mcp.edge_mcp_sessions WHERE " PG_VISIBLE " AND id = $4::uuid"}}},
    {VERB_SESSION_BY_KEY,
     &sql_session,
     {{ARG_TENANT}, {ARG_OWNER}, CALL_ARG(ARG_TEXT, name), CALL_ARG(ARG_RAW_TEXT, id), {ARG_NOW}},
     NULL,
     {{"SELECT @ FROM edge_mcp_sessions WHERE tenant_id = ?1 AND owner = ?2 AND carrier = ?3 "
       "AND carrier_key = ?4 AND carrier_key IS NOT NULL AND " LIVE " AND " NOT_PAST("?5")},
      {"SELECT @ FROM mcp.edge_mcp_sessions WHERE tenant_id = $1::text AND owner = $2::text "
       "AND carrier = $3::text AND carrier_key = $4::bytea AND carrier_key IS NOT NULL AND " LIVE
       " AND " NOT_PAST("$5::timestamptz")}}},
    {VERB_SESSIONS_PAGE,
     &sql_session,
     PAGE_ARGS,
     page_variant,
     {{[PAGE_ALL] = SQ_PAGE("idx_edge_sessions_tenant", SQ_ALL_OWNERS, ""),
       [PAGE_ALL + PAGE_OWNER] = SQ_PAGE("idx_edge_sessions_owner", SQ_ONE_OWNER, ""),
       [PAGE_LIVE] = SQ_PAGE("idx_edge_sessions_live", SQ_ALL_OWNERS, "AND " LIVE " "),
       [PAGE_LIVE + PAGE_OWNER] =
           SQ_PAGE("idx_edge_sessions_live_owner", SQ_ONE_OWNER, "AND " LIVE " "),
       [PAGE_ENDED] = SQ_ENDED_PAGE("idx_edge_sessions_ended", SQ_ALL_OWNERS),
       [PAGE_ENDED + PAGE_OWNER] = SQ_ENDED_PAGE("idx_edge_sessions_ended_owner", SQ_ONE_OWNER)},
      {[PAGE_ALL] = PG_PAGE("", ""),
       [PAGE_ALL + PAGE_OWNER] = PG_PAGE(PG_ONE_OWNER, ""),
       [PAGE_LIVE] = PG_PAGE("", "AND " LIVE " "),
       [PAGE_LIVE + PAGE_OWNER] = PG_PAGE(PG_ONE_OWNER, "AND " LIVE " "),
       [PAGE_ENDED] = PG_PAGE("", ""),
       [PAGE_ENDED + PAGE_OWNER] = PG_PAGE(PG_ONE_OWNER, "")}}},
    {VERB_SESSIONS_NAMED,
     &sql_session,
     {{ARG_TENANT}, {ARG_OWNER}, {ARG_WIDE}, CALL_ARG(ARG_NAME, name), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM edge_mcp_sessions WHERE " SQ_VISIBLE " AND ?4 <> '' AND rowid IN ("
       "SELECT rowid FROM edge_mcp_sessions WHERE tenant_id = ?1 AND " SQ_BEGINS(
           "session_id") " UNION ALL SELECT rowid FROM edge_mcp_sessions WHERE tenant_id = ?1 "
                         "AND " SQ_BEGINS("id") ") ORDER BY id LIMIT ?5"},
      {"SELECT @ FROM mcp.edge_mcp_sessions WHERE " PG_VISIBLE
       " AND $4::text <> '' AND (starts_with(session_id, $4) OR starts_with(id::text, $4)) "
       "ORDER BY id LIMIT $5::bigint"}}},
    {VERB_SEALED_PAGE,
     &sql_session,
     {CALL_ARG(ARG_UUID_AFTER, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM edge_mcp_sessions WHERE (passthrough_auth_encrypted IS NOT NULL OR "
       "profile_context_encrypted IS NOT NULL) AND id > ?1 ORDER BY id LIMIT ?2"},
      {"SELECT @ FROM mcp.edge_mcp_sessions WHERE (passthrough_auth_encrypted IS NOT NULL OR "
       "profile_context_encrypted IS NOT NULL) AND ($1::uuid IS NULL OR id > $1) ORDER BY id "
       "LIMIT $2::bigint"}},
     .no_page_limit = true},
    {VERB_TRANSPORT_GET,
     &sql_transport,
     {CALL_ARG(ARG_HASH, hash), {ARG_TENANT}, {ARG_OWNER}},
     NULL,
     {{"SELECT @ FROM transport_sessions WHERE id_hash = ?1 AND tenant_id = ?2 AND owner = ?3 "
       "AND ended_at IS NULL"},
      {"SELECT @ FROM mcp.transport_sessions WHERE id_hash = $1::bytea AND tenant_id = $2::text "
       "AND owner = $3::text AND ended_at IS NULL"}}},
    {VERB_LINKS_OF,
     &sql_link,
     {{ARG_TENANT}, {ARG_OWNER}, CALL_ARG(ARG_UUID, session_id)},
     NULL,
     {{"SELECT @ FROM upstream_links WHERE session_id = ?3 AND EXISTS (SELECT 1 FROM "
       "edge_mcp_sessions WHERE id = ?3 AND tenant_id = ?1 AND owner = ?2) ORDER BY server"},
      {"SELECT @ FROM mcp.upstream_links WHERE session_id = $3::uuid "
       "AND mcp.hf_owns($3, $1::text, $2::text) ORDER BY server COLLATE \"C\""}}},
    {VERB_UNDELIVERED_GET,
     &sql_undelivered,
     {CALL_ARG(ARG_INT, number), {ARG_TENANT}, {ARG_OWNER}, {ARG_NOW}},
     NULL,
     {{"SELECT @ FROM undelivered WHERE id = ?1 AND tenant_id = ?2 AND owner = ?3 "
       "AND expires_at > ?4"},
      {"SELECT @ FROM mcp.undelivered WHERE id = $1::bigint AND tenant_id = $2::text "
       "AND owner = $3::text AND expires_at > $4::timestamptz"}}},
    {VERB_UNDELIVERED_PAGE,
     &sql_undelivered_listed,
     {CALL_ARG(ARG_INT, after_id), {ARG_NOW}, {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM undelivered WHERE id > ?1 AND expires_at > ?2 ORDER BY id LIMIT ?3"},
      {"SELECT @ FROM mcp.undelivered WHERE id > $1::bigint AND expires_at > $2::timestamptz "
       "ORDER BY id LIMIT $3::bigint"}}},
    {0},
};
