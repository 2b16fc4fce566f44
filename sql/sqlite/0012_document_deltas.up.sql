-- SPDX-License-Identifier: Apache-2.0
-- A revision that differs little from the one before it is stored as the difference: the first `prefix` bytes of that one, then
-- `middle`, then the last `suffix` bytes of that one.  Each revision is either here or, whole, in document_contents.  depth
-- counts from the last whole one.  Revisions that are there stay as they are.
CREATE TABLE document_deltas (
    document_id TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    depth       INTEGER NOT NULL,
    prefix      INTEGER NOT NULL,
    suffix      INTEGER NOT NULL,
    middle      BLOB NOT NULL,
    PRIMARY KEY (document_id, revision)
) STRICT;

-- Bytes that the history of a document takes, with 256 for each revision (HISTORY_ROW_BYTES of store/rows.h).
ALTER TABLE documents ADD COLUMN stored INTEGER NOT NULL DEFAULT 0;
UPDATE documents SET stored =
    (SELECT coalesce(sum(length(content) + 256), 0) FROM document_contents c WHERE c.document_id = documents.id);
