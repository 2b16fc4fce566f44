-- SPDX-License-Identifier: Apache-2.0
-- How much the audit holds, by tenant and day of the events, so that sizes are known without reading events.  Bytes are
-- logical: as events and bodies are before they are packed (src/store/sizes.h).  The fold adds, removals subtract.
CREATE TABLE audit_sizes (
    tenant_id   TEXT NOT NULL,
    day         INTEGER NOT NULL,
    events      INTEGER NOT NULL,
    event_bytes INTEGER NOT NULL,
    bodies      INTEGER NOT NULL,
    body_bytes  INTEGER NOT NULL,
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, day)
) STRICT, WITHOUT ROWID;

-- Events that were folded before this table existed, from next_id to last_id; the reaper counts them, and a row goes when
-- it is through.
CREATE TABLE audit_sizes_todo (
    writer  INTEGER PRIMARY KEY,
    next_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL
) STRICT;
INSERT INTO audit_sizes_todo (writer, next_id, last_id)
SELECT writer, writer << 40, max(last_id) FROM fold_state GROUP BY writer;
