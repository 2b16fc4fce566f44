-- SPDX-License-Identifier: Apache-2.0
-- Back to before users could sign in: everybody is signed out, passwords stay.

DROP FUNCTION IF EXISTS mcp.hf_login_rotate(uuid, bytea, bytea, timestamptz, text, timestamptz, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_login_revoke(uuid, text, uuid, timestamptz, text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_login_create(mcp.user_sessions, text, bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_login_failed(uuid, text, bigint, bigint, bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_user_end(uuid, text, timestamptz, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_user_password(uuid, text, text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_logins_revoke(text, uuid, timestamptz, text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_user_create(uuid, text, text, text, text, timestamptz, timestamptz);
DROP TABLE IF EXISTS mcp.user_sessions;
ALTER TABLE mcp.users DROP COLUMN IF EXISTS locked_until;
ALTER TABLE mcp.users DROP COLUMN IF EXISTS failed_logins;

CREATE OR REPLACE FUNCTION mcp.hf_user_ensure(p_id uuid, p_tenant text, p_name text, p_role text,
                                              p_issuer text, p_created timestamptz, p_ended timestamptz,
                                              p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mcp.hf_tenant_ensure(p_tenant, p_now);
    UPDATE mcp.users SET role = p_role WHERE id = p_id AND tenant_id = p_tenant AND role <> p_role;
    IF FOUND OR EXISTS (SELECT FROM mcp.users WHERE id = p_id AND tenant_id = p_tenant) THEN
        RETURN 0;
    END IF;
    INSERT INTO mcp.users (id, tenant_id, name, role, issuer, created_at, ended_at)
    VALUES (p_id, p_tenant, p_name, p_role, p_issuer, p_created, p_ended) ON CONFLICT DO NOTHING;
    IF FOUND OR EXISTS (SELECT FROM mcp.users WHERE id = p_id AND tenant_id = p_tenant) THEN
        RETURN 0;
    END IF;
    RETURN 1;
END $$;
