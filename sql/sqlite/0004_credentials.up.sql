-- SPDX-License-Identifier: Apache-2.0
-- The keys that seal what is stored for other services: one or more per tenant, the newest seals.  Each is
-- itself sealed by a master key that is not in the database; master_id says by which.
CREATE TABLE tenant_keys (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL REFERENCES tenants (id),
    master_id  TEXT NOT NULL,
    wrapped    BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_tenant_keys_tenant ON tenant_keys (tenant_id, id);

-- What a change of keys has to go through.
CREATE INDEX idx_edge_sessions_sealed ON edge_mcp_sessions (id) WHERE passthrough_auth_encrypted IS NOT NULL;
