-- SPDX-License-Identifier: Apache-2.0
-- Back to 0011: every revision is whole again.
WITH RECURSIVE whole (document_id, revision, content) AS (
    SELECT c.document_id, c.revision, c.content FROM document_contents c
     WHERE EXISTS (SELECT 1 FROM document_deltas d WHERE d.document_id = c.document_id AND d.revision = c.revision + 1)
    UNION ALL
    SELECT d.document_id, d.revision,
           CAST(substr(w.content, 1, d.prefix) || d.middle || substr(w.content, length(w.content) - d.suffix + 1) AS BLOB)
      FROM whole w JOIN document_deltas d ON d.document_id = w.document_id AND d.revision = w.revision + 1
)
INSERT INTO document_contents (document_id, revision, content)
SELECT w.document_id, w.revision, w.content
  FROM whole w JOIN document_deltas d ON d.document_id = w.document_id AND d.revision = w.revision;
DROP TABLE document_deltas;
ALTER TABLE documents DROP COLUMN stored;
