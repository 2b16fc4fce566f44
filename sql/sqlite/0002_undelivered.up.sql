-- SPDX-License-Identifier: Apache-2.0
-- Results whose reply did not reach its client, sealed, kept for a while and handed out once.  What
-- the sealed bytes are bound to (tenant, owner, session, digest) stands beside them in clear.

CREATE TABLE undelivered (
    id         INTEGER PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    owner      TEXT NOT NULL,
    session_id TEXT NOT NULL,
    -- Of what was asked: method, server, tool and arguments.
    digest     BLOB NOT NULL CHECK (length(digest) = 32),
    -- The intent's event; 0 when its server is not audited.
    execution  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    sealed     BLOB NOT NULL
) STRICT;
CREATE INDEX idx_undelivered_expires ON undelivered (expires_at);
