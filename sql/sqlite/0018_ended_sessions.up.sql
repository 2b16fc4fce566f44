-- SPDX-License-Identifier: Apache-2.0
-- Ended sessions are deleted after a time.  A context document goes with the last session that has it.
CREATE INDEX idx_edge_sessions_over ON edge_mcp_sessions (terminated_at)
    WHERE status IN ('expired', 'terminated');
CREATE TRIGGER edge_sessions_context_gone AFTER DELETE ON edge_mcp_sessions WHEN old.context_id IS NOT NULL
BEGIN
    DELETE FROM contexts WHERE id = old.context_id
       AND NOT EXISTS (SELECT 1 FROM edge_mcp_sessions WHERE context_id = old.context_id);
END;
