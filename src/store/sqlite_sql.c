/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL texts of the SQLite backend that are not in the shared tables (store/sql.h), in one place
 * and literal.  Callers bind parameters and read columns in the order of the text.  Macros here only
 * avoid repeated lists.  "@" stands for the columns of a session. */
#include "store/sqlite_impl.h"

#define LIVE "status IN ('active', 'idle')"
/* The session has a sealed secret. */
#define SEALED "(passthrough_auth_encrypted IS NOT NULL OR profile_context_encrypted IS NOT NULL)"
#define NOT_PAST(now) "(expires_at IS NULL OR expires_at > " now ")"
#define PAST(now) "expires_at <= " now
#define PROMOTED "origin NOT IN ('rest', 'tool', 'keyed')"
/* The number of sessions that are counted in the tenant's row but do not count against its limit
 * now; see session_row_counts().  Each half uses an index that holds few other rows. */
#define COUNTED_NOT(tenant, now)                                                                   \
    "((SELECT count(*) FROM edge_mcp_sessions INDEXED BY idx_edge_sessions_counted "               \
    "WHERE tenant_id = " tenant " AND counted = 1 AND " LIVE " AND " PAST(                         \
        now) ") + "                                                                                \
             "(SELECT count(*) FROM edge_mcp_sessions INDEXED BY idx_edge_sessions_promoted "      \
             "WHERE tenant_id = " tenant " AND counted = 1 AND " LIVE " AND " PROMOTED             \
             " AND last_activity_at <= " now " - 1800000 AND " NOT_PAST(now) "))"

/* A session past its end ended at that time, not when the reaper found it. */
#define LAPSE                                                                                      \
    "UPDATE edge_mcp_sessions SET status = 'expired', terminated_at = expires_at, "                \
    "termination_reason = 'expired', version = version + 1 "
#define OWNED_SESSION(id, tenant, owner)                                                           \
    "EXISTS (SELECT 1 FROM edge_mcp_sessions WHERE id = " id " AND tenant_id = " tenant            \
    " AND owner = " owner ")"

/* A session of the owner, or any session of the tenant when no owner is bound (tenant-wide
 * caller). */
#define REACHED(id, tenant, owner_)                                                                \
    "id = " id " AND tenant_id = " tenant " AND owner = coalesce(" owner_ ", owner) "
/* The effect of a use on a session with a sliding end. */
#define SLIDE(at, longest)                                                                         \
    "expires_at = CASE WHEN " at " > last_activity_at AND " at                                     \
    " < expires_at AND ttl_ms = 0 AND " LIVE " THEN min(expires_at + " at                          \
    " - last_activity_at, max(expires_at, created_at + " longest ")) ELSE expires_at END, "        \
    "last_activity_at = max(last_activity_at, " at ") "
/* The sums of sessions used since the minute ?3, corrected for sessions that are past their end by
 * ?4 but not ended yet. */
#define TOTALS(which)                                                                              \
    "SELECT s.sessions, s.live - p.n, s.executions, s.high, s.low, s.lived_ms + p.more_ms FROM "   \
    "(SELECT coalesce(sum(sessions), 0) AS sessions, coalesce(sum(live), 0) AS live, "             \
    "coalesce(sum(executions), 0) AS executions, coalesce(sum(tokens_high), 0) AS high, "          \
    "coalesce(sum(tokens_low), 0) AS low, coalesce(sum(lived_ms), 0) AS lived_ms "                 \
    "FROM session_sums WHERE " which " AND minute >= ?3) s, "                                      \
    "(SELECT count(*) AS n, coalesce(sum(expires_at - last_activity_at), 0) AS more_ms "           \
    "FROM edge_mcp_sessions INDEXED BY idx_edge_sessions_active WHERE " LIVE                       \
    " AND " PAST("?4") " AND " which " AND max(created_at, last_activity_at) / 60000 >= ?3) p"

/* Segments that may hold the events ?2 to ?3. */
#define SEGMENTS                                                                                   \
    "SELECT id, packed, records, CASE WHEN ?1 THEN bodies END FROM events WHERE id <= ?3 "         \
    "AND id >= coalesce((SELECT max(id) FROM events WHERE id <= ?2), ?2) "

