-- SPDX-License-Identifier: Apache-2.0
-- Back to 0023.
DROP FUNCTION IF EXISTS mcp.hf_rollups_age(text, integer, integer, bigint);
DROP TABLE IF EXISTS mcp.analytics_rollups;
DROP TABLE IF EXISTS mcp.analytics_labels;
