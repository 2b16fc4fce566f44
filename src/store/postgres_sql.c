/* SPDX-License-Identifier: Apache-2.0 */
/* Every SQL text of the PostgreSQL backend, in one place and literal.  The order of parameters and
 * columns is the order in which the callers add and read; macros here only spare repeating lists.
 * What decides over more than one row is a function of the schema (sql/postgres). */
#include "store/postgres_impl.h"

#define LIVE "status IN ('active', 'idle')"
#define NOT_PAST(now) "(expires_at IS NULL OR expires_at > " now ")"

/* A verb's verdict, raised when it is required and not OK. */
#define VERB(call, required) "SELECT mcp.hf_require(mcp." call ", " required "::boolean)"

#define SESSION_COLUMNS                                                                            \
    "id, session_id, tenant_id, owner, user_id, edge_mcp_id, client_name, client_type, "           \
    "client_version, status, origin, initialized, provisional, counted, carrier, carrier_key, "    \
    "core_session_id, connection_json, context_id, passthrough_auth_encrypted, created_at, "       \
    "last_activity_at, expires_at, terminated_at, ttl_ms, termination_reason, "                    \
    "tool_execution_count, total_tokens_used, version"
#define SESSIONS "SELECT " SESSION_COLUMNS " FROM mcp.edge_mcp_sessions "
/* $1 tenant, $2 owner, $3 whether the whole tenant may be seen. */
#define VISIBLE "tenant_id = $1::text AND ($3::boolean OR owner = $2::text)"
#define UNDELIVERED                                                                                \
    "SELECT id, tenant_id, owner, session_id, digest, execution, created_at, expires_at, "         \
    "length(sealed)::bigint, "