const char *const sq_texts[SQ_COUNT] = {
    [SQ_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [SQ_BEGIN_READ] = "BEGIN",
    [SQ_COMMIT] = "COMMIT",
    [SQ_ROLLBACK] = "ROLLBACK",
    [SQ_PROBE] = "UPDATE store_probe SET count = count + 1 WHERE id = 1",

    [SQ_TENANT_COUNTED] = "SELECT counted_sessions FROM tenants WHERE id = ?",
    [SQ_TENANT_ADD] = "INSERT INTO tenants (id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",

    [SQ_USER_ENSURE] =
        "INSERT INTO users (id, tenant_id, name, role, issuer, created_at, ended_at) "
        "VALUES (?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET role = CASE WHEN password IS NULL "
        "THEN excluded.role ELSE role END "
        "WHERE tenant_id = excluded.tenant_id ON CONFLICT DO NOTHING",
    [SQ_USER_CREATE] =
        "INSERT INTO users (id, tenant_id, name, role, password, created_at) VALUES (?,?,?,?,?,?) "
        "ON CONFLICT (id) DO UPDATE SET role = excluded.role, password = excluded.password "
        "WHERE tenant_id = excluded.tenant_id AND password IS NULL AND ended_at IS NULL "
        "AND issuer IS NULL ON CONFLICT DO NOTHING",
    [SQ_USER_PASSWORD] = "UPDATE users SET password = ?3, failed_logins = 0, locked_until = NULL "
                         "WHERE id = ?1 AND tenant_id = ?2 AND issuer IS NULL",
    [SQ_USER_END] = "UPDATE users SET ended_at = ?3 WHERE id = ?1 AND tenant_id = ?2",
    [SQ_LOGIN_FAILED] = "UPDATE users SET failed_logins = failed_logins + 1, locked_until = CASE "
                        "WHEN failed_logins + 1 < ?4 THEN locked_until "
                        "ELSE ?3 + min(?5 << min(failed_logins + 1 - ?4, 20), ?6) END "
                        "WHERE id = ?1 AND tenant_id = ?2",

    [SQ_LOGIN_CREATE] =
        "INSERT INTO user_sessions (id, user_id, tenant_id, refresh_token_hash, family, "
        "device_info, ip_address, created_at, expires_at, last_activity) "
        "SELECT ?1, ?2, ?3, ?4, ?1, ?5, ?6, ?7, ?8, ?9 FROM users WHERE id = ?2 "
        "AND tenant_id = ?3 AND ended_at IS NULL AND password = ?10 ON CONFLICT DO NOTHING",
    [SQ_LOGIN_USER] = "SELECT ended_at IS NULL AND password IS ?3 FROM users "
                      "WHERE id = ?1 AND tenant_id = ?2",
    [SQ_LOGIN_CLEAR] = "UPDATE users SET failed_logins = 0, locked_until = NULL WHERE id = ? "
                       "AND (failed_logins <> 0 OR locked_until IS NOT NULL)",
    [SQ_LOGIN_PRUNE] =
        "UPDATE user_sessions SET revoked_at = ?3, revoke_reason = 'limit' WHERE id IN "
        "(SELECT id FROM user_sessions WHERE user_id = ?1 AND revoked_at IS NULL AND id <> ?2 "
        "ORDER BY last_activity DESC, id DESC LIMIT -1 OFFSET ?4 - 1)",
    [SQ_LOGIN_STATE] =
        "SELECT f.id, f.tenant_id, f.user_id, t.id <> f.id, t.revoked_at >= ?2, "
        "f.revoked_at IS NULL AND f.expires_at > ?3, u.ended_at IS NULL, f.expires_at, "
        "f.last_activity "
        "FROM user_sessions t JOIN user_sessions f ON f.id = t.family "
        "JOIN users u ON u.id = f.user_id WHERE t.refresh_token_hash = ?1",
    [SQ_LOGIN_ROTATE] =
        "UPDATE user_sessions SET refresh_token_hash = ?2, expires_at = ?3, last_activity = ?4, "
        "ip_address = coalesce(?5, ip_address) WHERE id = ?1",
    [SQ_LOGIN_SPEND] =
        "INSERT INTO user_sessions (id, user_id, tenant_id, refresh_token_hash, family, "
        "created_at, expires_at, revoked_at, revoke_reason, last_activity) "
        "SELECT ?2, user_id, tenant_id, ?3, id, ?5, ?6, ?4, 'rotated', ?4 "
        "FROM user_sessions WHERE id = ?1",
    [SQ_LOGIN_REVOKE] = "UPDATE user_sessions SET revoked_at = ?4, revoke_reason = ?5 "
                        "WHERE id = ?1 AND family = id AND tenant_id = ?2 "
                        "AND user_id = coalesce(?3, user_id) AND revoked_at IS NULL "
                        "AND expires_at > ?6",
    [SQ_LOGINS_REVOKE] = "UPDATE user_sessions SET revoked_at = ?3, revoke_reason = ?4 "
                         "WHERE user_id = ?1 AND tenant_id = ?2 AND revoked_at IS NULL",
    [SQ_LOGINS_REAP] = "DELETE FROM user_sessions WHERE id IN (SELECT id FROM user_sessions "
                       "WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",

    [SQ_KEY_CREATE] =
        "INSERT INTO api_keys (id, tenant_id, user_id, name, role, hash, scopes, created_at, "
        "expires_at, revoked_at, last_used_at) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11 "
        "WHERE ?3 IS NULL OR EXISTS (SELECT 1 FROM users WHERE id = ?3 AND tenant_id = ?2) "
        "ON CONFLICT DO NOTHING",
    [SQ_KEY_EXISTS] = "SELECT 1 FROM api_keys WHERE id = ?",
    [SQ_KEY_REVOKE] = "UPDATE api_keys SET revoked_at = ?3 WHERE id = ?1 AND tenant_id = ?2 "
                      "AND revoked_at IS NULL",
    [SQ_KEY_USED] = "UPDATE api_keys SET last_used_at = max(coalesce(last_used_at, 0), ?2) "
                    "WHERE id = ?1",

    [SQ_TENANT_KEY_PUT] = "INSERT INTO tenant_keys (id, tenant_id, master_id, wrapped, created_at) "
                          "VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING",
    [SQ_TENANT_KEY_WRAP] =
        "UPDATE tenant_keys SET master_id = ?3, wrapped = ?4 WHERE id = ?1 AND tenant_id = ?2",
    [SQ_SECRET_UPDATE] = "UPDATE secrets SET sealed = ?2, updated_at = ?3 WHERE name = ?1",
    [SQ_SECRET_INSERT] =
        "INSERT INTO secrets (name, sealed, created_at, updated_at) SELECT ?1, ?2, ?3, ?4 "
        "WHERE ?5 < 0 OR (SELECT count(*) FROM secrets) < ?5",
    [SQ_SECRET_REMOVE] = "DELETE FROM secrets WHERE name = ?1",
    [SQ_SESSION_RESEAL] =
        "UPDATE edge_mcp_sessions SET passthrough_auth_encrypted = coalesce(?3, "
        "passthrough_auth_encrypted), profile_context_encrypted = coalesce(?4, "
        "profile_context_encrypted) WHERE id = ?1 AND tenant_id = ?2 AND version = ?5 AND " SEALED,
    [SQ_SESSION_SEALED] =
        "SELECT 1 FROM edge_mcp_sessions WHERE id = ?1 AND tenant_id = ?2 AND " SEALED,

    [SQ_CONTEXT_STATE] =
        "SELECT s.status IN ('active', 'idle') AND (s.expires_at IS NULL OR s.expires_at > ?4), "
        "s.context_id IS NULL, coalesce(c.version, 0), coalesce(c.tenant_id <> s.tenant_id, 0) "
        "FROM edge_mcp_sessions s LEFT JOIN contexts c ON c.id = coalesce(s.context_id, ?5) "
        "WHERE s.id = ?1 AND s.tenant_id = ?2 AND s.owner = coalesce(?3, s.owner)",
    [SQ_CONTEXT_PUT] =
        "INSERT INTO contexts (id, tenant_id, document, version, created_at, updated_at) "
        "SELECT coalesce(context_id, ?2), tenant_id, ?3, 1, ?4, ?5 FROM edge_mcp_sessions "
        "WHERE id = ?1 ON CONFLICT (id) DO UPDATE SET document = excluded.document, "
        "version = version + 1, updated_at = excluded.updated_at",
    [SQ_SESSION_CONTEXT] =
        "UPDATE edge_mcp_sessions SET context_id = ?2, version = version + 1 WHERE id = ?1",

    [SQ_IDEMPOTENCY_PUT] =
        "INSERT INTO idempotency (tenant_id, owner, key, request_sha, status, headers, body, "
        "created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
        "ON CONFLICT (tenant_id, owner, key) DO UPDATE SET request_sha = excluded.request_sha, "
        "status = excluded.status, headers = excluded.headers, body = excluded.body, "
        "created_at = excluded.created_at, expires_at = excluded.expires_at "
        "WHERE idempotency.expires_at <= ?10",
    [SQ_IDEMPOTENCY_REAP] = "DELETE FROM idempotency WHERE rowid IN (SELECT rowid FROM idempotency "
                            "WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",

    [SQ_SESSION_LAPSE_KEY] =
        LAPSE "WHERE tenant_id = ?1 AND owner = ?2 AND carrier = ?3 AND carrier_key = ?4 "
              "AND carrier_key IS NOT NULL AND " LIVE " AND " PAST("?5"),
    [SQ_TENANT_LAPSED] = "SELECT " COUNTED_NOT("?1", "?2"),
    [SQ_SESSION_TAKEN] =
        "SELECT 1 FROM edge_mcp_sessions WHERE tenant_id = ?1 AND session_id = ?2 UNION ALL "
        "SELECT 1 FROM edge_mcp_sessions WHERE tenant_id = ?1 AND owner = ?3 AND carrier = ?4 "
        "AND carrier_key = ?5 AND carrier_key IS NOT NULL AND " LIVE " UNION ALL "
        "SELECT 1 FROM edge_mcp_sessions WHERE id = ?6 LIMIT 1",
    [SQ_SESSION_INSERT] = "INSERT INTO edge_mcp_sessions (@) "
                          "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
                          "?,?) ON CONFLICT DO NOTHING",
    [SQ_SESSION_STATE] = "SELECT counted AND NOT provisional, counted, " LIVE " AND " NOT_PAST(
        "?4") ", version FROM edge_mcp_sessions WHERE " REACHED("?1", "?2", "?3"),
    [SQ_SESSION_PROMOTE] =
        "UPDATE edge_mcp_sessions SET provisional = 0, counted = 1, version = version + 1, "
        "expires_at = coalesce(?2, expires_at) WHERE id = ?1",
    [SQ_SESSION_END] =
        "UPDATE edge_mcp_sessions SET status = ?4, terminated_at = ?5, termination_reason = ?6, "
        "version = version + 1 WHERE " REACHED("?1", "?2", "?3") "AND " LIVE " AND " NOT_PAST("?7"),
    /* SQ_SESSION_WAKE wakes an idle session, so that this statement does not touch the indexes by
     * status. */
    [SQ_SESSION_USE] =
        "UPDATE edge_mcp_sessions SET version = version + 1, " SLIDE("?5", "?6") "WHERE " REACHED(
            "?1", "?2", "?3") "AND " LIVE " AND " NOT_PAST("?4") " RETURNING status = 'idle'",
    [SQ_SESSION_CAN_WAIT] = "SELECT 1 FROM edge_mcp_sessions WHERE " REACHED(
        "?1", "?2", "?3") "AND status = 'active' AND " NOT_PAST("?4") " AND " NOT_PAST("?5"),
    [SQ_SESSION_WAKE] = "UPDATE edge_mcp_sessions SET status = 'active' WHERE id = ?1",
    [SQ_SESSION_PATCH] =
        "UPDATE edge_mcp_sessions SET version = version + 1, "
        "client_name = CASE WHEN ?2 & 1 THEN ?3 ELSE client_name END, "
        "client_type = CASE WHEN ?2 & 2 THEN ?4 ELSE client_type END, "
        "client_version = CASE WHEN ?2 & 4 THEN ?5 ELSE client_version END, "
        "connection_metadata = CASE WHEN ?2 & 8 THEN ?6 ELSE connection_metadata END, "
        "core_session_id = CASE WHEN ?2 & 16 THEN ?7 ELSE core_session_id END, "
        "context_id = CASE WHEN ?2 & 32 THEN ?8 ELSE context_id END, "
        "initialized = CASE WHEN ?2 & 64 THEN ?9 ELSE initialized END, "
        "passthrough_auth_encrypted = CASE WHEN ?2 & 128 THEN ?10 "
        "ELSE passthrough_auth_encrypted END, "
        "toolsets = CASE WHEN ?2 & 256 THEN ?11 ELSE toolsets END, "
        "setup = CASE WHEN ?2 & 512 THEN ?12 ELSE setup END WHERE id = ?1",
    [SQ_SESSION_REFRESH] =
        "UPDATE edge_mcp_sessions SET version = version + 1, expires_at = ?5, ttl_ms = ?6 "
        "WHERE " REACHED("?1", "?2", "?3") "AND " LIVE " AND " NOT_PAST("?4"),
    [SQ_SESSION_IDLE] =
        "UPDATE edge_mcp_sessions SET status = 'idle' WHERE rowid IN "
        "(SELECT rowid FROM edge_mcp_sessions INDEXED BY idx_edge_sessions_used WHERE " LIVE
        " AND status = 'active' AND last_activity_at <= ?1 ORDER BY last_activity_at LIMIT ?2)",
    [SQ_SESSION_PULL_BACK] =
        "UPDATE edge_mcp_sessions SET version = version + 1, "
        "expires_at = expires_at - (last_activity_at - ?1), last_activity_at = ?1, "
        "created_at = min(created_at, ?1) WHERE rowid IN "
        "(SELECT rowid FROM edge_mcp_sessions INDEXED BY idx_edge_sessions_used WHERE " LIVE
        " AND last_activity_at > ?2 ORDER BY last_activity_at LIMIT ?3)",
    [SQ_SESSION_REAP] = LAPSE "WHERE rowid IN (SELECT rowid FROM edge_mcp_sessions INDEXED BY "
                              "idx_edge_sessions_active WHERE " LIVE
                              " AND " PAST("?1") " ORDER BY expires_at LIMIT ?2) "
                                                 "RETURNING terminated_at - created_at",
    [SQ_SESSION_DELETE_OVER] =
        "DELETE FROM edge_mcp_sessions WHERE rowid IN (SELECT e.rowid FROM edge_mcp_sessions e "
        "INDEXED BY idx_edge_sessions_over WHERE e.status IN ('expired', 'terminated') "
        "AND e.terminated_at <= ?1 AND NOT EXISTS (SELECT 1 FROM audit_held h WHERE h.tenant_id = "
        "e.tenant_id AND ((h.kind = 0 AND h.name = e.id) OR (h.kind = 1 AND h.name = e.owner))) "
        "ORDER BY e.terminated_at LIMIT ?2)",
    [SQ_TOTALS_OF_TENANT] = TOTALS("tenant_id = ?1 AND (?2 IS NULL OR true)"),
    [SQ_TOTALS_OF_OWNER] = TOTALS("tenant_id = ?1 AND owner = ?2"),

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
    [SQ_TRANSPORT_REAP_ENDED] =
        "DELETE FROM transport_sessions WHERE id_hash IN (SELECT id_hash FROM transport_sessions "
        "WHERE ended_at IS NOT NULL ORDER BY ended_at LIMIT ?)",
    [SQ_TRANSPORT_REAP_IDLE] =
        "DELETE FROM transport_sessions WHERE id_hash IN (SELECT id_hash FROM transport_sessions "
        "WHERE ended_at IS NULL AND last_used_at <= ? ORDER BY last_used_at LIMIT ?)",

    [SQ_LINK_PUT] =
        "INSERT INTO upstream_links (session_id, server, writer, remote_id, opened_at, ended_at, "
        "end_reason) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE " OWNED_SESSION(
            "?1", "?8",
            "?9") " ON CONFLICT (session_id, server) DO UPDATE SET writer = excluded.writer, "
                  "remote_id = excluded.remote_id, opened_at = excluded.opened_at, "
                  "ended_at = excluded.ended_at, end_reason = excluded.end_reason",
    [SQ_LINK_END] = "UPDATE upstream_links SET writer = 0, ended_at = ?5, end_reason = ?6 WHERE "
                    "session_id = ?1 "
                    "AND server = ?2 AND ended_at IS NULL AND " OWNED_SESSION("?1", "?3", "?4"),
    [SQ_LINKS_UPTO] =
        "WITH RECURSIVE s(id) AS (SELECT min(session_id) FROM upstream_links WHERE session_id > ?1 "
        "UNION ALL SELECT (SELECT min(session_id) FROM upstream_links WHERE session_id > s.id) "
        "FROM s WHERE s.id IS NOT NULL LIMIT ?2) SELECT max(id), count(id) FROM s",
    [SQ_LINKS_REAP] =
        "DELETE FROM upstream_links WHERE session_id > ?1 AND session_id <= ?2 AND NOT EXISTS "
        "(SELECT 1 FROM edge_mcp_sessions e WHERE e.id = upstream_links.session_id "
        "AND e.status IN ('active', 'idle')) RETURNING session_id, server, writer, "
        "CASE (SELECT e.origin FROM edge_mcp_sessions e WHERE e.id = upstream_links.session_id) "
        "WHEN 'derived' THEN NULL ELSE remote_id END, opened_at, ended_at, end_reason",

    [SQ_EVENTS_INSERT] = "INSERT INTO events (id, records, bodies, packed) VALUES (?,?,?,1)",
    [SQ_EVENTS_UP] = SEGMENTS "ORDER BY id",
    [SQ_EVENTS_DOWN] = SEGMENTS "ORDER BY id DESC",

    [SQ_SIZES_ADD] =
        "INSERT INTO audit_sizes (tenant_id, day, events, event_bytes, bodies, body_bytes, "
        "first_at, last_at) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (tenant_id, day) DO UPDATE SET "
        "events = events + excluded.events, event_bytes = event_bytes + excluded.event_bytes, "
        "bodies = bodies + excluded.bodies, body_bytes = body_bytes + excluded.body_bytes, "
        "first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at)",
    [SQ_SIZES_DROP] = "DELETE FROM audit_sizes WHERE tenant_id = ? AND day = ? AND events <= 0",
    [SQ_SIZES_TODO] =
        "SELECT writer, next_id, last_id FROM audit_sizes_todo ORDER BY writer LIMIT 1",
    [SQ_SIZES_MOVE] = "UPDATE audit_sizes_todo SET next_id = ?2 WHERE writer = ?1",
    [SQ_SIZES_DONE] = "DELETE FROM audit_sizes_todo WHERE writer = ?1 AND ?2 IS NOT NULL",
    [SQ_SIZES_HAS] = "SELECT 1 FROM audit_sizes_todo WHERE writer = ?1 AND next_id <= ?2 AND "
                     "last_id >= ?2",
    [SQ_DATABASE_SIZE] =
        "SELECT (SELECT page_count FROM pragma_page_count), (SELECT freelist_count FROM "
        "pragma_freelist_count), (SELECT page_size FROM pragma_page_size), (SELECT "
        "coalesce(sum(last_id - next_id + 1), 0) FROM audit_sizes_todo)",

    [SQ_WRITER_INSERT] =
        "INSERT INTO writers (uuid, node, started_at, lease_until_ms, ended_at) VALUES (?,?,?,?,?)",
    [SQ_WRITERS_LAPSE] =
        "UPDATE writers SET lease_until_ms = min(lease_until_ms, ?1) WHERE number <> ?2 "
        "AND ended_at IS NULL AND (?3 IS NULL OR uuid = ?3)",
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
    /* A later outcome replaces only "indeterminate", which is a guess. */
    [SQ_EXEC_CLOSE] =
        "UPDATE long_executions SET "
        "outcome_event = CASE WHEN state = 0 OR state & 2 THEN ?2 ELSE outcome_event END, "
        "state = CASE WHEN state = 0 THEN ?3 WHEN state & 2 THEN ?3 | 4 ELSE state | 4 END "
        "WHERE id = ?1",
    [SQ_EXEC_OUTCOME] = "SELECT outcome_event FROM long_executions WHERE id = ? AND state & 5 = 1",
    [SQ_EXEC_STATE] = "SELECT outcome_event, state FROM long_executions WHERE id = ?",
    /* total_tokens_used stops at the largest number rather than fail the fold. */
    [SQ_SESSION_USED] =
        "UPDATE edge_mcp_sessions SET tool_execution_count = tool_execution_count + ?3, "
        "total_tokens_used = min(total_tokens_used, 9223372036854775807 - ?6) + ?6, " SLIDE(
            "?4", "?5") "WHERE id = ?1 AND tenant_id = ?2",
    /* Wakes sessions that were used in the slice, at ?1 or later. */
    [SQ_SESSIONS_WAKE] =
        "UPDATE edge_mcp_sessions INDEXED BY idx_edge_sessions_used SET status = 'active' "
        "WHERE " LIVE " AND status = 'idle' AND last_activity_at >= ?1 "
        "AND " NOT_PAST("last_activity_at"),
    [SQ_SESSION_EXECUTIONS_ADD] = "INSERT INTO session_executions (session, first, ids) VALUES "
                                  "(?,?,?) ON CONFLICT DO NOTHING",
    [SQ_SESSION_EXECUTIONS] = "SELECT first, ids FROM session_executions WHERE session = ?1 "
                              "AND first < ?2 ORDER BY first DESC",
    [SQ_SESSION_EXECUTIONS_DELETE] = "DELETE FROM session_executions WHERE session = ?1 "
                                     "AND first = ?2",
    [SQ_LONG_OUTCOME] = "SELECT outcome_event FROM long_executions WHERE id = ?",
    [SQ_TOOL_ADD] = "INSERT INTO tool_configurations (id, tenant_id, server, tool_name) "
                    "VALUES (?,?,?,?) ON CONFLICT DO NOTHING",
    [SQ_TOOL_KNOWN] = "SELECT 1 FROM tool_configurations WHERE id = ?2 AND tenant_id = ?1",
    [SQ_OPEN_ALL] = "SELECT id FROM long_executions WHERE state = 0",
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
    [SQ_UNDELIVERED_REAP] = "DELETE FROM undelivered WHERE id IN (SELECT id FROM undelivered "
                            "WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",

    [SQ_TOOL_SEEN] =
        "INSERT INTO tool_definitions (server, name, digest, definition, approved, "
        "approved_definition, first_seen_at, changed_at, gone_at, approved_at) VALUES (?1, ?2, ?3, "
        "?4, ?5, iif(?5 IS NULL, NULL, ?4), ?6, ?7, ?8, ?9) ON CONFLICT (server, name) DO UPDATE "
        "SET changed_at = iif(digest = excluded.digest, changed_at, excluded.changed_at), "
        "definition = iif(digest = excluded.digest, coalesce(excluded.definition, definition), "
        "excluded.definition), digest = excluded.digest, gone_at = excluded.gone_at",
    [SQ_TOOL_APPROVE] =
        "UPDATE tool_definitions SET approved = digest, approved_definition = definition, "
        "approved_at = ?4 WHERE server = ?1 AND name = ?2 AND digest = ?3",
    [SQ_TOOL_IS] = "SELECT 1 FROM tool_definitions WHERE server = ?1 AND name = ?2",

    [SQ_SERVER_TELL] =
        "INSERT INTO server_health (name, calls, failures, last_ok_at, last_failed_at, last_error) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name) DO UPDATE SET "
        "calls = calls + excluded.calls, failures = failures + excluded.failures, "
        "last_error = iif(excluded.last_failed_at > last_failed_at, excluded.last_error, "
        "last_error), last_ok_at = max(last_ok_at, excluded.last_ok_at), "
        "last_failed_at = max(last_failed_at, excluded.last_failed_at)",

    [SQ_COUNTS] =
        "SELECT (SELECT coalesce(sum(live), 0) FROM session_sums) - (SELECT count(*) FROM "
        "edge_mcp_sessions INDEXED BY idx_edge_sessions_active WHERE " LIVE
        " AND " PAST("?1") "), "
                           "(SELECT coalesce(sum(sessions), 0) FROM session_sums), "
                           "(SELECT count(*) FROM transport_sessions WHERE ended_at IS NULL), "
                           "(SELECT coalesce(sum(events), 0) FROM fold_state), "
                           "(SELECT count(*) FROM long_executions WHERE state = 0)",
};
