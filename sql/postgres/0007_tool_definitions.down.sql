-- SPDX-License-Identifier: Apache-2.0
-- Back to before tools were watched: what they were is forgotten.

DROP FUNCTION IF EXISTS mcp.hf_tool_approve(text, bytea, bytea, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_tool_seen(mcp.tool_definitions);
DROP TABLE IF EXISTS mcp.tool_definitions;
