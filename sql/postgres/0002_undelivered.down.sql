-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION IF EXISTS mcp.hf_undelivered_put(mcp.undelivered);
DROP FUNCTION IF EXISTS mcp.hf_undelivered_take(bigint, text, text, timestamptz);
DROP TABLE IF EXISTS mcp.undelivered;
