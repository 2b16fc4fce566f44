-- SPDX-License-Identifier: Apache-2.0
-- How much the audit holds, by tenant and day of the events, so that sizes are known without reading events.  Bytes are
-- logical: as events and bodies are before the database packs them (src/store/sizes.h).  The fold adds, removals subtract.
CREATE TABLE IF NOT EXISTS mcp.audit_sizes (
    tenant_id   text NOT NULL,
    day         bigint NOT NULL,
    events      bigint NOT NULL,
    event_bytes bigint NOT NULL,
    bodies      bigint NOT NULL,
    body_bytes  bigint NOT NULL,
    first_at    timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, day)
);

-- Events that were folded before this table existed, from next_id to last_id; the reaper counts them, and a row goes when
-- it is through.
CREATE TABLE IF NOT EXISTS mcp.audit_sizes_todo (
    writer  bigint PRIMARY KEY,
    next_id bigint NOT NULL,
    last_id bigint NOT NULL
);
DELETE FROM mcp.audit_sizes;
DELETE FROM mcp.audit_sizes_todo;
INSERT INTO mcp.audit_sizes_todo (writer, next_id, last_id)
SELECT writer, writer << 40, last_id FROM mcp.fold_marks WHERE last_id > writer << 40;

-- Adds rows of sizes, negative ones too.  In the order of the keys, so that two nodes never wait for each other.
CREATE OR REPLACE FUNCTION mcp.hf_sizes_add(p_tenants text[], p_days bigint[], p_events bigint[], p_event_bytes bigint[],
                                            p_bodies bigint[], p_body_bytes bigint[], p_first bigint[], p_last bigint[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.audit_sizes AS s
    SELECT t, d, e, eb, b, bb, timestamptz 'epoch' + f * interval '1 millisecond',
           timestamptz 'epoch' + l * interval '1 millisecond'
      FROM unnest(p_tenants, p_days, p_events, p_event_bytes, p_bodies, p_body_bytes, p_first, p_last)
           AS u (t, d, e, eb, b, bb, f, l)
     ORDER BY t, d
    ON CONFLICT (tenant_id, day) DO UPDATE
       SET events = s.events + excluded.events, event_bytes = s.event_bytes + excluded.event_bytes,
           bodies = s.bodies + excluded.bodies, body_bytes = s.body_bytes + excluded.body_bytes,
           first_at = least(s.first_at, excluded.first_at), last_at = greatest(s.last_at, excluded.last_at);
    IF EXISTS (SELECT FROM unnest(p_events) e WHERE e < 0) THEN
        DELETE FROM mcp.audit_sizes WHERE events <= 0
           AND (tenant_id, day) IN (SELECT * FROM unnest(p_tenants, p_days));
    END IF;
END $$;
