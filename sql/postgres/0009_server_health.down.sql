-- SPDX-License-Identifier: Apache-2.0
-- Back to before requests to servers were counted: the counts are lost.

DROP FUNCTION IF EXISTS mcp.hf_server_tell(mcp.server_health);
DROP TABLE IF EXISTS mcp.server_health;
