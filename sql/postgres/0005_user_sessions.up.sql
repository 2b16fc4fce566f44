-- SPDX-License-Identifier: Apache-2.0
-- Users who sign in: what is known of their attempts, and where they are signed in.

ALTER TABLE mcp.users ADD COLUMN IF NOT EXISTS failed_logins bigint NOT NULL DEFAULT 0;
ALTER TABLE mcp.users ADD COLUMN IF NOT EXISTS locked_until timestamptz;

-- One row for each device that is signed in (id = family), known by the hash of its refresh token; and
-- one for each refresh token that it has used up (family: the device's row), so that one which comes
-- again is known for what it is.  device_info is JSON, kept as the text that it is written as.
CREATE TABLE IF NOT EXISTS mcp.user_sessions (
    id                 uuid PRIMARY KEY,
    user_id            uuid NOT NULL REFERENCES mcp.users (id),
    tenant_id          text NOT NULL,
    refresh_token_hash bytea NOT NULL CHECK (length(refresh_token_hash) = 32),
    family             uuid NOT NULL,
    device_info        text,
    ip_address         text,
    created_at         timestamptz NOT NULL,
    expires_at         timestamptz NOT NULL,
    revoked_at         timestamptz,
    revoke_reason      text,
    last_activity      timestamptz NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS idx_user_sessions_hash ON mcp.user_sessions (refresh_token_hash);
CREATE INDEX IF NOT EXISTS idx_user_sessions_user ON mcp.user_sessions (user_id, id) WHERE revoked_at IS NULL;
CREATE INDEX IF NOT EXISTS idx_user_sessions_expires ON mcp.user_sessions (expires_at);

-- Verdicts: 0 OK, 1 DUPLICATE, 3 MISSING, 4 NOT_ACTIVE, 5 STALE.  Changes: 2 a sign-in ended, 3 a
-- user's password or state is another.

-- As before, but for the role of somebody who signs in: that is given by `user create` alone.
CREATE OR REPLACE FUNCTION mcp.hf_user_ensure(p_id uuid, p_tenant text, p_name text, p_role text,
                                              p_issuer text, p_created timestamptz, p_ended timestamptz,
                                              p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mcp.hf_tenant_ensure(p_tenant, p_now);
    UPDATE mcp.users SET role = p_role
     WHERE id = p_id AND tenant_id = p_tenant AND role <> p_role AND password IS NULL;
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

CREATE OR REPLACE FUNCTION mcp.hf_user_create(p_id uuid, p_tenant text, p_name text, p_role text,
                                              p_password text, p_created timestamptz, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mcp.hf_tenant_ensure(p_tenant, p_now);
    INSERT INTO mcp.users AS u (id, tenant_id, name, role, password, created_at)
    VALUES (p_id, p_tenant, p_name, p_role, p_password, p_created)
    ON CONFLICT (id) DO UPDATE SET role = excluded.role, password = excluded.password
       WHERE u.tenant_id = excluded.tenant_id AND u.password IS NULL AND u.ended_at IS NULL
         AND u.issuer IS NULL;
    RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
EXCEPTION WHEN unique_violation THEN
    RETURN 1;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_logins_revoke(p_tenant text, p_user uuid, p_at timestamptz, p_reason text,
                                                p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.user_sessions SET revoked_at = p_at, revoke_reason = p_reason
     WHERE user_id = p_user AND tenant_id = p_tenant AND revoked_at IS NULL;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (3, p_tenant, p_user::text, p_now);
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_user_password(p_id uuid, p_tenant text, p_password text, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.users SET password = p_password, failed_logins = 0, locked_until = NULL
     WHERE id = p_id AND tenant_id = p_tenant AND issuer IS NULL;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    RETURN mcp.hf_logins_revoke(p_tenant, p_id, p_now, 'password', p_now);
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_user_end(p_id uuid, p_tenant text, p_ended timestamptz, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.users SET ended_at = p_ended WHERE id = p_id AND tenant_id = p_tenant;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    RETURN mcp.hf_logins_revoke(p_tenant, p_id, p_now, 'disabled', p_now);
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_login_failed(p_id uuid, p_tenant text, p_free bigint, p_lock_ms bigint,
                                               p_lock_max_ms bigint, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.users SET failed_logins = failed_logins + 1,
           locked_until = CASE WHEN failed_logins + 1 < p_free THEN locked_until
                               ELSE p_now + least(p_lock_ms << least(failed_logins + 1 - p_free, 20)::integer,
                                                  p_lock_max_ms) * interval '1 millisecond' END
     WHERE id = p_id AND tenant_id = p_tenant;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_login_create(p mcp.user_sessions, p_password text, p_max bigint,
                                               p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    u mcp.users;
BEGIN
    SELECT * INTO u FROM mcp.users WHERE id = p.user_id AND tenant_id = p.tenant_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 3;
    ELSIF u.ended_at IS NOT NULL OR u.password IS DISTINCT FROM p_password THEN
        RETURN 4;
    END IF;
    INSERT INTO mcp.user_sessions SELECT p.* ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN 1;
    END IF;
    WITH ended AS (
        UPDATE mcp.user_sessions SET revoked_at = p_now, revoke_reason = 'limit'
         WHERE id IN (SELECT id FROM mcp.user_sessions
                       WHERE user_id = p.user_id AND revoked_at IS NULL AND id <> p.id
                       ORDER BY last_activity DESC, id DESC OFFSET p_max - 1)
        RETURNING id)
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at)
    SELECT 2, p.tenant_id, id::text, p_now FROM ended;
    UPDATE mcp.users SET failed_logins = 0, locked_until = NULL
     WHERE id = p.user_id AND (failed_logins <> 0 OR locked_until IS NOT NULL);
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_login_revoke(p_id uuid, p_tenant text, p_user uuid, p_at timestamptz,
                                               p_reason text, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.user_sessions SET revoked_at = p_at, revoke_reason = p_reason
     WHERE id = p_id AND family = id AND tenant_id = p_tenant AND user_id = coalesce(p_user, user_id)
       AND revoked_at IS NULL AND expires_at > p_now;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (2, p_tenant, p_id::text, p_now);
    RETURN 0;
END $$;

-- A token that was used up while this request was under way (p_arrived) is another's who was faster;
-- one that was used up before is a copy, and ends the family.
CREATE OR REPLACE FUNCTION mcp.hf_login_rotate(p_spent uuid, p_hash bytea, p_next bytea, p_expires timestamptz,
                                               p_ip text, p_arrived timestamptz, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    t mcp.user_sessions;
    f mcp.user_sessions;
BEGIN
    SELECT * INTO t FROM mcp.user_sessions WHERE refresh_token_hash = p_hash;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    SELECT * INTO f FROM mcp.user_sessions WHERE id = t.family FOR UPDATE;
    IF NOT FOUND OR f.revoked_at IS NOT NULL OR f.expires_at <= p_now THEN
        RETURN 3;
    END IF;
    IF f.refresh_token_hash <> p_hash THEN
        SELECT * INTO t FROM mcp.user_sessions WHERE refresh_token_hash = p_hash;
        IF t.revoked_at >= p_arrived THEN
            RETURN 1;
        END IF;
        PERFORM mcp.hf_login_revoke(f.id, f.tenant_id, f.user_id, p_now, 'reuse', p_now);
        RETURN 5;
    END IF;
    IF EXISTS (SELECT FROM mcp.users WHERE id = f.user_id AND ended_at IS NOT NULL) THEN
        RETURN 4;
    END IF;
    UPDATE mcp.user_sessions SET refresh_token_hash = p_next, expires_at = p_expires, last_activity = p_now,
           ip_address = coalesce(p_ip, ip_address)
     WHERE id = f.id;
    INSERT INTO mcp.user_sessions (id, user_id, tenant_id, refresh_token_hash, family, created_at, expires_at,
                                   revoked_at, revoke_reason, last_activity)
    VALUES (p_spent, f.user_id, f.tenant_id, p_hash, f.id, f.last_activity, f.expires_at, p_now, 'rotated', p_now);
    RETURN 0;
END $$;
