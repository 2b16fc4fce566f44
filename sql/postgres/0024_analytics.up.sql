-- SPDX-License-Identifier: Apache-2.0
-- Rollups of calls: one row for each tenant, step (0: 5 minutes, 1: hour, 2: day), span, set of labels and
-- writer.  span: its beginning, in units of 5 minutes since 1970.  label: the set of labels, a number made
-- from the tenant and them.  The fold writes these rows in the transaction that moves its mark.
CREATE TABLE IF NOT EXISTS mcp.analytics_labels (
    id      bigint PRIMARY KEY,
    server  text NOT NULL,
    tool    text NOT NULL,
    client  text NOT NULL,
    owner   text NOT NULL,
    era     text NOT NULL,
    carrier text NOT NULL
);
CREATE TABLE IF NOT EXISTS mcp.analytics_rollups (
    label     bigint NOT NULL,
    writer    integer NOT NULL,
    span      integer NOT NULL,
    step      integer NOT NULL CHECK (step IN (0, 1, 2)),
    tenant_id text COLLATE "C" NOT NULL,
    cells     bytea NOT NULL,
    PRIMARY KEY (tenant_id, step, span, label, writer)
);

-- Verdicts: 0 OK, 3 MISSING.
CREATE OR REPLACE FUNCTION mcp.hf_rollups_age(p_tenant text, p_step integer, p_before integer, p_most bigint)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mcp.analytics_rollups WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM mcp.analytics_rollups WHERE tenant_id = p_tenant AND step = p_step AND span < p_before
         ORDER BY span, label, writer LIMIT p_most FOR UPDATE SKIP LOCKED));
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;
