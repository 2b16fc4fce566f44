-- SPDX-License-Identifier: Apache-2.0
-- Retention.  The version changes with every removal and with every new hold, so that nothing is removed that changed
-- since it was read.
CREATE TABLE IF NOT EXISTS mcp.audit_retention (
    one     integer PRIMARY KEY CHECK (one = 1),
    version bigint NOT NULL
);
INSERT INTO mcp.audit_retention VALUES (1, 0) ON CONFLICT DO NOTHING;
-- Runs as its owner.  Its lock on the row makes a removal wait for the hold.
CREATE OR REPLACE FUNCTION mcp.hf_hold_made() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE mcp.audit_retention SET version = version + 1;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER audit_holds_made AFTER INSERT ON mcp.audit_holds
    FOR EACH ROW EXECUTE FUNCTION mcp.hf_hold_made();

-- Checkpoints: consecutive events of one chain that were removed (src/retention/store/rows.h).
CREATE TABLE IF NOT EXISTS mcp.audit_removed (
    writer     bigint NOT NULL,
    tenant     text NOT NULL,
    first_seq  bigint NOT NULL,
    last_seq   bigint NOT NULL,
    first_id   bigint NOT NULL,
    last_id    bigint NOT NULL,
    oldest_ms  bigint NOT NULL,
    newest_ms  bigint NOT NULL,
    by_age     bigint NOT NULL,
    by_size    bigint NOT NULL,
    removed_ms bigint NOT NULL,
    rule       text NOT NULL,
    before     bytea,
    after      bytea,
    seal       bytea,
    PRIMARY KEY (writer, tenant, first_seq)
);

-- Sums beside the events, by the kinds of enum tally_kind: what is stored of a tenant by hour, and what was removed and
-- not told of yet.
CREATE TABLE IF NOT EXISTS mcp.audit_tallies (
    kind       integer NOT NULL,
    tenant     text NOT NULL,
    at         bigint NOT NULL,
    events     bigint NOT NULL,
    bytes      bigint NOT NULL,
    body_bytes bigint NOT NULL,
    PRIMARY KEY (kind, tenant, at)
);

-- Verdicts: 0 OK, 5 STALE.
CREATE OR REPLACE FUNCTION mcp.hf_retention_begin(p_version bigint) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.audit_retention SET version = version + 1 WHERE version = p_version;
    RETURN CASE WHEN FOUND THEN 0 ELSE 5 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_segment_drop(p_id bigint) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mcp.events WHERE id = p_id;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_segment_put(p_id bigint, p_n integer, p_records bytea, p_bodies bytea)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.events AS e (id, n, records, bodies) VALUES (p_id, p_n, p_records, p_bodies)
    ON CONFLICT (id) DO UPDATE SET n = excluded.n, records = excluded.records, bodies = excluded.bodies;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_removed_put(p mcp.audit_removed) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mcp.audit_removed WHERE writer = p.writer AND tenant = p.tenant
       AND first_seq >= p.first_seq AND last_seq <= p.last_seq;
    INSERT INTO mcp.audit_removed SELECT p.*;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_tally_add(p mcp.audit_tallies) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.audit_tallies AS t SELECT p.*
    ON CONFLICT (kind, tenant, at) DO UPDATE SET events = t.events + excluded.events,
       bytes = t.bytes + excluded.bytes, body_bytes = t.body_bytes + excluded.body_bytes;
    DELETE FROM mcp.audit_tallies WHERE kind = p.kind AND tenant = p.tenant AND at = p.at
       AND events = 0 AND bytes = 0 AND body_bytes = 0;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_executions_gone(p_removed uuid[], p_bodies uuid[]) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mcp.session_tool_executions WHERE id = ANY (p_removed);
    UPDATE mcp.session_tool_executions SET arguments = NULL, result = NULL
     WHERE id = ANY (p_bodies) AND (arguments IS NOT NULL OR result IS NOT NULL);
    RETURN 0;
END $$;
