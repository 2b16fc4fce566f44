-- SPDX-License-Identifier: Apache-2.0
-- Shares let other callers of the tenant go on in a session.  Only the digest of a code is stored.
-- expires_at: end of the code until it is used, then end of the access.
CREATE TABLE session_shares (
    id            TEXT PRIMARY KEY NOT NULL,
    tenant_id     TEXT NOT NULL,
    session_id    TEXT NOT NULL,
    made_by       TEXT NOT NULL,
    grantee       TEXT,
    may           INTEGER NOT NULL CHECK (may BETWEEN 0 AND 2),
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER,
    access_ms     INTEGER NOT NULL,
    joined_at     INTEGER,
    joined_client TEXT,
    ended_at      INTEGER,
    end_reason    TEXT,
    code_hash     BLOB CHECK (length(code_hash) = 32)
) STRICT;
CREATE UNIQUE INDEX idx_session_shares_code ON session_shares (code_hash) WHERE code_hash IS NOT NULL;
CREATE INDEX idx_session_shares_session ON session_shares (session_id, id);

-- Carriers (transports, _meta values, client ids …) of an owner that name a session by a share.
CREATE TABLE session_bindings (
    tenant_id   TEXT NOT NULL,
    owner       TEXT NOT NULL,
    carrier     TEXT NOT NULL,
    carrier_key TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    share_id    TEXT NOT NULL,
    bound_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner, carrier, carrier_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_session_bindings_share ON session_bindings (share_id);
CREATE TRIGGER session_shares_gone AFTER DELETE ON session_shares
BEGIN
    DELETE FROM session_bindings WHERE share_id = old.id;
END;

-- A hand-over finds the transports of a session.
CREATE INDEX idx_transport_sessions_session ON transport_sessions (session_id) WHERE session_id IS NOT NULL;

-- A session may be handed over, so its owner can change: then its sums move from one row to another.
DROP TRIGGER edge_sessions_sums_change;
DROP TRIGGER edge_sessions_sums_move;
CREATE TRIGGER edge_sessions_sums_change
AFTER UPDATE OF status, created_at, last_activity_at, terminated_at, tool_execution_count, total_tokens_used
ON edge_mcp_sessions
WHEN max(old.created_at, old.last_activity_at) / 60000 = max(new.created_at, new.last_activity_at) / 60000
     AND old.owner = new.owner
BEGIN
    UPDATE session_sums
       SET live = live - (old.status IN ('active', 'idle')) + (new.status IN ('active', 'idle')),
           executions = executions - old.tool_execution_count + new.tool_execution_count,
           tokens_high = tokens_high - (old.total_tokens_used >> 32) + (new.total_tokens_used >> 32),
           tokens_low = tokens_low - (old.total_tokens_used & 4294967295) + (new.total_tokens_used & 4294967295),
           lived_ms = lived_ms - (coalesce(old.terminated_at, old.last_activity_at) - old.created_at)
                    + (coalesce(new.terminated_at, new.last_activity_at) - new.created_at)
     WHERE tenant_id = new.tenant_id AND minute = max(new.created_at, new.last_activity_at) / 60000
       AND owner = new.owner;
END;
CREATE TRIGGER edge_sessions_sums_move AFTER UPDATE OF owner, created_at, last_activity_at ON edge_mcp_sessions
WHEN max(old.created_at, old.last_activity_at) / 60000 <> max(new.created_at, new.last_activity_at) / 60000
     OR old.owner <> new.owner
BEGIN
    INSERT INTO session_sums VALUES (new.tenant_id, max(new.created_at, new.last_activity_at) / 60000, new.owner, 1,
        new.status IN ('active', 'idle'), new.tool_execution_count, new.total_tokens_used >> 32,
        new.total_tokens_used & 4294967295, coalesce(new.terminated_at, new.last_activity_at) - new.created_at)
    ON CONFLICT (tenant_id, minute, owner) DO UPDATE
       SET sessions = sessions + 1, live = live + excluded.live, executions = executions + excluded.executions,
           tokens_high = tokens_high + excluded.tokens_high, tokens_low = tokens_low + excluded.tokens_low,
           lived_ms = lived_ms + excluded.lived_ms;
    UPDATE session_sums
       SET sessions = sessions - 1, live = live - (old.status IN ('active', 'idle')),
           executions = executions - old.tool_execution_count,
           tokens_high = tokens_high - (old.total_tokens_used >> 32),
           tokens_low = tokens_low - (old.total_tokens_used & 4294967295),
           lived_ms = lived_ms - (coalesce(old.terminated_at, old.last_activity_at) - old.created_at)
     WHERE tenant_id = old.tenant_id AND minute = max(old.created_at, old.last_activity_at) / 60000
       AND owner = old.owner;
    DELETE FROM session_sums
     WHERE tenant_id = old.tenant_id AND minute = max(old.created_at, old.last_activity_at) / 60000
       AND owner = old.owner AND sessions = 0;
END;
