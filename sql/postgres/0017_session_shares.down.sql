-- SPDX-License-Identifier: Apache-2.0
-- Back to 0016.  Shares and bindings go.  Sessions that were handed over stay with their new owners.
DROP FUNCTION IF EXISTS mcp.hf_binding_drop(text, text, text, bytea, uuid);
DROP FUNCTION IF EXISTS mcp.hf_share_join(uuid, uuid, text, text, timestamptz, text, text, bytea, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_hand_over(uuid, uuid, text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_share_end(uuid, uuid, text, text, boolean, timestamptz, text);
DROP FUNCTION IF EXISTS mcp.hf_share_create(mcp.session_shares, boolean, bigint, bigint, timestamptz);
DROP INDEX IF EXISTS mcp.idx_transport_sessions_session;
DROP TABLE IF EXISTS mcp.session_bindings;
DROP TABLE IF EXISTS mcp.session_shares;
DELETE FROM mcp.changes WHERE kind IN (9, 10);
