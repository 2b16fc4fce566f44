-- SPDX-License-Identifier: Apache-2.0
-- How requests to each server went, over all starts.

CREATE TABLE server_health (
    name           TEXT PRIMARY KEY NOT NULL,
    calls          INTEGER NOT NULL,
    failures       INTEGER NOT NULL,
    last_ok_at     INTEGER NOT NULL,
    last_failed_at INTEGER NOT NULL,
    last_error     BLOB
) STRICT;
