-- SPDX-License-Identifier: Apache-2.0
-- The toolsets that are enabled in a session, by key, a comma between them.
ALTER TABLE edge_mcp_sessions ADD COLUMN toolsets TEXT;
