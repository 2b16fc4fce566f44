-- SPDX-License-Identifier: Apache-2.0
-- setup: what a template or an administrator laid down for the session.  lineage: the session that
-- this one was forked, imported or replayed from.  Both JSON.
ALTER TABLE edge_mcp_sessions ADD COLUMN setup TEXT;
ALTER TABLE edge_mcp_sessions ADD COLUMN lineage TEXT;
