-- SPDX-License-Identifier: Apache-2.0
-- Back to 0021.  An older version cannot verify chains of which events were removed.
DROP FUNCTION IF EXISTS mcp.hf_executions_gone(uuid[], uuid[]);
DROP FUNCTION IF EXISTS mcp.hf_tally_add(mcp.audit_tallies);
DROP FUNCTION IF EXISTS mcp.hf_removed_put(mcp.audit_removed);
DROP FUNCTION IF EXISTS mcp.hf_segment_put(bigint, integer, bytea, bytea);
DROP FUNCTION IF EXISTS mcp.hf_segment_drop(bigint);
DROP FUNCTION IF EXISTS mcp.hf_retention_begin(bigint);
DROP TRIGGER IF EXISTS audit_holds_made ON mcp.audit_holds;
DROP FUNCTION IF EXISTS mcp.hf_hold_made();
DROP TABLE IF EXISTS mcp.audit_tallies;
DROP TABLE IF EXISTS mcp.audit_removed;
DROP TABLE IF EXISTS mcp.audit_retention;
