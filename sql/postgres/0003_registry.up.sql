-- SPDX-License-Identifier: Apache-2.0
-- The registry: who may call (users, keys), what sessions share (contexts), answers that may be asked
-- for again, and the verbs on all of these.

-- Names are unique among a tenant's own users; whom an issuer vouches for is named by the issuer.
ALTER TABLE mcp.users ADD COLUMN IF NOT EXISTS issuer text;
CREATE UNIQUE INDEX IF NOT EXISTS idx_users_name ON mcp.users (tenant_id, name) WHERE issuer IS NULL;

-- The key itself is never kept: its public part is the id, the rest is known by the hash of the whole.
CREATE TABLE IF NOT EXISTS mcp.api_keys (
    id           text COLLATE "C" PRIMARY KEY,
    tenant_id    text NOT NULL REFERENCES mcp.tenants (id),
    user_id      uuid REFERENCES mcp.users (id),
    name         text,
    role         text NOT NULL CHECK (role IN ('admin', 'member', 'auditor', 'service')),
    hash         bytea NOT NULL CHECK (length(hash) = 32),
    scopes       text,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);
CREATE INDEX IF NOT EXISTS idx_api_keys_tenant ON mcp.api_keys (tenant_id, id);

CREATE TABLE IF NOT EXISTS mcp.idempotency (
    tenant_id   text NOT NULL,
    owner       text NOT NULL,
    key         bytea NOT NULL,
    request_sha bytea NOT NULL CHECK (length(request_sha) = 32),
    status      integer NOT NULL,
    headers     bytea,
    body        bytea,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner, key)
);
CREATE INDEX IF NOT EXISTS idx_idempotency_expires ON mcp.idempotency (expires_at);

-- What a list of live sessions shows, newest first.
CREATE INDEX IF NOT EXISTS idx_edge_sessions_live ON mcp.edge_mcp_sessions (tenant_id, id)
    WHERE status IN ('active', 'idle');
CREATE INDEX IF NOT EXISTS idx_edge_sessions_live_owner ON mcp.edge_mcp_sessions (tenant_id, owner, id)
    WHERE status IN ('active', 'idle');

-- Whose a context is: of those whose sessions have it.
CREATE INDEX IF NOT EXISTS idx_edge_sessions_context ON mcp.edge_mcp_sessions (context_id)
    WHERE context_id IS NOT NULL;

