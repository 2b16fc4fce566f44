-- SPDX-License-Identifier: Apache-2.0
-- The first schema: the registry's tables, view, function and grants, and what Holdfast keeps beside
-- them.  All of it lives in schema mcp and may be run again.  Names follow the session registry's
-- own tables; columns of ours stand after theirs.  Tenants are named by text.
--
-- Audit outlives what it describes: nothing here deletes events or executions along with a session,
-- a user or a tenant, so there are no foreign keys on them.

DO $$ BEGIN
    -- CREATE SCHEMA asks for a right even where there is nothing to do.
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'mcp') THEN
        CREATE SCHEMA mcp;
    END IF;
END $$;

CREATE TABLE IF NOT EXISTS mcp.schema_migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS mcp.tenants (
    id               text PRIMARY KEY,
    name             text,
    created_at       timestamptz NOT NULL,
    -- Live sessions that count against the limit; kept by the trigger below and by nothing else, so
    -- that the limit is checked without counting rows and, the row being locked, exactly.
    counted_sessions bigint NOT NULL DEFAULT 0
);
INSERT INTO mcp.tenants (id, name, created_at)
VALUES ('default', 'default', 'epoch') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS mcp.users (
    id         uuid PRIMARY KEY,
    tenant_id  text NOT NULL REFERENCES mcp.tenants (id),
    name       text NOT NULL,
    role       text NOT NULL DEFAULT 'member' CHECK (role IN ('admin', 'member', 'auditor', 'service')),
    password   text,
    created_at timestamptz NOT NULL,
    ended_at   timestamptz
);

-- user_id and context_id name things that may live elsewhere: no foreign keys on them.
-- connection_json holds the bytes as they came, connection_metadata the same where it converts.
-- The defaults are for rows that others insert, who know the registry's own columns alone.
CREATE TABLE IF NOT EXISTS mcp.edge_mcp_sessions (
    id                         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    session_id                 text NOT NULL,
    tenant_id                  text NOT NULL REFERENCES mcp.tenants (id),
    user_id                    uuid,
    edge_mcp_id                text NOT NULL,
    client_name                text,
    client_type                text CHECK (client_type IN ('claude-code', 'ide', 'agent', 'cli')),
    client_version             text,
    status                     text NOT NULL DEFAULT 'active'
                               CHECK (status IN ('active', 'idle', 'expired', 'terminated')),
    initialized                boolean NOT NULL DEFAULT false,
    core_session_id            text,
    passthrough_auth_encrypted bytea,
    connection_metadata        jsonb,
    context_id                 uuid,
    last_activity_at           timestamptz NOT NULL DEFAULT now(),
    tool_execution_count       bigint NOT NULL DEFAULT 0,
    total_tokens_used          bigint NOT NULL DEFAULT 0,
    created_at                 timestamptz NOT NULL DEFAULT now(),
    expires_at                 timestamptz,
    terminated_at              timestamptz,
    termination_reason         text,
    owner                      text NOT NULL DEFAULT 'local',
    origin                     text NOT NULL DEFAULT 'rest'
                               CHECK (origin IN ('rest', 'tool', 'transport', 'derived', 'keyed', 'injected')),
    provisional                boolean NOT NULL DEFAULT false,
    counted                    boolean NOT NULL DEFAULT true,
    carrier                    text,
    carrier_key                bytea,
    ttl_ms                     bigint NOT NULL DEFAULT 0,
    version                    bigint NOT NULL DEFAULT 1,
    connection_json            text
);
CREATE UNIQUE INDEX IF NOT EXISTS idx_edge_sessions_handle ON mcp.edge_mcp_sessions (tenant_id, session_id);
CREATE UNIQUE INDEX IF NOT EXISTS idx_edge_sessions_key
    ON mcp.edge_mcp_sessions (tenant_id, owner, carrier, carrier_key)
    WHERE carrier_key IS NOT NULL AND status IN ('active', 'idle');
