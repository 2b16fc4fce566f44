-- SPDX-License-Identifier: Apache-2.0
-- Back to 0014.  What templates and administrators laid down is forgotten, and where sessions came
-- from.

CREATE OR REPLACE FUNCTION mcp.hf_session_patch(p_id uuid, p_tenant text, p_owner text, p_wide boolean,
                                                p mcp.edge_mcp_sessions, p_fields integer,
                                                p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    verdict integer := mcp.hf_live(p_id, p_tenant, p_owner, p_wide, p_now);
BEGIN
    IF verdict <> 0 THEN
        RETURN verdict;
    END IF;
    UPDATE mcp.edge_mcp_sessions
       SET client_name = CASE WHEN p_fields & 1 <> 0 THEN p.client_name ELSE client_name END,
           client_type = CASE WHEN p_fields & 2 <> 0 THEN p.client_type ELSE client_type END,
           client_version = CASE WHEN p_fields & 4 <> 0 THEN p.client_version ELSE client_version END,
           connection_json = CASE WHEN p_fields & 8 <> 0 THEN p.connection_json ELSE connection_json END,
           connection_metadata = CASE WHEN p_fields & 8 <> 0 THEN mcp.hf_jsonb(p.connection_json)
                                      ELSE connection_metadata END,
           core_session_id = CASE WHEN p_fields & 16 <> 0 THEN p.core_session_id ELSE core_session_id END,
           context_id = CASE WHEN p_fields & 32 <> 0 THEN p.context_id ELSE context_id END,
           initialized = CASE WHEN p_fields & 64 <> 0 THEN p.initialized ELSE initialized END,
           passthrough_auth_encrypted = CASE WHEN p_fields & 128 <> 0 THEN p.passthrough_auth_encrypted
                                             ELSE passthrough_auth_encrypted END,
           toolsets = CASE WHEN p_fields & 256 <> 0 THEN p.toolsets ELSE toolsets END,
           version = version + 1
     WHERE id = p_id AND (p.version = 0 OR version = p.version);
    RETURN CASE WHEN FOUND THEN 0 ELSE 5 END;
END $$;

ALTER TABLE mcp.edge_mcp_sessions DROP COLUMN IF EXISTS lineage;
ALTER TABLE mcp.edge_mcp_sessions DROP COLUMN IF EXISTS setup;
