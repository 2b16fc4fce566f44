-- SPDX-License-Identifier: Apache-2.0
-- Back to 0014.  What templates and administrators laid down is forgotten, and where sessions came
-- from.
ALTER TABLE edge_mcp_sessions DROP COLUMN lineage;
ALTER TABLE edge_mcp_sessions DROP COLUMN setup;
