-- SPDX-License-Identifier: Apache-2.0
-- Sessions added up by tenant, owner and the minute they were last used in, so that totals are read without reading
-- sessions.  The triggers below append changes; the node that reaps adds them to session_sums.  The totals are the sum of
-- both tables.  Appending takes no lock that another node's transaction waits for; one row per minute, written by all
-- nodes, would.
-- live: active and idle, whether or not past their end.  lived_ms: from creation to end or last use.
CREATE TABLE IF NOT EXISTS mcp.session_sums (
    tenant_id  text NOT NULL,
    minute     bigint NOT NULL,
    owner      text NOT NULL,
    sessions   bigint NOT NULL,
    live       bigint NOT NULL,
    executions numeric NOT NULL,
    tokens     numeric NOT NULL,
    lived_ms   numeric NOT NULL,
    PRIMARY KEY (tenant_id, minute, owner)
);
CREATE INDEX IF NOT EXISTS idx_session_sums_empty ON mcp.session_sums (minute) WHERE sessions = 0;
CREATE TABLE IF NOT EXISTS mcp.session_sum_changes (LIKE mcp.session_sums);

-- What one session adds, by its columns.
CREATE OR REPLACE FUNCTION mcp.hf_session_minute(p_created timestamptz, p_used timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT floor(extract(epoch FROM greatest(p_created, p_used)) / 60)::bigint
$$;
CREATE OR REPLACE FUNCTION mcp.hf_session_lived_ms(p_created timestamptz, p_used timestamptz, p_ended timestamptz)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT extract(epoch FROM coalesce(p_ended, p_used) - p_created) * 1000
$$;

-- Runs as its owner: roles that may write sessions need no right on the sums.
CREATE OR REPLACE FUNCTION mcp.hf_sum_sessions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO mcp.session_sum_changes
        SELECT tenant_id, mcp.hf_session_minute(created_at, last_activity_at), owner, count(*),
               count(*) FILTER (WHERE status IN ('active', 'idle')), sum(tool_execution_count),
               sum(total_tokens_used), sum(mcp.hf_session_lived_ms(created_at, last_activity_at, terminated_at))
          FROM new_sessions GROUP BY 1, 2, 3;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO mcp.session_sum_changes
        SELECT tenant_id, mcp.hf_session_minute(created_at, last_activity_at), owner, -count(*),
               -count(*) FILTER (WHERE status IN ('active', 'idle')), -sum(tool_execution_count),
               -sum(total_tokens_used), -sum(mcp.hf_session_lived_ms(created_at, last_activity_at, terminated_at))
          FROM old_sessions GROUP BY 1, 2, 3;
    ELSE
        INSERT INTO mcp.session_sum_changes
        SELECT * FROM (
            SELECT tenant_id, mcp.hf_session_minute(created_at, last_activity_at), owner, sum(sign) AS sessions,
                   coalesce(sum(sign) FILTER (WHERE status IN ('active', 'idle')), 0) AS live,
                   sum(sign * tool_execution_count) AS executions, sum(sign * total_tokens_used) AS tokens,
                   sum(sign * mcp.hf_session_lived_ms(created_at, last_activity_at, terminated_at)) AS lived_ms
              FROM (SELECT 1 AS sign, tenant_id, owner, status, created_at, last_activity_at, terminated_at,
                           tool_execution_count, total_tokens_used FROM new_sessions
                    UNION ALL
                    SELECT -1, tenant_id, owner, status, created_at, last_activity_at, terminated_at,
                           tool_execution_count, total_tokens_used FROM old_sessions) s
             GROUP BY 1, 2, 3) t
         WHERE (sessions, live, executions, tokens, lived_ms) <> (0, 0, 0, 0, 0);
    END IF;
    RETURN NULL;
END $$;
-- These lock the table against writes until the commit, so the rows below are of all sessions there are.
CREATE OR REPLACE TRIGGER edge_sessions_sums_insert AFTER INSERT ON mcp.edge_mcp_sessions
    REFERENCING NEW TABLE AS new_sessions FOR EACH STATEMENT EXECUTE FUNCTION mcp.hf_sum_sessions();
CREATE OR REPLACE TRIGGER edge_sessions_sums_update AFTER UPDATE ON mcp.edge_mcp_sessions
    REFERENCING OLD TABLE AS old_sessions NEW TABLE AS new_sessions
    FOR EACH STATEMENT EXECUTE FUNCTION mcp.hf_sum_sessions();
CREATE OR REPLACE TRIGGER edge_sessions_sums_delete AFTER DELETE ON mcp.edge_mcp_sessions
    REFERENCING OLD TABLE AS old_sessions FOR EACH STATEMENT EXECUTE FUNCTION mcp.hf_sum_sessions();

DELETE FROM mcp.session_sums;
DELETE FROM mcp.session_sum_changes;
INSERT INTO mcp.session_sums
SELECT tenant_id, mcp.hf_session_minute(created_at, last_activity_at), owner, count(*),
       count(*) FILTER (WHERE status IN ('active', 'idle')), sum(tool_execution_count), sum(total_tokens_used),
       sum(mcp.hf_session_lived_ms(created_at, last_activity_at, terminated_at))
  FROM mcp.edge_mcp_sessions GROUP BY 1, 2, 3;

-- Adds up to p_max changes to the sums.  Returns how many were there to add.
CREATE OR REPLACE FUNCTION mcp.hf_session_sums_merge(p_max bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    WITH taken AS (
        DELETE FROM mcp.session_sum_changes WHERE ctid IN (
            SELECT ctid FROM mcp.session_sum_changes LIMIT p_max FOR UPDATE SKIP LOCKED)
        RETURNING *), merged AS (
        INSERT INTO mcp.session_sums AS s
        SELECT tenant_id, minute, owner, sum(sessions), sum(live), sum(executions), sum(tokens), sum(lived_ms)
          FROM taken GROUP BY 1, 2, 3
        ON CONFLICT (tenant_id, minute, owner) DO UPDATE
           SET sessions = s.sessions + excluded.sessions, live = s.live + excluded.live,
               executions = s.executions + excluded.executions, tokens = s.tokens + excluded.tokens,
               lived_ms = s.lived_ms + excluded.lived_ms)
    SELECT count(*) INTO n FROM taken;
    -- While changes are left, a row may be without sessions and yet not empty.
    DELETE FROM mcp.session_sums
     WHERE sessions = 0 AND live = 0 AND executions = 0 AND tokens = 0 AND lived_ms = 0;
    RETURN n;
END $$;

-- What was counted only because its handle came back, by last use: after 30 minutes without use it no longer counts.
CREATE INDEX IF NOT EXISTS idx_edge_sessions_promoted ON mcp.edge_mcp_sessions (tenant_id, last_activity_at)
    WHERE counted AND status IN ('active', 'idle') AND origin NOT IN ('rest', 'tool', 'keyed');
