-- SPDX-License-Identifier: Apache-2.0
-- Secrets that values of the configuration name as ${secret:NAME}.  The value is sealed by a key of the tenant
-- `default`.
CREATE TABLE secrets (
    name       TEXT PRIMARY KEY NOT NULL,
    sealed     BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
