-- SPDX-License-Identifier: Apache-2.0
-- Back to 0025.  Packed hours cannot be read by an older version; their days stay counted.
DROP INDEX IF EXISTS mcp.idx_analytics_unpacked;
DELETE FROM mcp.analytics_rollups WHERE writer = -1;