const char *const pg_texts[PG_COUNT] = {
    [PG_BEGIN] = "BEGIN",
    [PG_BEGIN_SNAPSHOT] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    [PG_COMMIT] = "COMMIT",
    [PG_ROLLBACK] = "ROLLBACK",
    [PG_PAGE_LIMIT] = "SET LOCAL statement_timeout = 250",
    [PG_PROBE] = "UPDATE mcp.store_probe SET count = count + 1 WHERE id = 1",

    /* In the order of the columns of mcp.edge_mcp_sessions. */
    [PG_SESSION_CREATE] =
        VERB("hf_session_create(ROW($1::uuid, $2::text, $3::text, $4::uuid, $5::text, $6::text, "
             "$7::text, $8::text, $9::text, $10::boolean, $11::text, $12::bytea, NULL, $13::uuid, "
             "$14::timestamptz, $15::bigint, $16::bigint, $17::timestamptz, $18::timestamptz, "
             "$19::timestamptz, $20::text, $21::text, $22::text, $23::boolean, $24::boolean, "
             "$25::text, $26::bytea, $27::bigint, $28::bigint, $29::text)::mcp.edge_mcp_sessions, "
             "$30::timestamptz, $31::bigint)",
             "$32"),
    [PG_SESSION_NAME] = VERB("hf_session_name($1::uuid, $2::text, $3::text, $4::boolean, "
                             "$5::timestamptz, $6::timestamptz, $7::bigint)",
                             "$8"),
    [PG_SESSION_END] = VERB("hf_session_end($1::uuid, $2::text, $3::text, $4::boolean, $5::text, "
                            "$6::timestamptz, $7::text, $8::timestamptz)",
                            "$9"),
    [PG_TRANSPORT_CREATE] =
        VERB("hf_transport_create(ROW($1::bytea, $2::text, $3::text, $4::text, $5::text, "
             "$6::bytea, $7::uuid, $8::timestamptz, $9::timestamptz, "
             "$10::timestamptz)::mcp.transport_sessions, $11::boolean)",
             "$12"),
    [PG_TRANSPORT_LINK] =
        VERB("hf_transport_link($1::bytea, $2::text, $3::text, $4::boolean, $5::uuid)", "$6"),
    [PG_TRANSPORT_TOUCH] =
        VERB("hf_transport_touch($1::bytea, $2::text, $3::text, $4::timestamptz)", "$5"),
    [PG_TRANSPORT_END] =
        VERB("hf_transport_end($1::bytea, $2::text, $3::text, $4::timestamptz)", "$5"),
    [PG_LINK_PUT] = VERB("hf_link_put(ROW($1::uuid, $2::text, $3::bigint, $4::text, "
                         "$5::timestamptz, $6::timestamptz, $7::text)::mcp.upstream_links, "
                         "$8::text, $9::text, $10::boolean)",
                         "$11"),
    [PG_LINK_END] = VERB("hf_link_end($1::uuid, $2::text, $3::text, $4::text, $5::boolean, "
                         "$6::timestamptz, $7::text)",
                         "$8"),
    [PG_EVENTS_APPEND] =
        "SELECT mcp.hf_events_append($1::bigint, $2::integer, $3::bytea, $4::bytea)",
    [PG_WRITER_RENEW] = VERB("hf_writer_renew($1::bigint, $2::timestamptz)", "$3"),
    [PG_WRITER_END] = VERB("hf_writer_end($1::bigint, $2::timestamptz)", "$3"),
    [PG_UNDELIVERED_PUT] =
        VERB("hf_undelivered_put(ROW($1::bigint, $2::text, $3::text, $4::uuid, $5::bytea, "
             "$6::bigint, $7::timestamptz, $8::timestamptz, $9::bytea)::mcp.undelivered, "
             "$10::boolean)",
             "$11"),
    [PG_UNDELIVERED_TAKE] =
        VERB("hf_undelivered_take($1::bigint, $2::text, $3::text, $4::timestamptz)", "$5"),

    [PG_SESSION_BY_HANDLE] = SESSIONS "WHERE " VISIBLE " AND session_id = $4::text",
    [PG_SESSION_BY_ID] = SESSIONS "WHERE " VISIBLE " AND id = $4::uuid",
    [PG_SESSION_BY_KEY] =
        SESSIONS "WHERE tenant_id = $1::text AND owner = $2::text AND carrier = $3::text "
                 "AND carrier_key = $4::bytea AND carrier_key IS NOT NULL AND " LIVE
                 " AND " NOT_PAST("$5::timestamptz"),
    [PG_SESSIONS_PAGE] = SESSIONS "WHERE " VISIBLE " AND ($4::uuid IS NULL OR id < $4) "
                                  "ORDER BY id DESC LIMIT $5::bigint",
    [PG_TRANSPORT_GET] =
        "SELECT id_hash, tenant_id, owner, endpoint, protocol_version, initialize_params, "
        "session_id, created_at, last_used_at, ended_at FROM mcp.transport_sessions "
        "WHERE id_hash = $1::bytea AND tenant_id = $2::text AND owner = $3::text "
        "AND ended_at IS NULL",
    [PG_LINKS_OF] =
        "SELECT session_id, server, writer, remote_id, opened_at, ended_at, end_reason "
        "FROM mcp.upstream_links WHERE session_id = $4::uuid "
        "AND mcp.hf_reaches($4, $1::text, $2::text, $3::boolean) ORDER BY server COLLATE \"C\"",
    [PG_UNDELIVERED_GET] = UNDELIVERED "sealed FROM mcp.undelivered WHERE id = $1::bigint AND "
                                       "tenant_id = $2::text AND owner = $3::text "
                                       "AND expires_at > $4::timestamptz",
    [PG_UNDELIVERED_PAGE] = UNDELIVERED "NULL::bytea FROM mcp.undelivered WHERE id > $1::bigint "
                                        "AND expires_at > $2::timestamptz "
                                        "ORDER BY id LIMIT $3::bigint",
    [PG_COUNTS] = "SELECT (SELECT count(*) FROM mcp.edge_mcp_sessions WHERE " LIVE " AND " NOT_PAST(
        "$1::timestamptz") "), "
                           "(SELECT count(*) FROM mcp.edge_mcp_sessions), "
                           "(SELECT count(*) FROM mcp.transport_sessions "
                           "WHERE ended_at IS NULL), "
                           "(SELECT coalesce(sum(events), 0)::bigint FROM mcp.fold_state), "
                           "(SELECT count(*) FROM mcp.session_tool_executions "
                           "WHERE outcome IS NULL)",

    [PG_SCHEMA_APPLIED] = "SELECT number::bigint, name, applied_at FROM mcp.schema_migrations "
                          "ORDER BY number LIMIT 1000",

    [PG_EVENT_AT] = "SELECT id, records FROM mcp.events WHERE id <= $1::bigint "
                    "ORDER BY id DESC LIMIT 1",

    [PG_WRITER_INSERT] =
        "INSERT INTO mcp.writers (uuid, node, started_at, lease_until, ended_at) VALUES ($1::text, "
        "$2::text, $3::timestamptz, $4::timestamptz, $5::timestamptz) "
        "ON CONFLICT (uuid) DO UPDATE SET lease_until = excluded.lease_until RETURNING number",
    [PG_WRITERS_LAPSE] = "UPDATE mcp.writers SET lease_until = least(lease_until, $1::timestamptz) "
                         "WHERE number <> $2::bigint AND ended_at IS NULL",
};
