-- SPDX-License-Identifier: Apache-2.0
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
