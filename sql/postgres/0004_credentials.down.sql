-- SPDX-License-Identifier: Apache-2.0
-- Back to 0003.  What was sealed cannot be opened any more without its keys, and goes.

DROP FUNCTION IF EXISTS mcp.hf_session_reseal(uuid, text, bytea, bigint);
DROP FUNCTION IF EXISTS mcp.hf_tenant_key_wrap(text, text, text, bytea);
DROP FUNCTION IF EXISTS mcp.hf_tenant_key_put(mcp.tenant_keys, timestamptz);
DROP INDEX IF EXISTS mcp.idx_edge_sessions_sealed;
UPDATE mcp.edge_mcp_sessions SET passthrough_auth_encrypted = NULL
 WHERE passthrough_auth_encrypted IS NOT NULL;
DROP TABLE IF EXISTS mcp.tenant_keys;
