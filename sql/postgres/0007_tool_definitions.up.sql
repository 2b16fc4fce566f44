-- SPDX-License-Identifier: Apache-2.0
-- What each server's tools were last seen to be, and what of that somebody has approved.

CREATE TABLE IF NOT EXISTS mcp.tool_definitions (
    server              text COLLATE "C" NOT NULL,
    name                bytea NOT NULL,
    digest              bytea NOT NULL CHECK (length(digest) = 32),
    definition          bytea,
    approved            bytea CHECK (length(approved) = 32),
    approved_definition bytea,
    first_seen_at       timestamptz NOT NULL,
    changed_at          timestamptz NOT NULL,
    gone_at             timestamptz,
    approved_at         timestamptz,
    PRIMARY KEY (server, name)
);

-- Verdicts: 0 OK, 3 MISSING, 5 STALE.

CREATE OR REPLACE FUNCTION mcp.hf_tool_seen(p mcp.tool_definitions)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mcp.tool_definitions AS t
    VALUES (p.server, p.name, p.digest, p.definition, p.approved,
            CASE WHEN p.approved IS NOT NULL THEN p.definition END, p.first_seen_at, p.changed_at,
            p.gone_at, p.approved_at)
    ON CONFLICT (server, name) DO UPDATE
       SET changed_at = CASE WHEN t.digest = excluded.digest THEN t.changed_at ELSE excluded.changed_at END,
           definition = CASE WHEN t.digest = excluded.digest
                             THEN coalesce(excluded.definition, t.definition) ELSE excluded.definition END,
           digest = excluded.digest, gone_at = excluded.gone_at;
    RETURN 0;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_tool_approve(p_server text, p_name bytea, p_digest bytea, p_at timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.tool_definitions SET approved = digest, approved_definition = definition, approved_at = p_at
     WHERE server = p_server AND name = p_name AND digest = p_digest;
    IF FOUND THEN
        RETURN 0;
    END IF;
    RETURN CASE WHEN EXISTS (SELECT FROM mcp.tool_definitions WHERE server = p_server AND name = p_name)
                THEN 5 ELSE 3 END;
END $$;
