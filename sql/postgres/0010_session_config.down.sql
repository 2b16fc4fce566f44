-- SPDX-License-Identifier: Apache-2.0
-- Back to 0009.  What clients told their sessions is forgotten; they have to open new ones.
DROP FUNCTION IF EXISTS mcp.hf_session_reseal(uuid, text, bytea, bytea, bigint);
DROP INDEX IF EXISTS mcp.idx_edge_sessions_sealed;
ALTER TABLE mcp.edge_mcp_sessions DROP COLUMN IF EXISTS profile_context_encrypted;
CREATE INDEX idx_edge_sessions_sealed ON mcp.edge_mcp_sessions (id)
    WHERE passthrough_auth_encrypted IS NOT NULL;

CREATE OR REPLACE FUNCTION mcp.hf_session_reseal(p_id uuid, p_tenant text, p_sealed bytea, p_version bigint)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    s mcp.edge_mcp_sessions;
BEGIN
    SELECT * INTO s FROM mcp.edge_mcp_sessions WHERE id = p_id AND tenant_id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND OR s.passthrough_auth_encrypted IS NULL THEN
        RETURN 3;
    ELSIF s.version <> p_version THEN
        RETURN 5;
    END IF;
    UPDATE mcp.edge_mcp_sessions SET passthrough_auth_encrypted = p_sealed WHERE id = p_id;
    RETURN 0;
END $$;
