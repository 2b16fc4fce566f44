-- SPDX-License-Identifier: Apache-2.0
-- Finds the hours that are not packed yet.  A packed row holds the hours of one day and has the writer -1.
CREATE INDEX IF NOT EXISTS idx_analytics_unpacked ON mcp.analytics_rollups (tenant_id, span, label) WHERE step = 1 AND writer >= 0;
