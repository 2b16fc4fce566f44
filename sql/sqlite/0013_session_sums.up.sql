-- SPDX-License-Identifier: Apache-2.0
-- Sessions added up by tenant, owner and the minute they were last used in, so that totals are read without reading
-- sessions.  The triggers below write these rows, and nothing else does.
-- live: active and idle, whether or not past their end.  lived_ms: from creation to end or last use.
-- Tokens in two halves of 32 bits: one session may hold as many as an integer can, so the sum of several would not fit.
CREATE TABLE session_sums (
    tenant_id   TEXT NOT NULL,
    minute      INTEGER NOT NULL,
    owner       TEXT NOT NULL,
    sessions    INTEGER NOT NULL,
    live        INTEGER NOT NULL,
    executions  INTEGER NOT NULL,
    tokens_high INTEGER NOT NULL,
    tokens_low  INTEGER NOT NULL,
    lived_ms    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, minute, owner)
) STRICT, WITHOUT ROWID;

INSERT INTO session_sums
SELECT tenant_id, max(created_at, last_activity_at) / 60000, owner, count(*), sum(status IN ('active', 'idle')),
       sum(tool_execution_count), sum(total_tokens_used >> 32), sum(total_tokens_used & 4294967295),
       sum(coalesce(terminated_at, last_activity_at) - created_at)
  FROM edge_mcp_sessions GROUP BY 1, 2, 3;

CREATE TRIGGER edge_sessions_sums_insert AFTER INSERT ON edge_mcp_sessions
BEGIN
    INSERT INTO session_sums VALUES (new.tenant_id, max(new.created_at, new.last_activity_at) / 60000, new.owner, 1,
        new.status IN ('active', 'idle'), new.tool_execution_count, new.total_tokens_used >> 32,
        new.total_tokens_used & 4294967295, coalesce(new.terminated_at, new.last_activity_at) - new.created_at)
    ON CONFLICT (tenant_id, minute, owner) DO UPDATE
       SET sessions = sessions + 1, live = live + excluded.live, executions = executions + excluded.executions,
           tokens_high = tokens_high + excluded.tokens_high, tokens_low = tokens_low + excluded.tokens_low,
           lived_ms = lived_ms + excluded.lived_ms;
END;

CREATE TRIGGER edge_sessions_sums_delete AFTER DELETE ON edge_mcp_sessions
BEGIN
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

-- Within one row: most uses, of which several fall into one minute, and most ends.
CREATE TRIGGER edge_sessions_sums_change
AFTER UPDATE OF status, created_at, last_activity_at, terminated_at, tool_execution_count, total_tokens_used
ON edge_mcp_sessions
WHEN max(old.created_at, old.last_activity_at) / 60000 = max(new.created_at, new.last_activity_at) / 60000
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

-- From one row to another.  Neither tenant nor owner of a session ever changes.
CREATE TRIGGER edge_sessions_sums_move AFTER UPDATE OF created_at, last_activity_at ON edge_mcp_sessions
WHEN max(old.created_at, old.last_activity_at) / 60000 <> max(new.created_at, new.last_activity_at) / 60000
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

-- What was counted only because its handle came back, by last use: after 30 minutes without use it no longer counts.
CREATE INDEX idx_edge_sessions_promoted ON edge_mcp_sessions (tenant_id, last_activity_at)
    WHERE counted = 1 AND status IN ('active', 'idle') AND origin NOT IN ('rest', 'tool', 'keyed');
