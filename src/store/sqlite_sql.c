/* SPDX-License-Identifier: Apache-2.0 */
/* Every SQL text of the SQLite backend, in one place and literal.  The order of parameters and
 * columns is the order in which the callers bind and read; macros here only spare repeating lists.
 */
#include "store/sqlite_impl.h"

#define LIVE "status IN ('active', 'idle')"
#define NOT_PAST(now) "(expires_at IS NULL OR expires_at > " now ")"
#define PAST(now) "expires_at <= " now

#define SESSION_COLUMNS                                                                            \
    "id, session_id, tenant_id, owner, user_id, edge_mcp_id, client_name, client_type, "           \
    "client_version, status, origin, initialized, provisional, counted, carrier, carrier_key, "    \
    "core_session_id, connection_metadata, context_id, passthrough_auth_encrypted, created_at, "   \
    "last_activity_at, expires_at, terminated_at, ttl_ms, termination_reason, "                    \
    "tool_execution_count, total_tokens_used, version"
#define SESSIONS "SELECT " SESSION_COLUMNS " FROM edge_mcp_sessions "
/* A session that passed its end ended there, not when somebody noticed. */
#define LAPSE                                                                                      \
    "UPDATE edge_mcp_sessions SET status = 'expired', terminated_at = expires_at, "                \
    "termination_reason = 'expired', version = version + 1 "
#define OWNED_SESSION(id, tenant, owner)                                                           \
    "EXISTS (SELECT 1 FROM edge_mcp_sessions WHERE id = " id " AND tenant_id = " tenant            \
    " AND owner = " owner ")"

/* Segments that may hold events ?2 to ?3. */
#define SEGMENTS                                                                                   \
    "SELECT id, records, CASE WHEN ?1 THEN bodies END FROM events WHERE id <= ?3 "                 \
    "AND id >= coalesce((SELECT max(id) FROM events WHERE id <= ?2), ?2) "

