-- SPDX-License-Identifier: Apache-2.0
-- Back to 0007.  Which toolsets were enabled is forgotten; clients enable them again.
ALTER TABLE edge_mcp_sessions DROP COLUMN toolsets;
