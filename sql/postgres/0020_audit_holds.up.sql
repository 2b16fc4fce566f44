-- SPDX-License-Identifier: Apache-2.0
-- Holds exempt a session or a user from every removal.  target: the id of the session's or user's row.
CREATE TABLE IF NOT EXISTS mcp.audit_holds (
    id          uuid PRIMARY KEY,
    tenant_id   text NOT NULL,
    kind        integer NOT NULL CHECK (kind IN (0, 1)),
    target      uuid NOT NULL,
    reason      text,
    made_by     text NOT NULL,
    created_at  timestamptz NOT NULL,
    released_at timestamptz,
    released_by text
);
CREATE UNIQUE INDEX IF NOT EXISTS idx_audit_holds_live ON mcp.audit_holds (tenant_id, kind, target)
    WHERE released_at IS NULL;
CREATE INDEX IF NOT EXISTS idx_audit_holds_tenant ON mcp.audit_holds (tenant_id, id);
CREATE INDEX IF NOT EXISTS idx_api_keys_user ON mcp.api_keys (user_id) WHERE user_id IS NOT NULL;

-- What is held now: 0 a session, by its id; 1 an owner, that is a held user or a key of such a user.
CREATE OR REPLACE VIEW mcp.audit_held (tenant_id, kind, name) AS
SELECT tenant_id, 0, target::text FROM mcp.audit_holds WHERE released_at IS NULL AND kind = 0
UNION ALL
SELECT tenant_id, 1, 'user:' || target FROM mcp.audit_holds WHERE released_at IS NULL AND kind = 1
UNION ALL
SELECT h.tenant_id, 1, 'key:' || k.id COLLATE "default" FROM mcp.audit_holds h JOIN mcp.api_keys k ON k.user_id = h.target
 WHERE h.released_at IS NULL AND h.kind = 1;

-- Verdicts: 0 OK, 1 DUPLICATE, 2 LIMIT, 3 MISSING.
CREATE OR REPLACE FUNCTION mcp.hf_hold_put(p mcp.audit_holds, p_most bigint) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE mcp.audit_holds IN SHARE ROW EXCLUSIVE MODE;
    IF p.kind = 0 THEN
        PERFORM FROM mcp.edge_mcp_sessions WHERE id = p.target AND tenant_id = p.tenant_id FOR KEY SHARE;
    ELSE
        PERFORM FROM mcp.users WHERE id = p.target AND tenant_id = p.tenant_id FOR SHARE;
    END IF;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    IF EXISTS (SELECT FROM mcp.audit_holds WHERE tenant_id = p.tenant_id AND kind = p.kind
                  AND target = p.target AND released_at IS NULL) THEN
        RETURN 1;
    END IF;
    IF (SELECT count(*) FROM mcp.audit_holds WHERE tenant_id = p.tenant_id AND released_at IS NULL) >= p_most THEN
        RETURN 2;
    END IF;
    INSERT INTO mcp.audit_holds SELECT p.*;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_hold_release(p_id uuid, p_tenant text, p_at timestamptz, p_by text, p_kept bigint)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.audit_holds SET released_at = p_at, released_by = p_by
     WHERE id = p_id AND tenant_id = p_tenant AND released_at IS NULL;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    DELETE FROM mcp.audit_holds
     WHERE tenant_id = p_tenant AND released_at IS NOT NULL
       AND id <= (SELECT id FROM mcp.audit_holds WHERE tenant_id = p_tenant AND released_at IS NOT NULL
                   ORDER BY id DESC OFFSET p_kept LIMIT 1);
    RETURN 0;
END $$;
