/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL texts of the PostgreSQL backend that are not in the shared tables (store/sql.h), in one
 * place and literal.  Callers add parameters and read columns in the order of the text.  Macros here only avoid repeated lists.  Functions of the
 * schema (sql/postgres) make every decision over more than one row. */
#include "store/postgres_impl.h"

#define LIVE "status IN ('active', 'idle')"
#define NOT_PAST(now) "(expires_at IS NULL OR expires_at > " now ")"

#define VERB PG_VERB

/* $1 tenant, $2 owner, $3 whether the whole tenant may be seen. */
#define VISIBLE "tenant_id = $1::text AND ($3::boolean OR owner = $2::text)"

/* Sorts after every id. */
#define LAST_UUID "'ffffffff-ffff-ffff-ffff-ffffffffffff'"
/* Writers with events after their mark: writer, mark, id of the last event.  Reads one entry of the
 * key for each writer that ever existed. */
#define TAILS                                                                                      \
    "WITH RECURSIVE w(writer) AS (SELECT (SELECT min(id) FROM mcp.events) >> 40 UNION ALL "        \
    "SELECT (SELECT min(id) FROM mcp.events WHERE id >= (w.writer + 1) << 40) >> 40 FROM w "       \
    "WHERE w.writer IS NOT NULL), "                                                                \
    "tails AS (SELECT w.writer, t.mark, t.last_id FROM w CROSS JOIN LATERAL (SELECT "              \
    "coalesce((SELECT last_id FROM mcp.fold_marks f WHERE f.writer = w.writer), w.writer << 40) "  \
    "AS mark, (SELECT e.id + e.n - 1 FROM mcp.events e WHERE e.id < (w.writer + 1) << 40 "         \
    "ORDER BY e.id DESC LIMIT 1) AS last_id) t "                                                   \
    "WHERE w.writer IS NOT NULL AND t.last_id > t.mark) "
/* Segments that may hold the events $2 to $3.  With $5 omits the segment that begins before $2. */
#define SEGMENTS                                                                                   \
    "SELECT id, n, records, CASE WHEN $1::boolean THEN bodies END FROM mcp.events "                \
    "WHERE id <= $3::bigint AND id >= CASE WHEN $5::boolean THEN $2::bigint ELSE "                 \
    "coalesce((SELECT max(id) FROM mcp.events WHERE id <= $2), $2) END "
#define LAPSE                                                                                      \
    "UPDATE mcp.edge_mcp_sessions SET status = 'expired', terminated_at = expires_at, "            \
    "termination_reason = 'expired', version = version + 1 "

/* The link `l` has another writer than $3, and the lease of that writer runs at $4. */
#define LINK_IS_ELSEWHERE                                                                          \
    "EXISTS (SELECT FROM mcp.writers w WHERE w.number = l.writer AND w.number <> $3::bigint "      \
    "AND w.ended_at IS NULL AND w.lease_until > $4::timestamptz)"

