-- SPDX-License-Identifier: Apache-2.0
-- The registry: who may call (users, keys), what sessions share (contexts), answers that may be asked
-- for again, and the executions of each session.

-- Names are unique among a tenant's own users; whom an issuer vouches for is named by the issuer.
CREATE TABLE users_new (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL REFERENCES tenants (id),
    name       TEXT NOT NULL,
    role       TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('admin', 'member', 'auditor', 'service')),
    password   TEXT,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    issuer     TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO users_new (id, tenant_id, name, role, password, created_at, ended_at)
SELECT id, tenant_id, name, role, password, created_at, ended_at FROM users;
DROP TABLE users;
ALTER TABLE users_new RENAME TO users;
CREATE UNIQUE INDEX idx_users_name ON users (tenant_id, name) WHERE issuer IS NULL;

-- The key itself is never kept: its public part is the id, the rest is known by the hash of the whole.
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    tenant_id    TEXT NOT NULL REFERENCES tenants (id),
    user_id      TEXT REFERENCES users (id),
    name         TEXT,
    role         TEXT NOT NULL CHECK (role IN ('admin', 'member', 'auditor', 'service')),
    hash         BLOB NOT NULL CHECK (length(hash) = 32),
    scopes       TEXT,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_api_keys_tenant ON api_keys (tenant_id, id);

-- The document of a session, or of several that share it; bytes as they came.
CREATE TABLE contexts (
    id         TEXT PRIMARY KEY NOT NULL,
    tenant_id  TEXT NOT NULL REFERENCES tenants (id),
    document   TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE idempotency (
    tenant_id   TEXT NOT NULL,
    owner       TEXT NOT NULL,
    key         TEXT NOT NULL,
    request_sha BLOB NOT NULL CHECK (length(request_sha) = 32),
    status      INTEGER NOT NULL,
    headers     TEXT,
    body        BLOB,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    UNIQUE (tenant_id, owner, key)
) STRICT;
CREATE INDEX idx_idempotency_expires ON idempotency (expires_at);

-- Every tool that was ever executed in a tenant, entered by the fold.  The id is made from the other
-- three (tool_uuid() in store/rows.h), so it is the same in every database.
CREATE TABLE tool_configurations (
    id        TEXT PRIMARY KEY NOT NULL,
    tenant_id TEXT NOT NULL,
    server    TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    UNIQUE (tenant_id, server, tool_name)
) STRICT, WITHOUT ROWID;

-- Which executions are a session's: one row for each slice that the fold took, named by the first
-- execution in it.  ids holds, for each execution in order, how far it is from the one before, and one
-- more than its outcome is from it, as LEB128; 0 for an outcome that came in a later slice, which
-- stands in long_executions.  The executions themselves are events; as those are kept in segments, there is no
-- view session_tool_executions here (PostgreSQL has one).  What was folded before this migration is in
-- the audit, not in these lists.
CREATE TABLE session_executions (
    session TEXT NOT NULL,
    first   INTEGER NOT NULL,
    ids     BLOB NOT NULL,
    PRIMARY KEY (session, first)
) STRICT, WITHOUT ROWID;

-- What the reaper looks for: unused for long, and used in the future.
CREATE INDEX idx_edge_sessions_used ON edge_mcp_sessions (status, last_activity_at)
    WHERE status IN ('active', 'idle');
-- What lists show, newest first: the live, and the others.
CREATE INDEX idx_edge_sessions_live ON edge_mcp_sessions (tenant_id, id) WHERE status IN ('active', 'idle');
CREATE INDEX idx_edge_sessions_live_owner ON edge_mcp_sessions (tenant_id, owner, id)
    WHERE status IN ('active', 'idle');
CREATE INDEX idx_edge_sessions_ended ON edge_mcp_sessions (tenant_id, id)
    WHERE status IN ('expired', 'terminated');
CREATE INDEX idx_edge_sessions_ended_owner ON edge_mcp_sessions (tenant_id, owner, id)
    WHERE status IN ('expired', 'terminated');
-- Whose a context is: of those whose sessions have it.
CREATE INDEX idx_edge_sessions_context ON edge_mcp_sessions (context_id) WHERE context_id IS NOT NULL;
