-- SPDX-License-Identifier: Apache-2.0
-- Back to 0019.
DROP FUNCTION IF EXISTS mcp.hf_hold_release(uuid, text, timestamptz, text, bigint);
DROP FUNCTION IF EXISTS mcp.hf_hold_put(mcp.audit_holds, bigint);
DROP VIEW IF EXISTS mcp.audit_held;
DROP INDEX IF EXISTS mcp.idx_api_keys_user;
DROP TABLE IF EXISTS mcp.audit_holds;
