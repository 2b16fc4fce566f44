-- SPDX-License-Identifier: Apache-2.0
-- Templates: named set-ups of sessions, with every version of them.  Sessions hold a copy of what they took.
CREATE TABLE session_templates (
    tenant_id  TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    spec       TEXT NOT NULL,
    PRIMARY KEY (tenant_id, name, version)
) STRICT, WITHOUT ROWID;