CREATE INDEX IF NOT EXISTS idx_edge_sessions_tenant ON mcp.edge_mcp_sessions (tenant_id, id);
CREATE INDEX IF NOT EXISTS idx_edge_sessions_owner ON mcp.edge_mcp_sessions (tenant_id, owner, id);
CREATE INDEX IF NOT EXISTS idx_edge_sessions_user ON mcp.edge_mcp_sessions (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_edge_sessions_edge_mcp ON mcp.edge_mcp_sessions (edge_mcp_id);
CREATE INDEX IF NOT EXISTS idx_edge_sessions_status ON mcp.edge_mcp_sessions (status, id);
CREATE INDEX IF NOT EXISTS idx_edge_sessions_active ON mcp.edge_mcp_sessions (expires_at)
    WHERE status IN ('active', 'idle');
CREATE INDEX IF NOT EXISTS idx_edge_sessions_counted ON mcp.edge_mcp_sessions (tenant_id, expires_at)
    WHERE counted AND status IN ('active', 'idle');
CREATE INDEX IF NOT EXISTS idx_edge_sessions_activity ON mcp.edge_mcp_sessions (status, last_activity_at)
    WHERE status IN ('active', 'idle');

CREATE OR REPLACE FUNCTION mcp.hf_count_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was integer := 0;
    is_now integer := 0;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        was := (old.counted AND old.status IN ('active', 'idle'))::integer;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        is_now := (new.counted AND new.status IN ('active', 'idle'))::integer;
    END IF;
    IF was <> is_now THEN
        UPDATE mcp.tenants SET counted_sessions = counted_sessions + is_now - was
         WHERE id = CASE WHEN TG_OP = 'DELETE' THEN old.tenant_id ELSE new.tenant_id END;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER edge_sessions_counted
    AFTER INSERT OR DELETE OR UPDATE OF status, counted ON mcp.edge_mcp_sessions
    FOR EACH ROW EXECUTE FUNCTION mcp.hf_count_sessions();

-- The document of a session, or of several that share it.  document holds the bytes as they came,
-- content the same where it converts.
CREATE TABLE IF NOT EXISTS mcp.contexts (
    id         uuid PRIMARY KEY,
    tenant_id  text NOT NULL REFERENCES mcp.tenants (id),
    content    jsonb,
    document   text NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

-- Every tool that was ever executed in a tenant, entered by the fold.  The id is made from the other
-- three (tool_uuid() in store/rows.h), so it is the same in every database.
CREATE TABLE IF NOT EXISTS mcp.tool_configurations (
    id        uuid PRIMARY KEY,
    tenant_id text NOT NULL,
    server    text NOT NULL,
    tool_name text NOT NULL
);

-- Executions, a projection of events made by the fold: an intent and its outcome, or a record.  The
-- id holds the event id of the first, so both sort alike.  arguments and result are filled where
-- the value converts; the bytes as they came are in events.
-- outcome_events: ids of all outcomes, oldest first; outcome is absent while there is none.
CREATE TABLE IF NOT EXISTS mcp.session_tool_executions (
    id             uuid PRIMARY KEY,
    session_id     uuid,
    tool_name      text NOT NULL,
    tool_id        uuid,
    arguments      jsonb,
    result         jsonb,
    error          text,
    duration_ms    bigint,
    tokens_used    bigint,
    executed_at    timestamptz NOT NULL,
    tenant_id      text NOT NULL,
    server         text,
    outcome        text,
    outcome_event  bigint,
    outcome_events bigint[] NOT NULL DEFAULT '{}'
);
CREATE INDEX IF NOT EXISTS idx_tool_exec_session ON mcp.session_tool_executions (session_id, id);
CREATE INDEX IF NOT EXISTS idx_tool_exec_tool ON mcp.session_tool_executions (tool_id) WHERE tool_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_tool_exec_time ON mcp.session_tool_executions USING brin (executed_at);
CREATE INDEX IF NOT EXISTS idx_tool_exec_open ON mcp.session_tool_executions (id) WHERE outcome IS NULL;

-- The truth: append-only, no index but its key.  A row is a segment: the n events of consecutive ids
-- that were appended together, under the id of the first (store/segment.h).  Each event is a record,
-- the very bytes its seal covers; the stored bodies stand apart and may be deleted.
CREATE TABLE IF NOT EXISTS mcp.events (
    id      bigint PRIMARY KEY,
    n       integer NOT NULL CHECK (n > 0),
    records bytea NOT NULL,
    bodies  bytea
);
-- What is sealed does not compress well enough to pay for trying.
ALTER TABLE mcp.events ALTER COLUMN records SET STORAGE EXTERNAL;

-- How far the events of each writer are folded; its row is locked by whoever folds them.
CREATE TABLE IF NOT EXISTS mcp.fold_marks (
    writer  bigint PRIMARY KEY,
    last_id bigint NOT NULL
);
-- And the head of each chain there.
CREATE TABLE IF NOT EXISTS mcp.fold_state (
    writer  bigint NOT NULL,
    tenant  text NOT NULL,
    seq     bigint NOT NULL,
    last_id bigint NOT NULL,
    mac     bytea NOT NULL,
    events  bigint NOT NULL,
    PRIMARY KEY (writer, tenant)
);

-- Numbers are never used again, so neither are event ids.
CREATE TABLE IF NOT EXISTS mcp.writers (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid        text NOT NULL UNIQUE,
    node        text,
    started_at  timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    ended_at    timestamptz
);

CREATE TABLE IF NOT EXISTS mcp.transport_sessions (
    id_hash           bytea PRIMARY KEY CHECK (length(id_hash) = 32),
    tenant_id         text NOT NULL,
    owner             text NOT NULL,
    endpoint          text NOT NULL,
    protocol_version  text,
    initialize_params bytea,
    session_id        uuid,
    created_at        timestamptz NOT NULL,
    last_used_at      timestamptz NOT NULL,
    ended_at          timestamptz
);
CREATE INDEX IF NOT EXISTS idx_transport_sessions_used ON mcp.transport_sessions (last_used_at)
    WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS idx_transport_sessions_ended ON mcp.transport_sessions (ended_at)
    WHERE ended_at IS NOT NULL;

CREATE TABLE IF NOT EXISTS mcp.upstream_links (
    session_id uuid NOT NULL,
    server     text NOT NULL,
    writer     bigint NOT NULL,
    remote_id  text,
    opened_at  timestamptz NOT NULL,
    ended_at   timestamptz,
    end_reason text,
    PRIMARY KEY (session_id, server)
);

-- What other nodes must know at once.  A row gets its id last in its transaction, under a lock that is
-- held until the commit (hf_changes_number()), so ids follow the order of commits and a reader who
-- goes by them misses none.
CREATE SEQUENCE IF NOT EXISTS mcp.changes_id;
CREATE TABLE IF NOT EXISTS mcp.changes (
    id        bigint UNIQUE,
    kind      integer NOT NULL,
    tenant_id text NOT NULL,
    name      text NOT NULL,
    made_at   timestamptz NOT NULL,
    xact      xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX IF NOT EXISTS idx_changes_new ON mcp.changes (made_at) WHERE id IS NULL;

CREATE OR REPLACE FUNCTION mcp.hf_changes_number() RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM mcp.changes WHERE id IS NULL AND xact = pg_current_xact_id()) THEN
        PERFORM pg_advisory_xact_lock(7525352680829580149);
        UPDATE mcp.changes SET id = nextval('mcp.changes_id')
         WHERE id IS NULL AND xact = pg_current_xact_id();
    END IF;
    RETURN 0;
END $$;

-- Work that one node does for all, and who does it now.
CREATE TABLE IF NOT EXISTS mcp.leases (
    name        text PRIMARY KEY,
    writer      bigint NOT NULL,
    lease_until timestamptz NOT NULL
);

-- One row, written to learn whether writing works again.
CREATE TABLE IF NOT EXISTS mcp.store_probe (
    id    integer PRIMARY KEY CHECK (id = 1),
    count bigint NOT NULL
);
INSERT INTO mcp.store_probe (id, count) VALUES (1, 0) ON CONFLICT DO NOTHING;

CREATE OR REPLACE VIEW mcp.session_metrics AS
SELECT tenant_id,
       count(*) FILTER (WHERE status IN ('active', 'idle')
                          AND (expires_at IS NULL OR expires_at > now())) AS active_sessions,
       count(*) AS total_sessions,
       sum(tool_execution_count) AS total_tool_executions,
       sum(total_tokens_used) AS total_tokens_used,
       avg(extract(epoch FROM coalesce(terminated_at, last_activity_at) - created_at) / 60)
           AS avg_session_duration_minutes
  FROM mcp.edge_mcp_sessions
 GROUP BY tenant_id;

-- A session that passed its end ended there, not when somebody noticed.
CREATE OR REPLACE FUNCTION mcp.cleanup_expired_sessions() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    UPDATE mcp.edge_mcp_sessions
       SET status = 'expired', terminated_at = expires_at, termination_reason = 'expired',
           version = version + 1
     WHERE status IN ('active', 'idle') AND expires_at <= now();
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;

-- JSON text as jsonb, or NULL where it does not convert: \u0000, lone surrogates, vast numbers.
CREATE OR REPLACE FUNCTION mcp.hf_jsonb(p_text text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN p_text::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- The verbs.  Each returns its verdict as a number (enum verdict of store/store.h):
-- 0 ok, 1 duplicate, 2 limit, 3 missing, 4 not active, 5 stale.

-- What had to be done and was refused ends the transaction; the code tells the verdict.
CREATE OR REPLACE FUNCTION mcp.hf_require(p_verdict integer, p_required boolean) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    IF p_required AND p_verdict <> 0 THEN
        RAISE EXCEPTION 'refused' USING ERRCODE = 'HF00' || p_verdict;
    END IF;
    RETURN p_verdict;
END $$;

-- May this caller see the session, be it another's of the tenant?
CREATE OR REPLACE FUNCTION mcp.hf_reaches(p_id uuid, p_tenant text, p_owner text, p_wide boolean)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM mcp.edge_mcp_sessions
                    WHERE id = p_id AND tenant_id = p_tenant AND (p_wide OR owner = p_owner));
END $$;

-- Is it the caller's own?  Only they name it, and keep state in it.
CREATE OR REPLACE FUNCTION mcp.hf_owns(p_id uuid, p_tenant text, p_owner text)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT mcp.hf_reaches(p_id, p_tenant, p_owner, false)
$$;

-- Tenants come into being with their first session; who may be one is not the store's to decide.
CREATE OR REPLACE FUNCTION mcp.hf_tenant_ensure(p_tenant text, p_now timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM mcp.tenants WHERE id = p_tenant) THEN
        INSERT INTO mcp.tenants (id, created_at) VALUES (p_tenant, p_now) ON CONFLICT DO NOTHING;
    END IF;
    RETURN 0;
END $$;

-- Is there room for one more counted session?  Locks the tenant until the end of the transaction.
-- Those past their end take none; they are left to the reaper, which tells of them.
CREATE OR REPLACE FUNCTION mcp.hf_has_room(p_tenant text, p_max bigint, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    IF p_max < 0 THEN
        RETURN true;
    END IF;
    SELECT counted_sessions INTO n FROM mcp.tenants WHERE id = p_tenant FOR NO KEY UPDATE;
    IF n >= p_max THEN
        SELECT n - count(*) INTO n FROM mcp.edge_mcp_sessions
         WHERE tenant_id = p_tenant AND counted AND status IN ('active', 'idle') AND expires_at <= p_now;
    END IF;
    RETURN n < p_max;
END $$;

-- One that is there already under this id, handle and owner, from a transaction before this one, is
-- this very one: a commit whose answer was lost is simply repeated.
CREATE OR REPLACE FUNCTION mcp.hf_session_create(p mcp.edge_mcp_sessions, p_now timestamptz, p_max bigint)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM mcp.edge_mcp_sessions
                WHERE id = p.id AND tenant_id = p.tenant_id AND owner = p.owner
                  AND session_id = p.session_id AND created_at = p.created_at
                  AND xmin <> pg_current_xact_id()::xid) THEN
        RETURN 0;
    END IF;
    PERFORM mcp.hf_tenant_ensure(p.tenant_id, p_now);
    IF p.carrier_key IS NOT NULL THEN
        UPDATE mcp.edge_mcp_sessions
           SET status = 'expired', terminated_at = expires_at, termination_reason = 'expired',
               version = version + 1
         WHERE tenant_id = p.tenant_id AND owner = p.owner AND carrier = p.carrier
           AND carrier_key = p.carrier_key AND status IN ('active', 'idle') AND expires_at <= p_now;
    END IF;
    IF p.counted AND NOT mcp.hf_has_room(p.tenant_id, p_max, p_now) THEN
        IF EXISTS (SELECT FROM mcp.edge_mcp_sessions
                    WHERE tenant_id = p.tenant_id AND session_id = p.session_id)
           OR EXISTS (SELECT FROM mcp.edge_mcp_sessions
                       WHERE tenant_id = p.tenant_id AND owner = p.owner AND carrier = p.carrier
                         AND carrier_key = p.carrier_key AND status IN ('active', 'idle'))
           OR EXISTS (SELECT FROM mcp.edge_mcp_sessions WHERE id = p.id) THEN
            RETURN 1;
        END IF;
        RETURN 2;
    END IF;
    p.connection_metadata := mcp.hf_jsonb(p.connection_json);
    INSERT INTO mcp.edge_mcp_sessions SELECT p.* ON CONFLICT DO NOTHING;
    RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_session_name(p_id uuid, p_tenant text, p_owner text,
                                               p_expires timestamptz, p_now timestamptz, p_max bigint)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    s mcp.edge_mcp_sessions;
BEGIN
    SELECT * INTO s FROM mcp.edge_mcp_sessions
     WHERE id = p_id AND tenant_id = p_tenant AND owner = p_owner FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 3;
    ELSIF s.status NOT IN ('active', 'idle') OR s.expires_at <= p_now THEN
        RETURN 4;
    ELSIF s.counted AND NOT s.provisional THEN
        RETURN 0;
    ELSIF NOT s.counted AND NOT mcp.hf_has_room(p_tenant, p_max, p_now) THEN
        RETURN 2;
    END IF;
    UPDATE mcp.edge_mcp_sessions
       SET provisional = false, counted = true, version = version + 1,
           expires_at = coalesce(p_expires, expires_at)
     WHERE id = p_id;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_session_end(p_id uuid, p_tenant text, p_owner text, p_wide boolean,
                                              p_status text, p_at timestamptz, p_reason text,
                                              p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.edge_mcp_sessions
       SET status = p_status, terminated_at = p_at, termination_reason = p_reason, version = version + 1
     WHERE id = p_id AND tenant_id = p_tenant AND (p_wide OR owner = p_owner)
       AND status IN ('active', 'idle') AND (expires_at IS NULL OR expires_at > p_now);
    IF NOT FOUND THEN
        RETURN 3;
    END IF;
    INSERT INTO mcp.changes (kind, tenant_id, name, made_at) VALUES (0, p_tenant, p_id::text, p_now);
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_transport_create(p mcp.transport_sessions)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF p.session_id IS NULL OR mcp.hf_owns(p.session_id, p.tenant_id, p.owner) THEN
        INSERT INTO mcp.transport_sessions SELECT p.* ON CONFLICT DO NOTHING;
        RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
    END IF;
    RETURN CASE WHEN EXISTS (SELECT FROM mcp.transport_sessions WHERE id_hash = p.id_hash) THEN 1 ELSE 3 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_transport_link(p_hash bytea, p_tenant text, p_owner text, p_session uuid)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.transport_sessions SET session_id = p_session
     WHERE id_hash = p_hash AND tenant_id = p_tenant AND owner = p_owner AND ended_at IS NULL
       AND mcp.hf_owns(p_session, p_tenant, p_owner);
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_transport_touch(p_hash bytea, p_tenant text, p_owner text, p_at timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.transport_sessions SET last_used_at = greatest(last_used_at, p_at)
     WHERE id_hash = p_hash AND tenant_id = p_tenant AND owner = p_owner AND ended_at IS NULL;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_transport_end(p_hash bytea, p_tenant text, p_owner text, p_at timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.transport_sessions SET ended_at = p_at
     WHERE id_hash = p_hash AND tenant_id = p_tenant AND owner = p_owner AND ended_at IS NULL;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_link_put(p mcp.upstream_links, p_tenant text, p_owner text)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF NOT mcp.hf_owns(p.session_id, p_tenant, p_owner) THEN
        RETURN 3;
    END IF;
    INSERT INTO mcp.upstream_links SELECT p.*
    ON CONFLICT (session_id, server) DO UPDATE
       SET writer = excluded.writer, remote_id = excluded.remote_id, opened_at = excluded.opened_at,
           ended_at = excluded.ended_at, end_reason = excluded.end_reason;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_link_end(p_session uuid, p_server text, p_tenant text, p_owner text,
                                           p_at timestamptz, p_reason text)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.upstream_links SET writer = 0, ended_at = p_at, end_reason = p_reason
     WHERE session_id = p_session AND server = p_server AND ended_at IS NULL
       AND mcp.hf_owns(p_session, p_tenant, p_owner);
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

-- A segment of new events.  Where one of its ids is taken, whoever writes has to look closer.
CREATE OR REPLACE FUNCTION mcp.hf_events_append(p_id bigint, p_n integer, p_records bytea, p_bodies bytea)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    last_id bigint;
BEGIN
    SELECT id + n - 1 INTO last_id FROM mcp.events WHERE id < p_id + p_n ORDER BY id DESC LIMIT 1;
    IF last_id >= p_id THEN
        RAISE EXCEPTION 'taken' USING ERRCODE = 'HF100';
    END IF;
    INSERT INTO mcp.events (id, n, records, bodies) VALUES (p_id, p_n, p_records, p_bodies);
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_writer_renew(p_number bigint, p_until timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.writers SET lease_until = p_until WHERE number = p_number AND ended_at IS NULL;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_writer_end(p_number bigint, p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.writers SET ended_at = p_at WHERE number = p_number AND ended_at IS NULL;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

-- For the registry's own role, where there is one.
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'api_user') THEN
        GRANT USAGE ON SCHEMA mcp TO api_user;
        GRANT SELECT, INSERT, UPDATE ON mcp.edge_mcp_sessions TO api_user;
        GRANT SELECT, UPDATE (counted_sessions) ON mcp.tenants TO api_user; -- by the trigger
        GRANT SELECT, INSERT ON mcp.session_tool_executions TO api_user;
        GRANT SELECT ON mcp.session_metrics TO api_user;
        GRANT EXECUTE ON FUNCTION mcp.cleanup_expired_sessions() TO api_user;
    END IF;
END $$;
