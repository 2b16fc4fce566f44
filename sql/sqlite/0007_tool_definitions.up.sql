-- SPDX-License-Identifier: Apache-2.0
-- What each server's tools were last seen to be, and what of that somebody has approved.

CREATE TABLE tool_definitions (
    server              TEXT NOT NULL,
    name                TEXT NOT NULL,
    digest              BLOB NOT NULL CHECK (length(digest) = 32),
    definition          BLOB,
    approved            BLOB CHECK (length(approved) = 32),
    approved_definition BLOB,
    first_seen_at       INTEGER NOT NULL,
    changed_at          INTEGER NOT NULL,
    gone_at             INTEGER,
    approved_at         INTEGER,
    PRIMARY KEY (server, name)
) STRICT;
