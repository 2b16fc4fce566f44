-- SPDX-License-Identifier: Apache-2.0
-- Persons who are erased: what was removed, by whom and when.  names (JSON) and next_id tell what remains to be done; names is
-- NULL once they are removed.
CREATE TABLE audit_erasures (
    id         TEXT PRIMARY KEY NOT NULL,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    made_by    TEXT NOT NULL,
    reason     TEXT,
    names      TEXT,
    next_id    INTEGER NOT NULL,
    bodies     INTEGER NOT NULL,
    body_bytes INTEGER NOT NULL,
    sessions   INTEGER NOT NULL,
    held       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    moved_at   INTEGER NOT NULL,
    done_at    INTEGER
) STRICT;
CREATE UNIQUE INDEX idx_audit_erasures_open ON audit_erasures (user_id) WHERE done_at IS NULL;
CREATE INDEX idx_audit_erasures_tenant ON audit_erasures (tenant_id, id);
