-- SPDX-License-Identifier: Apache-2.0
-- Shares let other callers of the tenant go on in a session.  Only the digest of a code is stored.
-- expires_at: end of the code until it is used, then end of the access.
CREATE TABLE IF NOT EXISTS mcp.session_shares (
    id            uuid PRIMARY KEY,
    tenant_id     text COLLATE "C" NOT NULL,
    session_id    uuid NOT NULL,
    made_by       text COLLATE "C" NOT NULL,
    grantee       text COLLATE "C",
    may           integer NOT NULL CHECK (may BETWEEN 0 AND 2),
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz,
    access_ms     bigint NOT NULL,
    joined_at     timestamptz,
    joined_client text,
    ended_at      timestamptz,
    end_reason    text,
    code_hash     bytea CHECK (length(code_hash) = 32)
);
CREATE UNIQUE INDEX IF NOT EXISTS idx_session_shares_code ON mcp.session_shares (code_hash)
    WHERE code_hash IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_session_shares_session ON mcp.session_shares (session_id, id);

-- Carriers (transports, _meta values, client ids …) of an owner that name a session by a share.
CREATE TABLE IF NOT EXISTS mcp.session_bindings (
    tenant_id   text COLLATE "C" NOT NULL,
    owner       text COLLATE "C" NOT NULL,
    carrier     text COLLATE "C" NOT NULL,
    carrier_key bytea NOT NULL,
    session_id  uuid NOT NULL,
    share_id    uuid NOT NULL REFERENCES mcp.session_shares (id) ON DELETE CASCADE,
    bound_at    timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner, carrier, carrier_key)
);
CREATE INDEX IF NOT EXISTS idx_session_bindings_share ON mcp.session_bindings (share_id);
-- A hand-over finds the transports of a session.
CREATE INDEX IF NOT EXISTS idx_transport_sessions_session ON mcp.transport_sessions (session_id)
    WHERE session_id IS NOT NULL;

-- Verdicts: 0 OK, 1 DUPLICATE, 2 LIMIT, 3 MISSING, 4 NOT_ACTIVE, 5 STALE.