-- The live session that a verb names, locked: 0, 3 when there is none, 4 when it has ended.
CREATE OR REPLACE FUNCTION mcp.hf_live(p_id uuid, p_tenant text, p_owner text, p_wide boolean,
                                       p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    s mcp.edge_mcp_sessions;
BEGIN
    SELECT * INTO s FROM mcp.edge_mcp_sessions
     WHERE id = p_id AND tenant_id = p_tenant AND (p_wide OR owner = p_owner) FOR NO KEY UPDATE;
    RETURN CASE WHEN NOT FOUND THEN 3
                WHEN s.status NOT IN ('active', 'idle') OR s.expires_at <= p_now THEN 4
                ELSE 0 END;
END $$;

-- Where use at p_at moves a sliding end: along, but not past the longest life.  STABLE, as adding an
-- interval is: else it would be parsed at every call instead of becoming part of the statement.
CREATE OR REPLACE FUNCTION mcp.hf_slid(s mcp.edge_mcp_sessions, p_at timestamptz, p_life_ms bigint)
RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_at > s.last_activity_at AND p_at < s.expires_at AND s.ttl_ms = 0
                     AND s.status IN ('active', 'idle')
                THEN least(s.expires_at + (p_at - s.last_activity_at),
                           greatest(s.expires_at, s.created_at + p_life_ms * interval '1 millisecond'))
                ELSE s.expires_at END
$$;

CREATE OR REPLACE FUNCTION mcp.hf_session_use(p_id uuid, p_tenant text, p_owner text, p_wide boolean,
                                              p_at timestamptz, p_now timestamptz, p_life_ms bigint)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    verdict integer := mcp.hf_live(p_id, p_tenant, p_owner, p_wide, p_now);
BEGIN
    IF verdict = 0 THEN
        UPDATE mcp.edge_mcp_sessions s
           SET expires_at = mcp.hf_slid(s, p_at, p_life_ms), status = 'active',
               last_activity_at = greatest(last_activity_at, p_at), version = version + 1
         WHERE id = p_id;
    END IF;
    RETURN verdict;
END $$;

-- p_fields: enum session_field of store/store.h.
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
           version = version + 1
     WHERE id = p_id AND (p.version = 0 OR version = p.version);
    RETURN CASE WHEN FOUND THEN 0 ELSE 5 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_session_refresh(p_id uuid, p_tenant text, p_owner text, p_wide boolean,
                                                  p_expires timestamptz, p_ttl_ms bigint,
                                                  p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    verdict integer := mcp.hf_live(p_id, p_tenant, p_owner, p_wide, p_now);
BEGIN
    IF verdict = 0 THEN
        UPDATE mcp.edge_mcp_sessions
           SET expires_at = p_expires, ttl_ms = p_ttl_ms, version = version + 1
         WHERE id = p_id;
    END IF;
    RETURN verdict;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_context_put(p_session uuid, p_tenant text, p_owner text, p_wide boolean,
                                              p_id uuid, p_document text, p_expected bigint,
                                              p_created timestamptz, p_updated timestamptz,
                                              p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    verdict integer := mcp.hf_live(p_session, p_tenant, p_owner, p_wide, p_now);
    had uuid;
    c mcp.contexts;
BEGIN
    IF verdict <> 0 THEN
        RETURN verdict;
    END IF;
    SELECT context_id INTO had FROM mcp.edge_mcp_sessions WHERE id = p_session;
    SELECT * INTO c FROM mcp.contexts WHERE id = coalesce(had, p_id) FOR UPDATE;
    IF c.tenant_id <> p_tenant THEN
        RETURN 1;
    ELSIF p_expected >= 0 AND p_expected <> coalesce(c.version, 0) THEN
        RETURN 5;
    END IF;
    INSERT INTO mcp.contexts AS x (id, tenant_id, content, document, version, created_at, updated_at)
    VALUES (coalesce(had, p_id), p_tenant, mcp.hf_jsonb(p_document), p_document, 1, p_created, p_updated)
    ON CONFLICT (id) DO UPDATE
       SET content = excluded.content, document = excluded.document, version = x.version + 1,
           updated_at = excluded.updated_at
     WHERE x.tenant_id = p_tenant AND (p_expected < 0 OR x.version = p_expected);
    IF NOT FOUND THEN
        RETURN 5;
    END IF;
    IF had IS NULL THEN
        UPDATE mcp.edge_mcp_sessions SET context_id = p_id, version = version + 1 WHERE id = p_session;
    END IF;
    RETURN 0;
END $$;

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

CREATE OR REPLACE FUNCTION mcp.hf_key_create(p mcp.api_keys, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM mcp.api_keys WHERE id = p.id) THEN
        RETURN 1;
    ELSIF p.user_id IS NOT NULL
          AND NOT EXISTS (SELECT FROM mcp.users WHERE id = p.user_id AND tenant_id = p.tenant_id) THEN
        RETURN 3;
    END IF;
    PERFORM mcp.hf_tenant_ensure(p.tenant_id, p_now);
    INSERT INTO mcp.api_keys SELECT p.* ON CONFLICT DO NOTHING;
    RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_key_revoke(p_id text, p_tenant text, p_at timestamptz, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.api_keys SET revoked_at = p_at
     WHERE id = p_id AND tenant_id = p_tenant AND revoked_at IS NULL;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (1, p_tenant, p_id, p_now);
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_key_used(p_id text, p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.api_keys SET last_used_at = greatest(last_used_at, p_at) WHERE id = p_id;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_idempotency_put(p mcp.idempotency, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.idempotency AS x SELECT p.*
    ON CONFLICT (tenant_id, owner, key) DO UPDATE
       SET request_sha = excluded.request_sha, status = excluded.status, headers = excluded.headers,
           body = excluded.body, created_at = excluded.created_at, expires_at = excluded.expires_at
     WHERE x.expires_at <= p_now;
    RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
END $$;

-- Takes or renews the lease of work that one does for all; false while another holds it.
CREATE OR REPLACE FUNCTION mcp.hf_lease(p_name text, p_writer bigint, p_until timestamptz, p_now timestamptz)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.leases AS l (name, writer, lease_until) VALUES (p_name, p_writer, p_until)
    ON CONFLICT (name) DO UPDATE SET writer = excluded.writer, lease_until = excluded.lease_until
     WHERE l.writer = p_writer OR l.lease_until <= p_now
        OR EXISTS (SELECT FROM mcp.writers w WHERE w.number = l.writer AND w.ended_at IS NOT NULL);
    RETURN FOUND;
END $$;
