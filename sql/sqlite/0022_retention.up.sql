-- SPDX-License-Identifier: Apache-2.0
-- Retention.  The version changes with every removal and with every new hold, so that nothing is removed that changed
-- since it was read.
CREATE TABLE audit_retention (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO audit_retention VALUES (1, 0);
CREATE TRIGGER audit_holds_made AFTER INSERT ON audit_holds
BEGIN
    UPDATE audit_retention SET version = version + 1;
END;

-- Checkpoints: consecutive events of one chain that were removed (src/retention/store/rows.h).
CREATE TABLE audit_removed (
    writer     INTEGER NOT NULL,
    tenant     TEXT NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,
    first_id   INTEGER NOT NULL,
    last_id    INTEGER NOT NULL,
    oldest_ms  INTEGER NOT NULL,
    newest_ms  INTEGER NOT NULL,
    by_age     INTEGER NOT NULL,
    by_size    INTEGER NOT NULL,
    removed_ms INTEGER NOT NULL,
    rule       TEXT NOT NULL,
    before     BLOB,
    after      BLOB,
    seal       BLOB,
    PRIMARY KEY (writer, tenant, first_seq)
) STRICT, WITHOUT ROWID;

-- Sums beside the events, by the kinds of enum tally_kind: what is stored of a tenant by hour, and what was removed and
-- not told of yet.
CREATE TABLE audit_tallies (
    kind       INTEGER NOT NULL,
    tenant     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    events     INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    body_bytes INTEGER NOT NULL,
    PRIMARY KEY (kind, tenant, at)
) STRICT, WITHOUT ROWID;
