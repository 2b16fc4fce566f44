-- SPDX-License-Identifier: Apache-2.0
-- What a client told its session in ?config= or mcp-config, sealed like credentials.
ALTER TABLE mcp.edge_mcp_sessions ADD COLUMN IF NOT EXISTS profile_context_encrypted bytea;

-- What a change of keys has to go through.
DROP INDEX IF EXISTS mcp.idx_edge_sessions_sealed;
CREATE INDEX idx_edge_sessions_sealed ON mcp.edge_mcp_sessions (id)
    WHERE passthrough_auth_encrypted IS NOT NULL OR profile_context_encrypted IS NOT NULL;

-- The same secrets under another key, each where there is one; the version stays.
DROP FUNCTION IF EXISTS mcp.hf_session_reseal(uuid, text, bytea, bigint);
CREATE OR REPLACE FUNCTION mcp.hf_session_reseal(p_id uuid, p_tenant text, p_auth bytea, p_context bytea,
                                                 p_version bigint)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    s mcp.edge_mcp_sessions;
BEGIN
    SELECT * INTO s FROM mcp.edge_mcp_sessions WHERE id = p_id AND tenant_id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND OR (s.passthrough_auth_encrypted IS NULL AND s.profile_context_encrypted IS NULL) THEN
        RETURN 3;
    ELSIF s.version <> p_version THEN
        RETURN 5;
    END IF;
    UPDATE mcp.edge_mcp_sessions
       SET passthrough_auth_encrypted = coalesce(p_auth, passthrough_auth_encrypted),
           profile_context_encrypted = coalesce(p_context, profile_context_encrypted)
     WHERE id = p_id;
    RETURN 0;
END $$;
