-- SPDX-License-Identifier: Apache-2.0
-- Back to 0016.  Shares and bindings go.  Sessions that were handed over stay with their new owners.
DROP TRIGGER session_shares_gone;
DROP INDEX idx_transport_sessions_session;
DROP TABLE session_bindings;
DROP TABLE session_shares;
DROP TRIGGER edge_sessions_sums_change;
DROP TRIGGER edge_sessions_sums_move;

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
