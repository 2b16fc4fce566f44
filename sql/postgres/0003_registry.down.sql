-- SPDX-License-Identifier: Apache-2.0
-- Back to 0002.  Users whom an issuer vouches for have no place there and go.

DROP FUNCTION IF EXISTS mcp.hf_lease(text, bigint, timestamptz, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_idempotency_put(mcp.idempotency, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_key_used(text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_key_revoke(text, text, timestamptz, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_key_create(mcp.api_keys, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_user_ensure(uuid, text, text, text, text, timestamptz, timestamptz, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_context_put(uuid, text, text, boolean, uuid, text, bigint, timestamptz,
                                           timestamptz, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_session_refresh(uuid, text, text, boolean, timestamptz, bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_session_patch(uuid, text, text, boolean, mcp.edge_mcp_sessions, integer,
                                             timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_session_use(uuid, text, text, boolean, timestamptz, timestamptz, bigint);
DROP FUNCTION IF EXISTS mcp.hf_slid(mcp.edge_mcp_sessions, timestamptz, bigint);
DROP FUNCTION IF EXISTS mcp.hf_live(uuid, text, text, boolean, timestamptz);
DROP INDEX IF EXISTS mcp.idx_edge_sessions_live_owner, mcp.idx_edge_sessions_live, mcp.idx_edge_sessions_context;
DROP TABLE IF EXISTS mcp.idempotency, mcp.api_keys;
DELETE FROM mcp.users WHERE issuer IS NOT NULL;
DROP INDEX IF EXISTS mcp.idx_users_name;
ALTER TABLE mcp.users DROP COLUMN IF EXISTS issuer;
