-- SPDX-License-Identifier: Apache-2.0
-- Back to 0012: totals are added up from the sessions.
DROP INDEX mcp.idx_edge_sessions_promoted;
DROP TRIGGER edge_sessions_sums_delete ON mcp.edge_mcp_sessions;
DROP TRIGGER edge_sessions_sums_update ON mcp.edge_mcp_sessions;
DROP TRIGGER edge_sessions_sums_insert ON mcp.edge_mcp_sessions;
DROP FUNCTION mcp.hf_session_sums_merge(bigint);
DROP FUNCTION mcp.hf_sum_sessions();
DROP FUNCTION mcp.hf_session_lived_ms(timestamptz, timestamptz, timestamptz);
DROP FUNCTION mcp.hf_session_minute(timestamptz, timestamptz);
DROP TABLE mcp.session_sum_changes;
DROP TABLE mcp.session_sums;