-- Locks the session, so that the limit of shares is exact.
CREATE OR REPLACE FUNCTION mcp.hf_share_create(p mcp.session_shares, p_wide boolean, p_most bigint,
                                               p_kept bigint, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    verdict integer := mcp.hf_live(p.session_id, p.tenant_id, p.made_by, p_wide, p_now);
BEGIN
    IF verdict <> 0 THEN
        RETURN verdict;
    END IF;
    IF (SELECT count(*) FROM mcp.session_shares WHERE session_id = p.session_id AND ended_at IS NULL
           AND (expires_at IS NULL OR expires_at > p_now)) >= p_most THEN
        RETURN 2;
    END IF;
    INSERT INTO mcp.session_shares SELECT p.* ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN 1;
    END IF;
    DELETE FROM mcp.session_shares
     WHERE session_id = p.session_id AND (ended_at IS NOT NULL OR expires_at <= p_now)
       AND id <= (SELECT id FROM mcp.session_shares
                   WHERE session_id = p.session_id AND (ended_at IS NOT NULL OR expires_at <= p_now)
                   ORDER BY id DESC OFFSET p_kept LIMIT 1);
    RETURN 0;
END $$;

-- The other nodes close the streams of those who lost the session (a change of kind 9).
CREATE OR REPLACE FUNCTION mcp.hf_share_end(p_id uuid, p_session uuid, p_tenant text, p_owner text,
                                            p_wide boolean, p_at timestamptz, p_reason text)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF NOT mcp.hf_reaches(p_session, p_tenant, p_owner, p_wide) THEN
        RETURN 3;
    END IF;
    UPDATE mcp.session_shares SET ended_at = p_at, end_reason = p_reason
     WHERE id = p_id AND session_id = p_session AND ended_at IS NULL;
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (9, p_tenant, p_session::text, p_at);
    RETURN 0;
END $$;

-- The new owner gets the session without the credentials and context values of the former owner, whose
-- carriers are bound to this share: it is not for them, so their next call is refused and they are told.
CREATE OR REPLACE FUNCTION mcp.hf_hand_over(p_share uuid, p_session uuid, p_owner text, p_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.session_bindings (tenant_id, owner, carrier, carrier_key, session_id, share_id, bound_at)
    SELECT tenant_id, owner, 'transport', convert_to(encode(id_hash, 'hex'), 'UTF8'), p_session, p_share, p_at
      FROM mcp.transport_sessions WHERE session_id = p_session AND ended_at IS NULL
    ON CONFLICT DO NOTHING;
    INSERT INTO mcp.session_bindings (tenant_id, owner, carrier, carrier_key, session_id, share_id, bound_at)
    SELECT tenant_id, owner, carrier, carrier_key, p_session, p_share, p_at
      FROM mcp.edge_mcp_sessions
     WHERE id = p_session AND carrier IS NOT NULL AND carrier_key IS NOT NULL
    ON CONFLICT DO NOTHING;
    UPDATE mcp.session_shares SET ended_at = p_at, end_reason = 'handed_over'
     WHERE session_id = p_session AND id <> p_share AND ended_at IS NULL;
    DELETE FROM mcp.undelivered WHERE session_id = p_session;
    UPDATE mcp.edge_mcp_sessions
       SET owner = p_owner,
           user_id = CASE WHEN p_owner ~ '^user:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                          THEN substr(p_owner, 6)::uuid END,
           carrier_key = NULL, passthrough_auth_encrypted = NULL, profile_context_encrypted = NULL,
           provisional = false, origin = CASE origin WHEN 'derived' THEN 'transport' ELSE origin END,
           version = version + 1
     WHERE id = p_session;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_share_join(p_id uuid, p_session uuid, p_tenant text, p_owner text,
                                             p_at timestamptz, p_client text, p_carrier text, p_key bytea,
                                             p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    s mcp.session_shares;
    e mcp.edge_mcp_sessions;
    is_bound boolean;
BEGIN
    SELECT * INTO e FROM mcp.edge_mcp_sessions WHERE id = p_session AND tenant_id = p_tenant FOR NO KEY UPDATE;
    SELECT * INTO s FROM mcp.session_shares
     WHERE id = p_id AND tenant_id = p_tenant AND session_id = p_session FOR UPDATE;
    IF NOT FOUND OR (s.code_hash IS NULL AND s.grantee IS DISTINCT FROM p_owner) THEN
        RETURN 3;
    END IF;
    IF s.code_hash IS NOT NULL AND s.grantee IS NOT NULL THEN
        SELECT EXISTS (SELECT FROM mcp.session_bindings
                        WHERE tenant_id = p_tenant AND owner = p_owner AND carrier = p_carrier
                          AND carrier_key = p_key AND share_id = p_id) INTO is_bound;
        IF s.grantee <> p_owner OR NOT is_bound THEN
            RETURN 1;
        END IF;
    END IF;
    IF s.ended_at IS NOT NULL OR s.expires_at <= p_now THEN
        RETURN 5;
    ELSIF e.id IS NULL OR e.status NOT IN ('active', 'idle') OR e.expires_at <= p_now THEN
        RETURN 4;
    END IF;
    UPDATE mcp.session_shares
       SET joined_at = p_at, joined_client = p_client, grantee = p_owner,
           expires_at = CASE WHEN s.grantee IS NOT NULL THEN s.expires_at
                             WHEN s.access_ms > 0 THEN p_at + s.access_ms * interval '1 millisecond' END
     WHERE id = p_id;
    IF p_carrier IS NOT NULL THEN
        INSERT INTO mcp.session_bindings (tenant_id, owner, carrier, carrier_key, session_id, share_id, bound_at)
        VALUES (p_tenant, p_owner, p_carrier, p_key, p_session, p_id, p_at)
        ON CONFLICT (tenant_id, owner, carrier, carrier_key) DO UPDATE
           SET session_id = excluded.session_id, share_id = excluded.share_id, bound_at = excluded.bound_at;
        INSERT INTO mcp.changes (kind, tenant_id, name, made_at)
        VALUES (10, p_tenant, encode(p_key, 'hex') || ' ' || encode(convert_to(p_carrier, 'UTF8'), 'hex') || ' '
                              || p_owner, p_now);
    END IF;
    IF s.may = 2 AND e.owner <> p_owner THEN
        PERFORM mcp.hf_hand_over(p_id, p_session, p_owner, p_at);
        INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (9, p_tenant, p_session::text, p_now);
    END IF;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_binding_drop(p_tenant text, p_owner text, p_carrier text, p_key bytea, p_share uuid)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mcp.session_bindings
     WHERE tenant_id = p_tenant AND owner = p_owner AND carrier = p_carrier AND carrier_key = p_key
       AND share_id = p_share;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;
