-- SPDX-License-Identifier: Apache-2.0
-- How far each sink is, and which writer sends.  position: NULL until the sink knows where it begins.
CREATE TABLE IF NOT EXISTS mcp.sink_positions (
    name        text PRIMARY KEY,
    position    text,
    writer      bigint NOT NULL,
    saved_at    timestamptz NOT NULL,
    lease_until timestamptz NOT NULL
);

-- Verdicts: 0 OK, 1 DUPLICATE, 3 MISSING.  The clock of the database decides, not those of the nodes.
CREATE OR REPLACE FUNCTION mcp.hf_sink_take(p_name text, p_writer bigint, p_lease_ms bigint, p_alone boolean)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.sink_positions AS s (name, writer, saved_at, lease_until)
    VALUES (p_name, CASE WHEN p_lease_ms > 0 THEN p_writer ELSE 0 END, clock_timestamp(),
            clock_timestamp() + p_lease_ms * interval '1 millisecond')
    ON CONFLICT (name) DO UPDATE SET writer = excluded.writer, lease_until = excluded.lease_until
     WHERE p_alone OR s.writer IN (0, p_writer) OR s.lease_until <= clock_timestamp()
        OR EXISTS (SELECT FROM mcp.writers w WHERE w.number = s.writer AND w.ended_at IS NOT NULL);
    RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_sink_save(p_name text, p_writer bigint, p_lease_ms bigint, p_position text)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.sink_positions
       SET writer = CASE WHEN p_lease_ms > 0 THEN p_writer ELSE 0 END, saved_at = clock_timestamp(),
           lease_until = clock_timestamp() + p_lease_ms * interval '1 millisecond',
           position = coalesce(p_position, position)
     WHERE name = p_name AND writer = p_writer;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;
