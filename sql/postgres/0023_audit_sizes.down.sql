-- SPDX-License-Identifier: Apache-2.0
-- Back to 0022.
DROP FUNCTION IF EXISTS mcp.hf_sizes_add(text[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]);
DROP TABLE IF EXISTS mcp.audit_sizes_todo;
DROP TABLE IF EXISTS mcp.audit_sizes;
