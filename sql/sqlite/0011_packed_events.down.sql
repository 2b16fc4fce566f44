-- SPDX-License-Identifier: Apache-2.0
-- Back to 0010.  Every event is unpacked, with a function that `holdfast db rollback` brings along; the file grows by what
-- packing had saved.
UPDATE events SET records = unpacked(records), bodies = unpacked(bodies) WHERE packed;
ALTER TABLE events DROP COLUMN packed;
