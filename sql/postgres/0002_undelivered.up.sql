-- SPDX-License-Identifier: Apache-2.0
-- Results whose reply did not reach its client, sealed, kept for a while and handed out once.  What
-- the sealed bytes are bound to (tenant, owner, session, digest) stands beside them in clear.

CREATE TABLE IF NOT EXISTS mcp.undelivered (
    id         bigint PRIMARY KEY,
    tenant_id  text NOT NULL,
    owner      text NOT NULL,
    session_id uuid NOT NULL,
    -- Of what was asked: method, server, tool and arguments.
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    -- The intent's event; 0 when its server is not audited.
    execution  bigint NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    sealed     bytea NOT NULL
);
ALTER TABLE mcp.undelivered ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE INDEX IF NOT EXISTS idx_undelivered_expires ON mcp.undelivered (expires_at);

CREATE OR REPLACE FUNCTION mcp.hf_undelivered_put(p mcp.undelivered)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF mcp.hf_owns(p.session_id, p.tenant_id, p.owner) THEN
        INSERT INTO mcp.undelivered SELECT p.* ON CONFLICT DO NOTHING;
        RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
    END IF;
    RETURN CASE WHEN EXISTS (SELECT FROM mcp.undelivered WHERE id = p.id) THEN 1 ELSE 3 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_undelivered_take(p_id bigint, p_tenant text, p_owner text,
                                                   p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mcp.undelivered
     WHERE id = p_id AND tenant_id = p_tenant AND owner = p_owner AND expires_at > p_now;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;
