-- SPDX-License-Identifier: Apache-2.0
-- The first schema.  Times are wall-clock milliseconds, NULL for never; ids of sessions are UUIDv7
-- text, so their order is the order of creation.  Names follow the session registry's own tables
-- (edge_mcp_sessions); columns of ours stand after theirs.

CREATE TABLE schema_migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE tenants (
    id               TEXT PRIMARY KEY,
    name             TEXT,
    created_at       INTEGER NOT NULL,
    -- Live sessions that count against the limit; kept by the triggers below and by nothing else,
    -- so that the limit is checked without counting rows.
    counted_sessions INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO tenants (id, name, created_at) VALUES ('default', 'default', 0);

CREATE TABLE users (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL REFERENCES tenants (id),
    name       TEXT NOT NULL,
    role       TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('admin', 'member', 'auditor', 'service')),
    password   TEXT,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    UNIQUE (tenant_id, name)
) STRICT, WITHOUT ROWID;

-- user_id and context_id name things that may live elsewhere: no foreign keys on them.
CREATE TABLE edge_mcp_sessions (
    id                         TEXT PRIMARY KEY NOT NULL,
    session_id                 TEXT NOT NULL,
    tenant_id                  TEXT NOT NULL REFERENCES tenants (id),
    user_id                    TEXT,
    edge_mcp_id                TEXT NOT NULL,
    client_name                TEXT,
    client_type                TEXT CHECK (client_type IN ('claude-code', 'ide', 'agent', 'cli')),
    client_version             TEXT,
    status                     TEXT NOT NULL DEFAULT 'active'
                               CHECK (status IN ('active', 'idle', 'expired', 'terminated')),
    initialized                INTEGER NOT NULL DEFAULT 0 CHECK (initialized IN (0, 1)),
    core_session_id            TEXT,
    passthrough_auth_encrypted BLOB,
    connection_metadata        TEXT,
    context_id                 TEXT,
    last_activity_at           INTEGER NOT NULL,
    tool_execution_count       INTEGER NOT NULL DEFAULT 0,
    total_tokens_used          INTEGER NOT NULL DEFAULT 0,
    created_at                 INTEGER NOT NULL,
    expires_at                 INTEGER,
    terminated_at              INTEGER,
    termination_reason         TEXT,
    owner                      TEXT NOT NULL,
    origin                     TEXT NOT NULL
                               CHECK (origin IN ('rest', 'tool', 'transport', 'derived', 'keyed', 'injected')),
    provisional                INTEGER NOT NULL DEFAULT 0 CHECK (provisional IN (0, 1)),
    counted                    INTEGER NOT NULL DEFAULT 0 CHECK (counted IN (0, 1)),
    carrier                    TEXT,
    carrier_key                TEXT,
    ttl_ms                     INTEGER NOT NULL DEFAULT 0,
    version                    INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX idx_edge_sessions_handle ON edge_mcp_sessions (tenant_id, session_id);
CREATE UNIQUE INDEX idx_edge_sessions_key ON edge_mcp_sessions (tenant_id, owner, carrier, carrier_key)
    WHERE carrier_key IS NOT NULL AND status IN ('active', 'idle');
CREATE INDEX idx_edge_sessions_tenant ON edge_mcp_sessions (tenant_id, id);
CREATE INDEX idx_edge_sessions_owner ON edge_mcp_sessions (tenant_id, owner, id);
CREATE INDEX idx_edge_sessions_active ON edge_mcp_sessions (expires_at) WHERE status IN ('active', 'idle');
CREATE INDEX idx_edge_sessions_counted ON edge_mcp_sessions (tenant_id, expires_at)
    WHERE counted = 1 AND status IN ('active', 'idle');

CREATE TRIGGER edge_sessions_counted_insert AFTER INSERT ON edge_mcp_sessions
WHEN new.counted = 1 AND new.status IN ('active', 'idle')
BEGIN
    UPDATE tenants SET counted_sessions = counted_sessions + 1 WHERE id = new.tenant_id;
END;
CREATE TRIGGER edge_sessions_counted_update AFTER UPDATE OF status, counted ON edge_mcp_sessions
WHEN (old.counted = 1 AND old.status IN ('active', 'idle'))
  <> (new.counted = 1 AND new.status IN ('active', 'idle'))
BEGIN
    UPDATE tenants
       SET counted_sessions = counted_sessions
                            + (new.counted = 1 AND new.status IN ('active', 'idle'))
                            - (old.counted = 1 AND old.status IN ('active', 'idle'))
     WHERE id = new.tenant_id;
END;
CREATE TRIGGER edge_sessions_counted_delete AFTER DELETE ON edge_mcp_sessions
WHEN old.counted = 1 AND old.status IN ('active', 'idle')
BEGIN
    UPDATE tenants SET counted_sessions = counted_sessions - 1 WHERE id = old.tenant_id;
END;

-- The truth: append-only, no index but its key.  A row is a segment: the events of consecutive ids
-- that were appended together, under the id of the first (store/segment.h).  Each event is a record,
-- the very bytes its seal covers; the stored bodies stand apart and may be deleted.
CREATE TABLE events (
    id      INTEGER PRIMARY KEY,
    records BLOB NOT NULL,
    bodies  BLOB
) STRICT;

-- Executions whose intent was folded before their outcome, written by the fold.  Of all others the
-- outcome follows the intent so soon that it is found by reading on.
-- state: 0 open; else 1, + 2 when its outcome is only guessed (indeterminate), + 4 when there may be
-- more than one outcome (outcome_event is then the one that counts, or absent).
CREATE TABLE long_executions (
    id            INTEGER PRIMARY KEY,
    outcome_event INTEGER,
    state         INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_long_executions_open ON long_executions (id) WHERE state = 0;

-- How far the events of each (writer, tenant) are folded, and the head of that chain there.
CREATE TABLE fold_state (
    writer  INTEGER NOT NULL,
    tenant  TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    mac     BLOB,
    events  INTEGER NOT NULL,
    PRIMARY KEY (writer, tenant)
) STRICT, WITHOUT ROWID;

-- Numbers are never used again, so neither are event ids.
CREATE TABLE writers (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid           TEXT NOT NULL UNIQUE,
    node           TEXT,
    started_at     INTEGER NOT NULL,
    lease_until_ms INTEGER NOT NULL,
    ended_at       INTEGER
) STRICT;

CREATE TABLE transport_sessions (
    id_hash           BLOB PRIMARY KEY NOT NULL CHECK (length(id_hash) = 32),
    tenant_id         TEXT NOT NULL,
    owner             TEXT NOT NULL,
    endpoint          TEXT NOT NULL,
    protocol_version  TEXT,
    initialize_params BLOB,
    session_id        TEXT,
    created_at        INTEGER NOT NULL,
    last_used_at      INTEGER NOT NULL,
    ended_at          INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_transport_sessions_used ON transport_sessions (ended_at, last_used_at);

CREATE TABLE upstream_links (
    session_id TEXT NOT NULL,
    server     TEXT NOT NULL,
    writer     INTEGER NOT NULL,
    remote_id  TEXT,
    opened_at  INTEGER NOT NULL,
    ended_at   INTEGER,
    end_reason TEXT,
    PRIMARY KEY (session_id, server)
) STRICT, WITHOUT ROWID;

-- One row, written to learn whether writing works again.
CREATE TABLE store_probe (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    count INTEGER NOT NULL
) STRICT;
INSERT INTO store_probe (id, count) VALUES (1, 0);

CREATE VIEW session_metrics AS
SELECT tenant_id,
       count(*) FILTER (WHERE status IN ('active', 'idle')
                          AND (expires_at IS NULL OR expires_at > unixepoch() * 1000)) AS active_sessions,
       count(*) AS total_sessions,
       sum(tool_execution_count) AS total_tool_executions,
       sum(total_tokens_used) AS total_tokens_used,
       avg((coalesce(terminated_at, last_activity_at) - created_at) / 60000.0) AS avg_session_duration_minutes
  FROM edge_mcp_sessions
 GROUP BY tenant_id;
