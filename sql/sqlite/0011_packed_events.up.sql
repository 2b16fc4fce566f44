-- SPDX-License-Identifier: Apache-2.0
-- Whether the records and bodies of a segment are packed (src/store/pack.h).  Those that are there stay as they are.
ALTER TABLE events ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
