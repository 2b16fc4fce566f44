-- SPDX-License-Identifier: Apache-2.0
-- The texts of old revisions are deleted folder by folder, in the order of the documents' ids.
CREATE INDEX IF NOT EXISTS idx_documents_folder ON mcp.documents (folder, id);

-- The text of a revision: the last whole one, and the differences from it.  NULL: it was deleted.
CREATE OR REPLACE FUNCTION mcp.hf_document_text(p_id uuid, p_revision bigint) RETURNS bytea
LANGUAGE plpgsql AS $$
DECLARE
    whole bigint;
    body bytea;
    d mcp.document_deltas;
BEGIN
    SELECT revision, content INTO whole, body FROM mcp.document_contents
     WHERE document_id = p_id AND revision <= p_revision ORDER BY revision DESC LIMIT 1;
    IF whole IS NULL THEN
        RETURN NULL;
    END IF;
    FOR d IN SELECT * FROM mcp.document_deltas
              WHERE document_id = p_id AND revision > whole AND revision <= p_revision ORDER BY revision LOOP
        body := substring(body FROM 1 FOR d.prefix::integer) || d.middle
                || substring(body FROM (length(body) - d.suffix + 1)::integer);
    END LOOP;
    RETURN body;
END $$;

-- Deletes the texts of the folder's revisions that another text replaced by p_before, or that ended with their
-- document by then.  Looks at the next p_limit documents after p_after, and stops after p_bytes of texts.  The first
-- text that stays may be a difference from a deleted one, so it is stored whole before.
CREATE OR REPLACE FUNCTION mcp.hf_documents_age(p_folder text, p_before timestamptz, p_after uuid, p_limit bigint,
                                                p_bytes bigint, OUT ret_last uuid, OUT ret_documents bigint,
                                                OUT ret_texts bigint, OUT ret_bytes bigint)
LANGUAGE plpgsql AS $$
DECLARE
    doc mcp.documents;
    first_kept bigint;
    body bytea;
    written bigint := 0;
    n bigint;
    taken bigint;
    was_middle bigint;
BEGIN
    ret_documents := 0;
    ret_texts := 0;
    ret_bytes := 0;
    FOR doc IN SELECT * FROM mcp.documents WHERE folder = p_folder AND id > p_after ORDER BY id LIMIT p_limit LOOP
        EXIT WHEN ret_bytes + written >= p_bytes;
        ret_last := doc.id;
        ret_documents := ret_documents + 1;
        IF doc.ended_at <= p_before THEN
            first_kept := 9223372036854775807;
        ELSE
            SELECT revision INTO first_kept FROM mcp.document_revisions
             WHERE document_id = doc.id AND made_at <= p_before ORDER BY revision DESC LIMIT 1;
        END IF;
        CONTINUE WHEN first_kept IS NULL OR NOT EXISTS (
            SELECT FROM mcp.document_contents WHERE document_id = doc.id AND revision < first_kept);
        -- A document that is being changed waits for the next run.
        PERFORM FROM mcp.documents WHERE id = doc.id FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        IF first_kept < 9223372036854775807 AND NOT EXISTS (
               SELECT FROM mcp.document_contents WHERE document_id = doc.id AND revision = first_kept) THEN
            body := mcp.hf_document_text(doc.id, first_kept);
            CONTINUE WHEN body IS NULL;
            DELETE FROM mcp.document_deltas WHERE document_id = doc.id AND revision = first_kept
            RETURNING length(middle) INTO was_middle;
            INSERT INTO mcp.document_contents (document_id, revision, content) VALUES (doc.id, first_kept, body);
            UPDATE mcp.documents SET stored = stored + length(body) - coalesce(was_middle, 0) WHERE id = doc.id;
            written := written + length(body);
        END IF;
        WITH c AS (DELETE FROM mcp.document_contents WHERE document_id = doc.id AND revision < first_kept
                   RETURNING length(content) + 256 AS size),
             d AS (DELETE FROM mcp.document_deltas WHERE document_id = doc.id AND revision < first_kept
                   RETURNING length(middle) + 256 AS size)
        SELECT count(*), coalesce(sum(size), 0) INTO n, taken FROM (SELECT size FROM c UNION ALL SELECT size FROM d) t;
        UPDATE mcp.documents SET stored = stored - taken WHERE id = doc.id;
        ret_texts := ret_texts + n;
        ret_bytes := ret_bytes + taken;
    END LOOP;
END $$;
