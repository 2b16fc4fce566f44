-- SPDX-License-Identifier: Apache-2.0
-- Subtracts events that are removed, or lose their bodies, from the sizes; not those that no sum includes yet.
CREATE OR REPLACE FUNCTION mcp.hf_sizes_subtract(p_tenants text[], p_ids bigint[], p_days bigint[], p_events bigint[],
                                                 p_event_bytes bigint[], p_bodies bigint[], p_body_bytes bigint[])
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mcp.hf_sizes_add(array_agg(t), array_agg(d), array_agg(-e), array_agg(-eb), array_agg(-b), array_agg(-bb),
                             array_agg((d + 1) * 86400000), array_agg(d * 86400000))
       FROM (SELECT t, d, sum(e)::bigint AS e, sum(eb)::bigint AS eb, sum(b)::bigint AS b, sum(bb)::bigint AS bb
               FROM unnest(p_tenants, p_ids, p_days, p_events, p_event_bytes, p_bodies, p_body_bytes)
                    AS u (t, id, d, e, eb, b, bb)
              WHERE NOT EXISTS (SELECT FROM mcp.audit_sizes_todo w
                                 WHERE w.writer = u.id >> 40 AND u.id BETWEEN w.next_id AND w.last_id)
              GROUP BY t, d) s;
    RETURN 0;
END $$;

-- Persons who are erased: what was removed, by whom and when.  names (JSON) and next_id tell what remains to be done; names is
-- NULL once they are removed.
CREATE TABLE IF NOT EXISTS mcp.audit_erasures (
    id         uuid PRIMARY KEY,
    tenant_id  text NOT NULL,
    user_id    uuid NOT NULL,
    made_by    text NOT NULL,
    reason     text,
    names      text,
    next_id    bigint NOT NULL,
    bodies     bigint NOT NULL,
    body_bytes bigint NOT NULL,
    sessions   bigint NOT NULL,
    held       bigint NOT NULL,
    created_at timestamptz NOT NULL,
    moved_at   timestamptz NOT NULL,
    done_at    timestamptz
);
CREATE UNIQUE INDEX IF NOT EXISTS idx_audit_erasures_open ON mcp.audit_erasures (user_id) WHERE done_at IS NULL;
CREATE INDEX IF NOT EXISTS idx_audit_erasures_tenant ON mcp.audit_erasures (tenant_id, id);

CREATE OR REPLACE FUNCTION mcp.hf_owners_of(p_user uuid) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT 'user:' || p_user UNION ALL SELECT 'key:' || id COLLATE "default" FROM mcp.api_keys WHERE user_id = p_user
$$;

-- Verdicts: 0 OK, 1 DUPLICATE, 3 MISSING, 4 NOT_ACTIVE, 5 STALE.  Changes: 1 a key was revoked, 3 a user changed.
CREATE OR REPLACE FUNCTION mcp.hf_erasure_begin(p mcp.audit_erasures, p_now timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE mcp.audit_holds IN SHARE MODE;
    PERFORM FROM mcp.users WHERE id = p.user_id AND tenant_id = p.tenant_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 3;
    ELSIF EXISTS (SELECT FROM mcp.audit_erasures WHERE user_id = p.user_id AND done_at IS NULL) THEN
        RETURN 1;
    ELSIF EXISTS (SELECT FROM mcp.audit_holds WHERE tenant_id = p.tenant_id AND kind = 1 AND target = p.user_id
                     AND released_at IS NULL) THEN
        RETURN 4;
    END IF;
    INSERT INTO mcp.audit_erasures SELECT p.*;
    UPDATE mcp.users SET password = NULL, ended_at = coalesce(ended_at, p_now) WHERE id = p.user_id;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at)
    SELECT 1, tenant_id, id, p_now FROM mcp.api_keys WHERE user_id = p.user_id AND revoked_at IS NULL;
    UPDATE mcp.api_keys SET revoked_at = p_now WHERE user_id = p.user_id AND revoked_at IS NULL;
    DELETE FROM mcp.user_sessions WHERE user_id = p.user_id;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (3, p.tenant_id, p.user_id::text, p_now);
    PERFORM mcp.hf_changes_number();
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_erasure_move(p_id uuid, p_from bigint, p_to bigint, p_bodies bigint, p_bytes bigint,
                                               p_now timestamptz) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.audit_erasures SET next_id = p_to, bodies = bodies + p_bodies, body_bytes = body_bytes + p_bytes,
           moved_at = p_now
     WHERE id = p_id AND next_id = p_from AND done_at IS NULL;
    RETURN CASE WHEN FOUND THEN 0 ELSE 5 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_erasure_rows(p_id uuid, p_tenant text, p_user uuid, p_max bigint, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    gone uuid[];
    owners text[] := ARRAY(SELECT mcp.hf_owners_of(p_user));
BEGIN
    gone := ARRAY(SELECT e.id FROM mcp.edge_mcp_sessions e WHERE e.tenant_id = p_tenant AND e.owner = ANY (owners)
                     AND NOT EXISTS (SELECT FROM mcp.audit_held h WHERE h.tenant_id = e.tenant_id AND h.kind = 0
                                        AND h.name = e.id::text)
                   ORDER BY e.id LIMIT p_max FOR UPDATE OF e);
    UPDATE mcp.session_tool_executions SET error = NULL WHERE session_id = ANY (gone) AND error IS NOT NULL;
    DELETE FROM mcp.edge_mcp_sessions WHERE id = ANY (gone);
    DELETE FROM mcp.transport_sessions WHERE tenant_id = p_tenant AND owner = ANY (owners);
    DELETE FROM mcp.undelivered u WHERE u.tenant_id = p_tenant AND u.owner = ANY (owners)
       AND NOT EXISTS (SELECT FROM mcp.audit_held h WHERE h.tenant_id = p_tenant AND h.kind = 0
                          AND h.name = u.session_id::text);
    DELETE FROM mcp.idempotency WHERE tenant_id = p_tenant AND owner = ANY (owners);
    DELETE FROM mcp.session_bindings WHERE tenant_id = p_tenant AND owner = ANY (owners);
    UPDATE mcp.session_shares SET joined_client = NULL WHERE tenant_id = p_tenant AND grantee = ANY (owners);
    UPDATE mcp.audit_erasures SET sessions = sessions + cardinality(gone), moved_at = p_now WHERE id = p_id;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_erasure_authors(p_author text, p_folder text, p_from uuid, p_upto uuid) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.document_revisions SET author = 'erased' WHERE author = p_author AND document_id IN (
        SELECT id FROM mcp.documents WHERE folder = p_folder AND id >= p_from AND id <= p_upto);
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_erasure_names(p_id uuid, p_tenant text, p_user uuid, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.users SET name = 'erased-' || id WHERE id = p_user AND tenant_id = p_tenant;
    UPDATE mcp.api_keys SET name = NULL WHERE user_id = p_user;
    UPDATE mcp.audit_holds SET reason = NULL WHERE tenant_id = p_tenant AND kind = 1 AND target = p_user;
    UPDATE mcp.audit_erasures SET names = NULL, moved_at = p_now WHERE id = p_id;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_erasure_done(p_id uuid, p_held bigint, p_now timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.audit_erasures SET held = p_held, moved_at = p_now, done_at = p_now WHERE id = p_id AND done_at IS NULL;
    RETURN CASE WHEN FOUND THEN 0 ELSE 5 END;
END $$;
