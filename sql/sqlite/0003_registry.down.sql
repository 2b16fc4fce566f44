-- SPDX-License-Identifier: Apache-2.0
-- Back to 0002.  Users whom an issuer vouches for have no place there and go.

DROP INDEX IF EXISTS idx_edge_sessions_ended_owner;
DROP INDEX IF EXISTS idx_edge_sessions_ended;
DROP INDEX IF EXISTS idx_edge_sessions_live_owner;
DROP INDEX IF EXISTS idx_edge_sessions_context;
DROP INDEX IF EXISTS idx_edge_sessions_live;
DROP INDEX IF EXISTS idx_edge_sessions_used;
DROP TABLE session_executions;
DROP TABLE tool_configurations;
DROP TABLE idempotency;
DROP TABLE contexts;
DROP TABLE api_keys;
CREATE TABLE users_old (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL REFERENCES tenants (id),
    name       TEXT NOT NULL,
    role       TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('admin', 'member', 'auditor', 'service')),
    password   TEXT,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    UNIQUE (tenant_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO users_old (id, tenant_id, name, role, password, created_at, ended_at)
SELECT id, tenant_id, name, role, password, created_at, ended_at FROM users WHERE issuer IS NULL;
DROP TABLE users;
ALTER TABLE users_old RENAME TO users;
