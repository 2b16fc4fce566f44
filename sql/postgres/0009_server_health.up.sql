-- SPDX-License-Identifier: Apache-2.0
-- How requests to each server went, over all starts and nodes.

CREATE TABLE IF NOT EXISTS mcp.server_health (
    name           text COLLATE "C" PRIMARY KEY,
    calls          bigint NOT NULL,
    failures       bigint NOT NULL,
    last_ok_at     timestamptz,
    last_failed_at timestamptz,
    last_error     bytea
);

CREATE OR REPLACE FUNCTION mcp.hf_server_tell(p mcp.server_health)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.server_health AS h
    VALUES (p.name, p.calls, p.failures, p.last_ok_at, p.last_failed_at, p.last_error)
    ON CONFLICT (name) DO UPDATE
       SET calls = h.calls + excluded.calls, failures = h.failures + excluded.failures,
           last_error = CASE WHEN h.last_failed_at IS NULL OR excluded.last_failed_at > h.last_failed_at
                             THEN coalesce(excluded.last_error, h.last_error) ELSE h.last_error END,
           last_ok_at = greatest(h.last_ok_at, excluded.last_ok_at),
           last_failed_at = greatest(h.last_failed_at, excluded.last_failed_at);
    RETURN 0;
END $$;
