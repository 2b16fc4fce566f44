-- SPDX-License-Identifier: Apache-2.0
-- Holds exempt a session or a user from every removal.  target: the id of the session's or user's row.
CREATE TABLE audit_holds (
    id          TEXT PRIMARY KEY NOT NULL,
    tenant_id   TEXT NOT NULL,
    kind        INTEGER NOT NULL CHECK (kind IN (0, 1)),
    target      TEXT NOT NULL,
    reason      TEXT,
    made_by     TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    released_at INTEGER,
    released_by TEXT
) STRICT;
CREATE UNIQUE INDEX idx_audit_holds_live ON audit_holds (tenant_id, kind, target) WHERE released_at IS NULL;
CREATE INDEX idx_audit_holds_tenant ON audit_holds (tenant_id, id);
CREATE INDEX idx_api_keys_user ON api_keys (user_id) WHERE user_id IS NOT NULL;

-- What is held now: 0 a session, by its id; 1 an owner, that is a held user or a key of such a user.
CREATE VIEW audit_held (tenant_id, kind, name) AS
SELECT tenant_id, 0, target FROM audit_holds WHERE released_at IS NULL AND kind = 0
UNION ALL
SELECT tenant_id, 1, 'user:' || target FROM audit_holds WHERE released_at IS NULL AND kind = 1
UNION ALL
SELECT h.tenant_id, 1, 'key:' || k.id FROM audit_holds h JOIN api_keys k ON k.user_id = h.target
 WHERE h.released_at IS NULL AND h.kind = 1;