const char *const sq_texts[SQ_COUNT] = {
    [SQ_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SQ_BEGIN_READ] = "BEGIN",
    [SQ_COMMIT] = "COMMIT",
    [SQ_ROLLBACK] = "ROLLBACK",
    [SQ_PROBE] = "UPDATE store_probe SET count = count + 1 WHERE id = 1",

    [SQ_TENANT_COUNTED] = "SELECT counted_sessions FROM tenants WHERE id = ?",
    [SQ_TENANT_ADD] = "INSERT INTO tenants (id, created_at) VALUES (?, ?)",

    [SQ_SESSION_LAPSE_KEY] =
        LAPSE "WHERE tenant_id = ?1 AND owner = ?2 AND carrier = ?3 AND carrier_key = ?4 "
              "AND carrier_key IS NOT NULL AND " LIVE " AND " PAST("?5"),
    [SQ_SESSION_LAPSE_TENANT] =
        LAPSE "WHERE tenant_id = ?1 AND counted = 1 AND " LIVE " AND " PAST("?2"),
    [SQ_SESSION_TAKEN] =
        "SELECT 1 FROM edge_mcp_sessions WHERE tenant_id = ?1 AND session_id = ?2 UNION ALL "
        "SELECT 1 FROM edge_mcp_sessions WHERE tenant_id = ?1 AND owner = ?3 AND carrier = ?4 "
        "AND carrier_key = ?5 AND carrier_key IS NOT NULL AND " LIVE " UNION ALL "
        "SELECT 1 FROM edge_mcp_sessions WHERE id = ?6 LIMIT 1",
    [SQ_SESSION_INSERT] =
        "INSERT INTO edge_mcp_sessions (" SESSION_COLUMNS ") "
        "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
    [SQ_SESSION_STATE] = "SELECT counted AND NOT provisional, counted, " LIVE " AND " NOT_PAST(
        "?4") " FROM edge_mcp_sessions WHERE id = ?1 AND tenant_id = ?2 AND owner = ?3",
    [SQ_SESSION_NAME] =
        "UPDATE edge_mcp_sessions SET provisional = 0, counted = 1, version = version + 1, "
        "expires_at = coalesce(?2, expires_at) WHERE id = ?1",
    [SQ_SESSION_END] =
        "UPDATE edge_mcp_sessions SET status = ?4, terminated_at = ?5, termination_reason = ?6, "
        "version = version + 1 WHERE id = ?1 AND tenant_id = ?2 AND owner = ?3 AND " LIVE
        " AND " NOT_PAST("?7"),
    [SQ_SESSION_REAP] = LAPSE "WHERE rowid IN (SELECT rowid FROM edge_mcp_sessions WHERE " LIVE
                              " AND " PAST("?1") " ORDER BY expires_at LIMIT ?2)",
    [SQ_SESSION_BY_HANDLE] = SESSIONS "WHERE tenant_id = ?1 AND owner = ?2 AND session_id = ?3",
    [SQ_SESSION_BY_ID] = SESSIONS "WHERE tenant_id = ?1 AND owner = ?2 AND id = ?3",
    [SQ_SESSION_BY_KEY] =
        SESSIONS "WHERE tenant_id = ?1 AND owner = ?2 AND carrier = ?3 AND carrier_key = ?4 "
                 "AND carrier_key IS NOT NULL AND " LIVE " AND " NOT_PAST("?5"),
    [SQ_SESSIONS_OF_TENANT] = SESSIONS
    "WHERE tenant_id = ?1 AND (?2 IS NULL OR true) AND id < ?3 ORDER BY id DESC LIMIT ?4",
    [SQ_SESSIONS_OF_OWNER] =
        SESSIONS "WHERE tenant_id = ?1 AND owner = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4",

    [SQ_TRANSPORT_INSERT] =
        "INSERT INTO transport_sessions (id_hash, tenant_id, owner, endpoint, protocol_version, "
        "initialize_params, session_id, created_at, last_used_at, ended_at) "
        "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 WHERE ?7 IS NULL OR " OWNED_SESSION(
            "?7", "?2", "?3") " ON CONFLICT DO NOTHING",
    [SQ_TRANSPORT_EXISTS] = "SELECT 1 FROM transport_sessions WHERE id_hash = ?",
    [SQ_TRANSPORT_LINK] =
        "UPDATE transport_sessions SET session_id = ?4 WHERE id_hash = ?1 AND tenant_id = ?2 "
        "AND owner = ?3 AND ended_at IS NULL AND " OWNED_SESSION("?4", "?2", "?3"),
    [SQ_TRANSPORT_TOUCH] =
        "UPDATE transport_sessions SET last_used_at = max(last_used_at, ?4) WHERE id_hash = ?1 "
        "AND tenant_id = ?2 AND owner = ?3 AND ended_at IS NULL",
    [SQ_TRANSPORT_END] =
        "UPDATE transport_sessions SET ended_at = ?4 WHERE id_hash = ?1 AND tenant_id = ?2 "
        "AND owner = ?3 AND ended_at IS NULL",
    [SQ_TRANSPORT_GET] =
        "SELECT id_hash, tenant_id, owner, endpoint, protocol_version, initialize_params, "
        "session_id, created_at, last_used_at, ended_at FROM transport_sessions "
        "WHERE id_hash = ?1 AND tenant_id = ?2 AND owner = ?3 AND ended_at IS NULL",
    [SQ_TRANSPORT_REAP_ENDED] =
        "DELETE FROM transport_sessions WHERE id_hash IN (SELECT id_hash FROM transport_sessions "
        "WHERE ended_at IS NOT NULL ORDER BY ended_at LIMIT ?)",
    [SQ_TRANSPORT_REAP_IDLE] =
        "DELETE FROM transport_sessions WHERE id_hash IN (SELECT id_hash FROM transport_sessions "
        "WHERE ended_at IS NULL AND last_used_at <= ? ORDER BY last_used_at LIMIT ?)",

    [SQ_LINK_PUT] =
        "INSERT INTO upstream_links (session_id, server, writer, remote_id, opened_at, ended_at, "
        "end_reason) SELECT ?1, ?2, ?5, ?6, ?7, ?8, ?9 WHERE " OWNED_SESSION(
            "?1", "?3",
            "?4") " ON CONFLICT (session_id, server) DO UPDATE SET writer = excluded.writer, "
                  "remote_id = excluded.remote_id, opened_at = excluded.opened_at, "
                  "ended_at = excluded.ended_at, end_reason = excluded.end_reason",
    [SQ_LINK_END] = "UPDATE upstream_links SET writer = 0, ended_at = ?5, end_reason = ?6 WHERE "
                    "session_id = ?1 "
                    "AND server = ?2 AND ended_at IS NULL AND " OWNED_SESSION("?1", "?3", "?4"),
    [SQ_LINKS_OF] = "SELECT session_id, server, writer, remote_id, opened_at, ended_at, end_reason "
                    "FROM upstream_links WHERE session_id = ?3 AND " OWNED_SESSION(
                        "?3", "?1", "?2") " ORDER BY server",

    [SQ_EVENTS_INSERT] = "INSERT INTO events (id, records, bodies) VALUES (?,?,?)",
    [SQ_EVENTS_UP] = SEGMENTS "ORDER BY id",
    [SQ_EVENTS_DOWN] = SEGMENTS "ORDER BY id DESC",

    [SQ_WRITER_INSERT] =
        "INSERT INTO writers (uuid, node, started_at, lease_until_ms, ended_at) VALUES (?,?,?,?,?)",
    [SQ_WRITERS_LAPSE] =
        "UPDATE writers SET lease_until_ms = min(lease_until_ms, ?1) WHERE number <> ?2 "
        "AND ended_at IS NULL",
    [SQ_WRITER_RENEW] =
        "UPDATE writers SET lease_until_ms = ?2 WHERE number = ?1 AND ended_at IS NULL",
    [SQ_WRITER_END] = "UPDATE writers SET ended_at = ?2 WHERE number = ?1 AND ended_at IS NULL",

    [SQ_FOLD_WATERMARK] = "SELECT max(last_id) FROM fold_state WHERE writer = ?",
    [SQ_FOLD_HEADS] =
        "SELECT tenant, writer, seq, last_id, mac FROM fold_state ORDER BY writer, tenant",
    [SQ_FOLD_ADVANCE] =
        "INSERT INTO fold_state (writer, tenant, seq, last_id, mac, events) VALUES (?,?,?,?,?,?) "
        "ON CONFLICT (writer, tenant) DO UPDATE SET seq = excluded.seq, last_id = "
        "excluded.last_id, "
        "mac = excluded.mac, events = events + excluded.events",
    [SQ_EXEC_INSERT] = "INSERT INTO long_executions (id, outcome_event, state) VALUES (?,?,?) "
                       "ON CONFLICT (id) DO NOTHING",
    /* What was only guessed to be lost may still turn out to have ended otherwise. */
    [SQ_EXEC_CLOSE] =
        "UPDATE long_executions SET "
        "outcome_event = CASE WHEN state = 0 OR state & 2 THEN ?2 ELSE outcome_event END, "
        "state = CASE WHEN state = 0 THEN ?3 WHEN state & 2 THEN ?3 | 4 ELSE state | 4 END "
        "WHERE id = ?1",
    [SQ_EXEC_OUTCOME] = "SELECT outcome_event FROM long_executions WHERE id = ? AND state & 5 = 1",
    [SQ_SESSION_USED] =
        "UPDATE edge_mcp_sessions SET tool_execution_count = tool_execution_count + ?3, "
        "expires_at = CASE WHEN ?4 > last_activity_at AND ?4 < expires_at "
        "AND ttl_ms = 0 AND " LIVE
        " THEN min(expires_at + ?4 - last_activity_at, max(expires_at, created_at + ?5)) "
        "ELSE expires_at END, last_activity_at = max(last_activity_at, ?4) "
        "WHERE id = ?1 AND tenant_id = ?2",
    [SQ_OPEN_INTENTS] =
        "SELECT x.id FROM long_executions x LEFT JOIN writers w ON w.number = x.id >> 40 "
        "WHERE x.state = 0 AND x.id > ?2 AND (w.number IS NULL OR w.ended_at IS NOT NULL "
        "OR w.lease_until_ms <= ?1) ORDER BY x.id LIMIT ?3",
    [SQ_UNDELIVERED_PUT] =
        "INSERT INTO undelivered (id, tenant_id, owner, session_id, digest, execution, created_at, "
        "expires_at, sealed) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE " OWNED_SESSION(
            "?4", "?2", "?3") " ON CONFLICT DO NOTHING",
    [SQ_UNDELIVERED_EXISTS] = "SELECT 1 FROM undelivered WHERE id = ?",
    [SQ_UNDELIVERED_TAKE] = "DELETE FROM undelivered WHERE id = ?1 AND tenant_id = ?2 "
                            "AND owner = ?3 AND expires_at > ?4",
    [SQ_UNDELIVERED_GET] =
        "SELECT id, tenant_id, owner, session_id, digest, execution, created_at, expires_at, "
        "length(sealed), sealed FROM undelivered WHERE id = ?1 AND tenant_id = ?2 "
        "AND owner = ?3 AND expires_at > ?4",
    [SQ_UNDELIVERED_PAGE] =
        "SELECT id, tenant_id, owner, session_id, digest, execution, created_at, expires_at, "
        "length(sealed), NULL FROM undelivered WHERE id > ?1 AND expires_at > ?2 "
        "ORDER BY id LIMIT ?3",
    [SQ_UNDELIVERED_REAP] = "DELETE FROM undelivered WHERE id IN (SELECT id FROM undelivered "
                            "WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",

    [SQ_COUNTS] =
        "SELECT (SELECT count(*) FROM edge_mcp_sessions WHERE " LIVE
        " AND " NOT_PAST("?1") "), "
                               "(SELECT count(*) FROM edge_mcp_sessions), "
                               "(SELECT count(*) FROM transport_sessions WHERE ended_at IS NULL), "
                               "(SELECT coalesce(sum(events), 0) FROM fold_state), "
                               "(SELECT count(*) FROM long_executions WHERE state = 0)",
};
