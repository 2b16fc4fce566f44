-- SPDX-License-Identifier: Apache-2.0
-- Takes everything of 0001 away, the audit too.

DROP VIEW session_metrics;
DROP TABLE store_probe;
DROP TABLE upstream_links;
DROP TABLE transport_sessions;
DROP TABLE writers;
DROP TABLE fold_state;
DROP TABLE long_executions;
DROP TABLE events;
DROP TABLE edge_mcp_sessions;
DROP TABLE users;
DROP TABLE tenants;
DROP TABLE schema_migrations;
