-- SPDX-License-Identifier: Apache-2.0
-- Back to 0020.
DROP FUNCTION IF EXISTS mcp.hf_sink_save(text, bigint, bigint, text);
DROP FUNCTION IF EXISTS mcp.hf_sink_take(text, bigint, bigint, boolean);
DROP TABLE IF EXISTS mcp.sink_positions;
