-- SPDX-License-Identifier: Apache-2.0
-- Ended sessions are deleted after a time.  A context document goes with the last session that has it.
CREATE INDEX IF NOT EXISTS idx_edge_sessions_over ON mcp.edge_mcp_sessions (terminated_at)
    WHERE status IN ('expired', 'terminated');
-- Runs as its owner, like mcp.hf_sum_sessions().
CREATE OR REPLACE FUNCTION mcp.hf_drop_contexts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM mcp.contexts c WHERE c.id IN (SELECT context_id FROM old_sessions)
       AND NOT EXISTS (SELECT FROM mcp.edge_mcp_sessions e WHERE e.context_id = c.id);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER edge_sessions_context_gone AFTER DELETE ON mcp.edge_mcp_sessions
    REFERENCING OLD TABLE AS old_sessions FOR EACH STATEMENT EXECUTE FUNCTION mcp.hf_drop_contexts();
