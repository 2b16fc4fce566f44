-- SPDX-License-Identifier: Apache-2.0
-- The keys that seal what is stored for other services: one or more per tenant, the newest seals.  Each is
-- itself sealed by a master key that is not in the database; master_id says by which.
CREATE TABLE IF NOT EXISTS mcp.tenant_keys (
    id         text COLLATE "C" PRIMARY KEY,
    tenant_id  text NOT NULL REFERENCES mcp.tenants (id),
    master_id  text NOT NULL,
    wrapped    bytea NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_tenant_keys_tenant ON mcp.tenant_keys (tenant_id, id);

-- What a change of keys has to go through.
CREATE INDEX IF NOT EXISTS idx_edge_sessions_sealed ON mcp.edge_mcp_sessions (id)
    WHERE passthrough_auth_encrypted IS NOT NULL;

CREATE OR REPLACE FUNCTION mcp.hf_tenant_key_put(p mcp.tenant_keys, p_now timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mcp.hf_tenant_ensure(p.tenant_id, p_now);
    INSERT INTO mcp.tenant_keys SELECT p.* ON CONFLICT DO NOTHING;
    RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_tenant_key_wrap(p_id text, p_tenant text, p_master text, p_wrapped bytea)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.tenant_keys SET master_id = p_master, wrapped = p_wrapped
     WHERE id = p_id AND tenant_id = p_tenant;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

-- The same secret under another key: nothing that a client sees has changed, so the version stays.
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
