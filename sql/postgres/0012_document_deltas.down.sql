-- SPDX-License-Identifier: Apache-2.0
-- Back to 0011: every revision is whole again.
DO $$
DECLARE
    d mcp.document_deltas;
BEGIN
    FOR d IN SELECT * FROM mcp.document_deltas ORDER BY document_id, revision LOOP
        INSERT INTO mcp.document_contents (document_id, revision, content)
        SELECT d.document_id, d.revision,
               substring(c.content FROM 1 FOR d.prefix::integer) || d.middle ||
               substring(c.content FROM length(c.content) - d.suffix::integer + 1)
          FROM mcp.document_contents c WHERE c.document_id = d.document_id AND c.revision = d.revision - 1;
    END LOOP;
END $$;
DROP FUNCTION mcp.hf_document_revise(uuid, text, mcp.document_revisions, bytea, boolean, bigint, bigint, bytea, bigint);
DROP FUNCTION mcp.hf_document_prune(uuid, bigint, bigint);
DROP TABLE mcp.document_deltas;
ALTER TABLE mcp.documents DROP COLUMN stored;
