-- SPDX-License-Identifier: Apache-2.0
-- Secrets that values of the configuration name as ${secret:NAME}.  The value is sealed by a key of the tenant
-- `default`.
CREATE TABLE IF NOT EXISTS mcp.secrets (
    name       text COLLATE "C" PRIMARY KEY,
    sealed     bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- The lock makes the count exact: two new secrets at once cannot both be the last that is allowed.  Every node
-- reads its secrets again after a change of kind 7.
CREATE OR REPLACE FUNCTION mcp.hf_secret_put(p mcp.secrets, p_most bigint, p_now timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE mcp.secrets IN SHARE ROW EXCLUSIVE MODE;
    UPDATE mcp.secrets SET sealed = p.sealed, updated_at = p.updated_at WHERE name = p.name;
    IF NOT FOUND THEN
        IF p_most >= 0 AND (SELECT count(*) FROM mcp.secrets) >= p_most THEN
            RETURN 2;
        END IF;
        INSERT INTO mcp.secrets SELECT p.*;
    END IF;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (7, 'default', p.name, p_now);
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_secret_remove(p_name text, p_now timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mcp.secrets WHERE name = p_name;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (7, 'default', p_name, p_now);
    RETURN 0;
END $$;
