-- SPDX-License-Identifier: Apache-2.0
-- Back to 0013.  The secrets of the configuration go.
DROP FUNCTION IF EXISTS mcp.hf_secret_remove(text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_secret_put(mcp.secrets, bigint, timestamptz);
DROP TABLE IF EXISTS mcp.secrets;
DELETE FROM mcp.changes WHERE kind = 7;