const char *const pg_texts[PG_COUNT] = {
    [PG_BEGIN] = "BEGIN",
    [PG_COMMIT] = "COMMIT",
    [PG_PAGE_LIMIT] = "SET LOCAL statement_timeout = 250",
    [PG_PROBE] = "UPDATE mcp.store_probe SET count = count + 1 WHERE id = 1",

    /* Parameters in the order of the columns of mcp.edge_mcp_sessions. */
    [PG_SESSION_CREATE] =
        VERB("hf_session_create(ROW($1::uuid, $2::text, $3::text, $4::uuid, $5::text, $6::text, "
             "$7::text, $8::text, $9::text, $10::boolean, $11::text, $12::bytea, NULL, $13::uuid, "
             "$14::timestamptz, $15::bigint, $16::bigint, $17::timestamptz, $18::timestamptz, "
             "$19::timestamptz, $20::text, $21::text, $22::text, $23::boolean, $24::boolean, "
             "$25::text, $26::bytea, $27::bigint, $28::bigint, $29::text, "
             "$30::text, $31::bytea, $32::text, $33::text)::mcp.edge_mcp_sessions, "
             "$34::timestamptz, $35::bigint)",
             "$36"),
    [PG_SESSION_PROMOTE] = VERB("hf_session_name($1::uuid, $2::text, $3::text, $4::timestamptz, "
                                "$5::timestamptz, $6::bigint)",
                                "$7"),
    [PG_SESSION_END] = VERB("hf_session_end($1::uuid, $2::text, $3::text, $4::boolean, $5::text, "
                            "$6::timestamptz, $7::text, $8::timestamptz)",
                            "$9"),
    [PG_TRANSPORT_CREATE] =
        VERB("hf_transport_create(ROW($1::bytea, $2::text, $3::text, $4::text, $5::text, "
             "$6::bytea, $7::uuid, $8::timestamptz, $9::timestamptz, "
             "$10::timestamptz)::mcp.transport_sessions)",
             "$11"),
    [PG_TRANSPORT_LINK] = VERB("hf_transport_link($1::bytea, $2::text, $3::text, $4::uuid)", "$5"),
    [PG_TRANSPORT_TOUCH] =
        VERB("hf_transport_touch($1::bytea, $2::text, $3::text, $4::timestamptz)", "$5"),
    [PG_TRANSPORT_END] =
        "WITH done AS (SELECT mcp.hf_transport_end($1::bytea, $2::text, $3::text, "
        "$4::timestamptz) AS verdict), "
        "told AS (INSERT INTO mcp.changes (kind, tenant_id, name, made_at) "
        "SELECT 5, $2, encode($1, 'hex') || ' ' || $3, $4 FROM done WHERE verdict = 0) "
        "SELECT mcp.hf_require(verdict, $5::boolean) FROM done",
    [PG_LINK_PUT] = VERB("hf_link_put(ROW($1::uuid, $2::text, $3::bigint, $4::text, "
                         "$5::timestamptz, $6::timestamptz, $7::text)::mcp.upstream_links, "
                         "$8::text, $9::text)",
                         "$10"),
    [PG_LINK_END] = VERB("hf_link_end($1::uuid, $2::text, $3::text, $4::text, $5::timestamptz, "
                         "$6::text)",
                         "$7"),
    [PG_EVENTS_APPEND] =
        "SELECT mcp.hf_events_append($1::bigint, $2::integer, $3::bytea, $4::bytea)",
    [PG_WRITER_RENEW] = VERB("hf_writer_renew($1::bigint, $2::timestamptz)", "$3"),
    [PG_WRITER_END] = VERB("hf_writer_end($1::bigint, $2::timestamptz)", "$3"),
    [PG_UNDELIVERED_PUT] =
        VERB("hf_undelivered_put(ROW($1::bigint, $2::text, $3::text, $4::uuid, $5::bytea, "
             "$6::bigint, $7::timestamptz, $8::timestamptz, $9::bytea)::mcp.undelivered)",
             "$10"),
    [PG_UNDELIVERED_TAKE] =
        VERB("hf_undelivered_take($1::bigint, $2::text, $3::text, $4::timestamptz)", "$5"),

    /* A use that waits for the fold ($8) only reads the row.  The row is found by its key alone: a
     * plan made while the table was empty could otherwise use an index on status or time, which is
     * slow later. */
    [PG_SESSION_USE] =
        "SELECT mcp.hf_require(CASE WHEN (SELECT $8::timestamptz IS NOT NULL AND status = 'active' "
        "AND " NOT_PAST("$6::timestamptz") " AND " NOT_PAST(
            "$8") " FROM mcp.edge_mcp_sessions "
                  "WHERE id = $1::uuid AND tenant_id = $2::text AND ($4::boolean OR owner = "
                  "$3::text)) "
                  "THEN 0 ELSE mcp.hf_session_use($1, $2, $3, $4, $5::timestamptz, $6, $7::bigint) "
                  "END, "
                  "$9::boolean)",
    /* Changed credentials (FIELD_SEALED_AUTH), toolsets (FIELD_TOOLSETS) and a changed setup
     * (FIELD_SETUP) are announced to other nodes (CHANGE_SESSION_SEALED and the like). */
    [PG_SESSION_PATCH] =
        "WITH done AS (SELECT mcp.hf_session_patch($1::uuid, $2::text, $3::text, $4::boolean, "
        "ROW(NULL, NULL, NULL, NULL, NULL, $5::text, $6::text, $7::text, NULL, $8::boolean, "
        "$9::text, $10::bytea, NULL, $11::uuid, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
        "NULL, NULL, NULL, NULL, NULL, NULL, $12::bigint, $13::text, "
        "$14::text, NULL, $15::text, NULL)::mcp.edge_mcp_sessions, $16::integer, "
        "$17::timestamptz) AS verdict), "
        "told AS (INSERT INTO mcp.changes (kind, tenant_id, name, made_at) "
        "SELECT told_as, $2, $1::text, $17 FROM done, (VALUES (4, 128), (6, 256), (8, 512)) "
        "AS f (told_as, field) WHERE verdict = 0 AND $16 & field <> 0) "
        "SELECT mcp.hf_require(verdict, $18::boolean) FROM done",
    [PG_SESSION_REFRESH] = VERB("hf_session_refresh($1::uuid, $2::text, $3::text, $4::boolean, "
                                "$5::timestamptz, $6::bigint, $7::timestamptz)",
                                "$8"),
    [PG_CONTEXT_PUT] = VERB("hf_context_put($1::uuid, $2::text, $3::text, $4::boolean, $5::uuid, "
                            "$6::text, $7::bigint, $8::timestamptz, $9::timestamptz, "
                            "$10::timestamptz)",
                            "$11"),
    [PG_TENANT_ENSURE] = VERB("hf_tenant_ensure($1::text, $2::timestamptz)", "$3"),
    [PG_USER_ENSURE] = VERB("hf_user_ensure($1::uuid, $2::text, $3::text, $4::text, $5::text, "
                            "$6::timestamptz, $7::timestamptz, $8::timestamptz)",
                            "$9"),
    [PG_KEY_CREATE] =
        VERB("hf_key_create(ROW($1::text, $2::text, $3::uuid, $4::text, $5::text, $6::bytea, "
             "$7::text, $8::timestamptz, $9::timestamptz, $10::timestamptz, "
             "$11::timestamptz)::mcp.api_keys, $12::timestamptz)",
             "$13"),
    [PG_KEY_REVOKE] =
        VERB("hf_key_revoke($1::text, $2::text, $3::timestamptz, $4::timestamptz)", "$5"),
    [PG_KEY_USED] = VERB("hf_key_used($1::text, $2::timestamptz)", "$3"),
    [PG_IDEMPOTENCY_PUT] =
        VERB("hf_idempotency_put(ROW($1::text, $2::text, $3::bytea, $4::bytea, $5::integer, "
             "$6::bytea, $7::bytea, $8::timestamptz, $9::timestamptz)::mcp.idempotency, "
             "$10::timestamptz)",
             "$11"),
    [PG_TENANT_KEY_PUT] = VERB("hf_tenant_key_put(ROW($1::text, $2::text, $3::text, $4::bytea, "
                               "$5::timestamptz)::mcp.tenant_keys, $6::timestamptz)",
                               "$7"),
    [PG_TENANT_KEY_WRAP] =
        VERB("hf_tenant_key_wrap($1::text, $2::text, $3::text, $4::bytea)", "$5"),
    [PG_SECRET_PUT] = VERB("hf_secret_put(ROW($1::text, $2::bytea, $3::timestamptz, "
                           "$4::timestamptz)::mcp.secrets, $5::bigint, $6::timestamptz)",
                           "$7"),
    [PG_SECRET_REMOVE] = VERB("hf_secret_remove($1::text, $2::timestamptz)", "$3"),
    [PG_SESSION_RESEAL] =
        VERB("hf_session_reseal($1::uuid, $2::text, $3::bytea, $4::bytea, $5::bigint)", "$6"),
    [PG_USER_CREATE] = VERB("hf_user_create($1::uuid, $2::text, $3::text, $4::text, $5::text, "
                            "$6::timestamptz, $7::timestamptz)",
                            "$8"),
    [PG_USER_PASSWORD] =
        VERB("hf_user_password($1::uuid, $2::text, $3::text, $4::timestamptz)", "$5"),
    [PG_USER_END] = VERB("hf_user_end($1::uuid, $2::text, $3::timestamptz, $4::timestamptz)", "$5"),
    [PG_LOGIN_FAILED] = VERB("hf_login_failed($1::uuid, $2::text, $3::bigint, $4::bigint, "
                             "$5::bigint, $6::timestamptz)",
                             "$7"),
    [PG_LOGIN_CREATE] =
        VERB("hf_login_create(ROW($1::uuid, $2::uuid, $3::text, $4::bytea, $1, $5::text, "
             "$6::text, $7::timestamptz, $8::timestamptz, NULL, NULL, "
             "$9::timestamptz)::mcp.user_sessions, $10::text, $11::bigint, $12::timestamptz)",
             "$13"),
    [PG_LOGIN_ROTATE] = VERB("hf_login_rotate($1::uuid, $2::bytea, $3::bytea, $4::timestamptz, "
                             "$5::text, $6::timestamptz, $7::timestamptz)",
                             "$8"),
    [PG_LOGIN_REVOKE] = VERB("hf_login_revoke($1::uuid, $2::text, $3::uuid, $4::timestamptz, "
                             "$5::text, $6::timestamptz)",
                             "$7"),
    [PG_LOGINS_REVOKE] = VERB("hf_logins_revoke($1::text, $2::uuid, $3::timestamptz, $4::text, "
                              "$5::timestamptz)",
                              "$6"),
    [PG_TOOL_SEEN] = VERB("hf_tool_seen(ROW($1::text, $2::bytea, $3::bytea, $4::bytea, $5::bytea, "
                          "NULL, $6::timestamptz, $7::timestamptz, $8::timestamptz, "
                          "$9::timestamptz)::mcp.tool_definitions)",
                          "$10"),
    [PG_TOOL_APPROVE] =
        VERB("hf_tool_approve($1::text, $2::bytea, $3::bytea, $4::timestamptz)", "$5"),
    [PG_SERVER_TELL] = VERB("hf_server_tell(ROW($1::text, $2::bigint, $3::bigint, $4::timestamptz, "
                            "$5::timestamptz, $6::bytea)::mcp.server_health)",
                            "$7"),
    [PG_CHANGES_NUMBER] = "SELECT mcp.hf_changes_number()",

    /* The sums of sessions used since $5, corrected for sessions that are past their end but not
     * ended yet. */
    [PG_TOTALS] =
        "SELECT (s.live - p.n)::bigint, s.sessions::bigint, least(s.executions, "
        "9223372036854775807)::bigint, least(s.tokens, 9223372036854775807)::bigint, "
        "(s.lived_ms + p.more_ms)::bigint FROM (SELECT coalesce(sum(live), 0) AS live, "
        "coalesce(sum(sessions), 0) AS sessions, coalesce(sum(executions), 0) AS executions, "
        "coalesce(sum(tokens), 0) AS tokens, coalesce(sum(lived_ms), 0) AS lived_ms "
        "FROM (SELECT * FROM mcp.session_sums WHERE " VISIBLE " AND minute >= $6::bigint "
        "UNION ALL SELECT * FROM mcp.session_sum_changes WHERE " VISIBLE
        " AND minute >= $6) t) s, (SELECT count(*) AS n, coalesce(sum(extract(epoch FROM "
        "expires_at - last_activity_at)) * 1000, 0) AS more_ms FROM mcp.edge_mcp_sessions "
        "WHERE " VISIBLE " AND " LIVE " AND expires_at <= $4::timestamptz "
        "AND (created_at >= $5::timestamptz OR last_activity_at >= $5)) p",
    [PG_COUNTS] = TAILS "SELECT s.live - (SELECT count(*) FROM mcp.edge_mcp_sessions WHERE " LIVE
                        " AND expires_at <= $1::timestamptz), s.sessions, "
                        "(SELECT count(*) FROM mcp.transport_sessions "
                        "WHERE ended_at IS NULL), "
                        "(SELECT coalesce(sum(events), 0)::bigint FROM mcp.fold_state) + "
                        "(SELECT coalesce(sum((SELECT sum(e.id + e.n - greatest(e.id, "
                        "t.mark + 1)) FROM mcp.events e WHERE e.id <= t.last_id "
                        "AND e.id + e.n > t.mark + 1 AND e.id >= coalesce((SELECT max(id) "
                        "FROM mcp.events WHERE id <= t.mark + 1), 0))), 0)::bigint "
                        "FROM tails t), "
                        "(SELECT count(*) FROM mcp.session_tool_executions "
                        "WHERE outcome IS NULL) FROM (SELECT coalesce(sum(live), "
                        "0)::bigint AS live, coalesce(sum(sessions), 0)::bigint AS sessions "
                        "FROM (SELECT live, sessions FROM mcp.session_sums UNION ALL "
                        "SELECT live, sessions FROM mcp.session_sum_changes) t) s",

    [PG_SCHEMA_USERS] = "SELECT string_agg(DISTINCT coalesce(node, '?'), ', ') FROM mcp.writers "
                        "WHERE ended_at IS NULL AND lease_until > now()",
    [PG_SCHEMA_APPLIED] = "SELECT number::bigint, name, applied_at FROM mcp.schema_migrations "
                          "ORDER BY number LIMIT 1000",

    [PG_EVENT_AT] = "SELECT id, records FROM mcp.events WHERE id <= $1::bigint "
                    "ORDER BY id DESC LIMIT 1",

    [PG_EVENTS_UP] = SEGMENTS "ORDER BY id LIMIT $4::bigint",
    [PG_EVENTS_DOWN] = SEGMENTS "ORDER BY id DESC LIMIT $4::bigint",
    /* The segments that hold the events $2, each once. */
    [PG_EVENTS_OF] = "SELECT id, n, records, CASE WHEN $1::boolean THEN bodies END FROM mcp.events "
                     "WHERE id IN (SELECT (SELECT max(id) FROM mcp.events WHERE id <= want) "
                     "FROM unnest($2::bigint[]) want) ORDER BY id",
    [PG_EXEC_OUTCOMES] = "SELECT unnest(outcome_events) FROM mcp.session_tool_executions "
                         "WHERE id = $1::uuid",
    /* Tails of writers that are gone by $1, or of all writers when $1 is NULL. */
    [PG_TAILS] = TAILS "SELECT writer, mark, last_id FROM tails t WHERE $1::timestamptz IS NULL "
                       "OR NOT EXISTS (SELECT FROM mcp.writers x WHERE x.number = t.writer "
                       "AND x.ended_at IS NULL AND x.lease_until > $1) ORDER BY writer",

    [PG_FOLD_LOCK] =
        "INSERT INTO mcp.fold_marks (writer, last_id) VALUES ($1::bigint, $1::bigint << 40) "
        "ON CONFLICT (writer) DO UPDATE SET last_id = fold_marks.last_id RETURNING last_id",
    [PG_FOLD_ADVANCE] = "UPDATE mcp.fold_marks SET last_id = $2::bigint WHERE writer = $1::bigint",
    [PG_FOLD_HEAD] =
        "INSERT INTO mcp.fold_state (writer, tenant, seq, last_id, mac, events) VALUES "
        "($1::bigint, $2::text, $3::bigint, $4::bigint, $5::bytea, $6::bigint) "
        "ON CONFLICT (writer, tenant) DO UPDATE SET seq = excluded.seq, "
        "last_id = excluded.last_id, mac = excluded.mac, "
        "events = fold_state.events + excluded.events",
    [PG_FOLD_HEADS] = "SELECT tenant, writer, seq, last_id, mac FROM mcp.fold_state",
    [PG_EXEC_INSERT] =
        "INSERT INTO mcp.session_tool_executions (id, session_id, tool_name, tool_id, arguments, "
        "result, error, duration_ms, tokens_used, executed_at, tenant_id, server, outcome, "
        "outcome_event, outcome_events) VALUES ($1::uuid, $2::uuid, $3::text, $4::uuid, "
        "mcp.hf_jsonb($5::text), mcp.hf_jsonb($6::text), $7::text, $8::bigint, $9::bigint, "
        "$10::timestamptz, $11::text, $12::text, $13::text, $14::bigint, $15::bigint[]) "
        "ON CONFLICT DO NOTHING",
    /* A later outcome replaces only "indeterminate", which is a guess. */
    [PG_EXEC_CLOSE] =
        "UPDATE mcp.session_tool_executions SET outcome_events = outcome_events || $2::bigint, "
        "outcome = CASE WHEN o THEN $3::text ELSE outcome END, "
        "outcome_event = CASE WHEN o THEN $2 ELSE outcome_event END, "
        "error = CASE WHEN o THEN $4::text ELSE error END, "
        "duration_ms = CASE WHEN o THEN $5::bigint ELSE duration_ms END, "
        "tokens_used = CASE WHEN o THEN $6::bigint ELSE tokens_used END, "
        "result = CASE WHEN o THEN mcp.hf_jsonb($7::text) ELSE result END "
        "FROM (SELECT outcome IS NULL OR outcome = 'indeterminate' AS o, outcome_event AS was "
        "FROM mcp.session_tool_executions WHERE id = $1::uuid) x WHERE id = $1 "
        "RETURNING o, was",
    /* Updates all sessions of a slice in one statement, so that executor and checks start once.
     * Locks the rows in order of their ids, so that two concurrent folds do not deadlock. */
    [PG_SESSIONS_USED] =
        "WITH used AS (SELECT u.id, u.tenant, u.executions, u.tokens, "
        "timestamptz 'epoch' + u.at_ms * interval '1 millisecond' AS at FROM unnest($1::uuid[], "
        "$2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) "
        "AS u (id, tenant, executions, tokens, at_ms)), "
        "locked AS (SELECT id FROM mcp.edge_mcp_sessions WHERE id = ANY($1) "
        "ORDER BY id FOR NO KEY UPDATE) "
        "UPDATE mcp.edge_mcp_sessions s SET tool_execution_count = tool_execution_count + "
        "u.executions, total_tokens_used = least(total_tokens_used::numeric + u.tokens, "
        "9223372036854775807)::bigint, expires_at = mcp.hf_slid(s, u.at, $6::bigint), "
        "status = CASE WHEN status = 'idle' AND u.at > last_activity_at AND " NOT_PAST(
            "u.at") " THEN 'active' ELSE status END, last_activity_at = greatest(last_activity_at, "
                    "u.at) "
                    "FROM used u JOIN locked USING (id) WHERE s.id = u.id AND s.tenant_id = "
                    "u.tenant",
    [PG_SIZES_ADD] =
        "SELECT mcp.hf_sizes_add($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], "
        "$5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])",
    [PG_SIZES_TODO] = "SELECT writer, next_id, last_id FROM mcp.audit_sizes_todo ORDER BY writer "
                      "LIMIT 1 FOR UPDATE",
    [PG_SIZES_MOVE] =
        "UPDATE mcp.audit_sizes_todo SET next_id = $2::bigint WHERE writer = $1::bigint",
    [PG_SIZES_DONE] = "DELETE FROM mcp.audit_sizes_todo WHERE writer = $1::bigint",
    [PG_SIZES_SUBTRACT] =
        PG_VERB("hf_sizes_subtract($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], "
                "$5::bigint[], $6::bigint[], $7::bigint[])",
                "$8"),
    [PG_DATABASE_SIZE] =
        "SELECT pg_database_size(current_database()), (SELECT coalesce(sum(last_id - next_id + 1), "
        "0)::bigint FROM mcp.audit_sizes_todo)",
    [PG_TOOL_ENTER] =
        "INSERT INTO mcp.tool_configurations (id, tenant_id, server, tool_name) VALUES ($1::uuid, "
        "$2::text, $3::text, $4::text) ON CONFLICT DO NOTHING",
    [PG_OPEN_ALL] = "SELECT id FROM mcp.session_tool_executions WHERE outcome IS NULL",
    /* The first six hex digits of an execution's id are the number of its writer. */
    [PG_OPEN_INTENTS] =
        "SELECT x.id FROM mcp.session_tool_executions x LEFT JOIN mcp.writers w ON w.number = "
        "('x' || substr(replace(x.id::text, '-', ''), 1, 6))::bit(24)::bigint "
        "WHERE x.outcome IS NULL AND x.id > $2::uuid AND (w.number IS NULL "
        "OR w.ended_at IS NOT NULL OR w.lease_until <= $1::timestamptz) ORDER BY x.id "
        "LIMIT $3::bigint",

    [PG_LEASE] = "SELECT mcp.hf_lease('reap', $1::bigint, $2::timestamptz, $3::timestamptz)",
    [PG_REAP_AHEAD] =
        "UPDATE mcp.edge_mcp_sessions SET expires_at = expires_at - (last_activity_at - "
        "$1::timestamptz), last_activity_at = $1, created_at = least(created_at, $1), "
        "version = version + 1 WHERE id IN "
        "(SELECT id FROM mcp.edge_mcp_sessions WHERE " LIVE
        " AND last_activity_at > $3::timestamptz ORDER BY last_activity_at LIMIT $2::bigint "
        "FOR NO KEY UPDATE SKIP LOCKED)",
    [PG_REAP_PAST] = LAPSE "WHERE id IN (SELECT id FROM mcp.edge_mcp_sessions WHERE " LIVE
                           " AND expires_at <= $1::timestamptz ORDER BY expires_at "
                           "LIMIT $2::bigint FOR NO KEY UPDATE SKIP LOCKED) RETURNING "
                           "(extract(epoch FROM terminated_at - created_at) * 1000)::bigint",
    [PG_REAP_UNUSED] =
        "UPDATE mcp.edge_mcp_sessions SET status = 'idle' WHERE id IN "
        "(SELECT id FROM mcp.edge_mcp_sessions WHERE status = 'active' "
        "AND last_activity_at <= $1::timestamptz ORDER BY last_activity_at LIMIT $2::bigint "
        "FOR NO KEY UPDATE SKIP LOCKED)",
    [PG_REAP_OVER] =
        "DELETE FROM mcp.edge_mcp_sessions WHERE id IN (SELECT e.id FROM mcp.edge_mcp_sessions e "
        "WHERE e.status IN ('expired', 'terminated') AND e.terminated_at <= $1::timestamptz "
        "AND NOT EXISTS (SELECT FROM mcp.audit_held h WHERE h.tenant_id = e.tenant_id "
        "AND ((h.kind = 0 AND h.name = e.id::text) OR (h.kind = 1 AND h.name = e.owner))) "
        "ORDER BY e.terminated_at LIMIT $2::bigint FOR UPDATE OF e SKIP LOCKED)",
    [PG_REAP_TRANSPORTS_ENDED] =
        "DELETE FROM mcp.transport_sessions WHERE id_hash IN (SELECT id_hash FROM "
        "mcp.transport_sessions WHERE ended_at IS NOT NULL AND $1::timestamptz IS NOT NULL "
        "ORDER BY ended_at LIMIT $2::bigint)",
    [PG_REAP_TRANSPORTS_IDLE] =
        "DELETE FROM mcp.transport_sessions WHERE id_hash IN (SELECT id_hash FROM "
        "mcp.transport_sessions WHERE ended_at IS NULL AND last_used_at <= $1::timestamptz "
        "ORDER BY last_used_at LIMIT $2::bigint)",
    [PG_REAP_UNDELIVERED] =
        "DELETE FROM mcp.undelivered WHERE id IN (SELECT id FROM mcp.undelivered "
        "WHERE expires_at <= $1::timestamptz ORDER BY expires_at LIMIT $2::bigint)",
    [PG_REAP_IDEMPOTENCY] =
        "DELETE FROM mcp.idempotency WHERE (tenant_id, owner, key) IN (SELECT tenant_id, owner, "
        "key FROM mcp.idempotency WHERE expires_at <= $1::timestamptz ORDER BY expires_at "
        "LIMIT $2::bigint)",
    [PG_REAP_LOGINS] =
        "DELETE FROM mcp.user_sessions WHERE id IN (SELECT id FROM mcp.user_sessions "
        "WHERE expires_at <= $1::timestamptz ORDER BY expires_at LIMIT $2::bigint)",
    [PG_SUMS_MERGE] = "SELECT mcp.hf_session_sums_merge($1::bigint)",
    [PG_REAP_CHANGES] = "DELETE FROM mcp.changes WHERE id IN (SELECT id FROM mcp.changes "
                        "WHERE made_at <= $1::timestamptz ORDER BY id LIMIT $2::bigint)",

    [PG_EXECUTIONS_PAGE] =
        "SELECT id, outcome_event FROM mcp.session_tool_executions WHERE session_id = $4::uuid "
        "AND tenant_id = $1::text AND id < coalesce($5::uuid, " LAST_UUID ") "
        "AND mcp.hf_reaches($4, $1, $2::text, $3::boolean) ORDER BY id DESC LIMIT $6::bigint",
    [PG_TOOL_KNOWN] = "SELECT EXISTS (SELECT FROM mcp.tool_configurations WHERE id = $2::uuid "
                      "AND tenant_id = $1::text)",

    /* The last of the next $2 sessions after $1, and how many there are.  Reads one entry of the
     * key per session. */
    [PG_LINKS_UPTO] =
        "WITH RECURSIVE s(id) AS ((SELECT session_id FROM mcp.upstream_links WHERE session_id > "
        "$1::uuid ORDER BY session_id LIMIT 1) UNION ALL SELECT (SELECT session_id FROM "
        "mcp.upstream_links WHERE session_id > s.id ORDER BY session_id LIMIT 1) FROM s "
        "WHERE s.id IS NOT NULL) SELECT x.id::text, count(*) OVER () FROM (SELECT id FROM s "
        "LIMIT $2::bigint) x WHERE x.id IS NOT NULL ORDER BY x.id DESC LIMIT 1",
    /* Keeps the link of another node with a running lease for 10 minutes after the session ended.
     * A running node ends its own link in that time.  The lease alone does not show that the node
     * is alive: the lease of a node that was just killed still runs. */
    [PG_LINKS_REAP] =
        "DELETE FROM mcp.upstream_links l WHERE session_id > $1::uuid AND session_id <= $2::uuid "
        "AND NOT EXISTS (SELECT FROM mcp.edge_mcp_sessions e WHERE e.id = l.session_id "
        "AND (e.status IN ('active', 'idle') OR ((" LINK_IS_ELSEWHERE
        ") AND e.terminated_at > $4::timestamptz - interval '10 minutes'))) "
        "RETURNING session_id, server, writer, CASE WHEN (" LINK_IS_ELSEWHERE ") OR EXISTS "
        "(SELECT FROM mcp.edge_mcp_sessions e WHERE e.id = l.session_id AND e.origin = 'derived') "
        "THEN NULL ELSE remote_id END, opened_at, ended_at, end_reason",

    [PG_WRITER_INSERT] =
        "INSERT INTO mcp.writers (uuid, node, started_at, lease_until, ended_at) VALUES ($1::text, "
        "$2::text, $3::timestamptz, $4::timestamptz, $5::timestamptz) "
        "ON CONFLICT (uuid) DO UPDATE SET lease_until = excluded.lease_until RETURNING number",
    [PG_WRITERS_LAPSE] = "UPDATE mcp.writers SET lease_until = least(lease_until, $1::timestamptz) "
                         "WHERE number <> $2::bigint AND ended_at IS NULL "
                         "AND ($3::text IS NULL OR uuid = $3::text)",
};
