-- SPDX-License-Identifier: Apache-2.0
-- How far each sink is, and which writer sends.  position: NULL until the sink knows where it begins.
CREATE TABLE sink_positions (
    name        TEXT PRIMARY KEY NOT NULL,
    position    TEXT,
    writer      INTEGER NOT NULL,
    saved_at    INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;
