-- SPDX-License-Identifier: Apache-2.0
-- Back to 0017.
DROP TRIGGER IF EXISTS edge_sessions_context_gone ON mcp.edge_mcp_sessions;
DROP FUNCTION IF EXISTS mcp.hf_drop_contexts();
DROP INDEX IF EXISTS mcp.idx_edge_sessions_over;
