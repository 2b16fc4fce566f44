-- SPDX-License-Identifier: Apache-2.0
-- A revision that differs little from the one before it is stored as the difference: the first `prefix` bytes of that one, then
-- `middle`, then the last `suffix` bytes of that one.  Each revision is either here or, whole, in document_contents.  depth
-- counts from the last whole one.  Revisions that are there stay as they are.
CREATE TABLE IF NOT EXISTS mcp.document_deltas (
    document_id uuid NOT NULL,
    revision    bigint NOT NULL,
    depth       bigint NOT NULL,
    prefix      bigint NOT NULL,
    suffix      bigint NOT NULL,
    middle      bytea NOT NULL,
    PRIMARY KEY (document_id, revision)
);

-- Bytes that the history of a document takes, with 256 for each revision (HISTORY_ROW_BYTES of store/rows.h).
ALTER TABLE mcp.documents ADD COLUMN IF NOT EXISTS stored bigint NOT NULL DEFAULT 0;
UPDATE mcp.documents d SET stored =
    (SELECT coalesce(sum(length(content) + 256), 0) FROM mcp.document_contents c WHERE c.document_id = d.id);

-- Takes the oldest revisions away, a whole one with the differences from it at a time, while more than p_max bytes
-- are stored.  The newest whole one stays, with all that follow it.  Returns what is stored then.
CREATE OR REPLACE FUNCTION mcp.hf_document_prune(p_id uuid, p_stored bigint, p_max bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    next bigint;
    taken bigint;
BEGIN
    WHILE p_max > 0 AND p_stored > p_max LOOP
        SELECT revision INTO next FROM mcp.document_contents WHERE document_id = p_id
         ORDER BY revision OFFSET 1 LIMIT 1;
        EXIT WHEN NOT FOUND;
        SELECT coalesce(sum(n), 0) INTO taken FROM (
            SELECT length(content) + 256 AS n FROM mcp.document_contents WHERE document_id = p_id AND revision < next
            UNION ALL
            SELECT length(middle) + 256 FROM mcp.document_deltas WHERE document_id = p_id AND revision < next) t;
        DELETE FROM mcp.document_contents WHERE document_id = p_id AND revision < next;
        DELETE FROM mcp.document_deltas WHERE document_id = p_id AND revision < next;
        DELETE FROM mcp.document_revisions WHERE document_id = p_id AND revision < next;
        p_stored := p_stored - taken;
    END LOOP;
    RETURN p_stored;
END $$;

-- As hf_document_revise() of 0006, which stays for nodes of the version before.  The new text shares its first p_prefix and
-- last p_suffix bytes with the one whose digest is p_follows (NULL: not known).  p_max: see hf_document_prune(); 0: no limit.
CREATE OR REPLACE FUNCTION mcp.hf_document_revise(p_id uuid, p_folder text, p mcp.document_revisions,
                                                  p_content bytea, p_even_if_same boolean,
                                                  p_prefix bigint, p_suffix bigint, p_follows bytea, p_max bigint,
                                                  OUT ret_verdict integer, OUT ret_id uuid,
                                                  OUT ret_revision bigint)
LANGUAGE plpgsql AS $$
DECLARE
    d mcp.documents;
    last bigint;
    middle bigint := length(p_content) - p_prefix - p_suffix;
    is_delta boolean;
BEGIN
    ret_verdict := 0;
    LOOP
        SELECT * INTO d FROM mcp.documents
         WHERE folder = p_folder AND path = p.path AND ended_at IS NULL FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO mcp.documents (id, folder, path, revision, sha256, created_at, changed_at)
        VALUES (p_id, p_folder, p.path, 0, p.sha256, p.made_at, p.made_at) ON CONFLICT DO NOTHING;
        IF NOT FOUND AND EXISTS (SELECT FROM mcp.documents WHERE id = p_id) THEN
            ret_verdict := 1;
            RETURN;
        END IF;
    END LOOP;
    ret_id := d.id;
    ret_revision := d.revision;
    IF d.revision > 0 AND d.sha256 = p.sha256 AND NOT p_even_if_same THEN
        RETURN;
    END IF;
    ret_revision := d.revision + 1;
    SELECT depth INTO last FROM mcp.document_deltas WHERE document_id = d.id AND revision = d.revision;
    is_delta := d.revision > 0 AND d.sha256 = p_follows AND middle < length(p_content) / 2
                AND coalesce(last, 0) < 31;
    INSERT INTO mcp.document_revisions (document_id, revision, made_at, author, kind, reason, path, sha256, size)
    VALUES (d.id, ret_revision, p.made_at, p.author, p.kind, p.reason, p.path, p.sha256, p.size);
    IF is_delta THEN
        INSERT INTO mcp.document_deltas (document_id, revision, depth, prefix, suffix, middle)
        VALUES (d.id, ret_revision, coalesce(last, 0) + 1, p_prefix, p_suffix,
                substring(p_content FROM p_prefix::integer + 1 FOR middle::integer));
        d.stored := mcp.hf_document_prune(d.id, d.stored + middle + 256, p_max);
    END IF;
    IF is_delta AND p_max > 0 AND d.stored > p_max THEN
        DELETE FROM mcp.document_deltas WHERE document_id = d.id AND revision = ret_revision;
        d.stored := d.stored - middle - 256;
        is_delta := false;
    END IF;
    IF NOT is_delta THEN
        INSERT INTO mcp.document_contents (document_id, revision, content) VALUES (d.id, ret_revision, p_content);
        d.stored := mcp.hf_document_prune(d.id, d.stored + length(p_content) + 256, p_max);
    END IF;
    UPDATE mcp.documents SET revision = ret_revision, sha256 = p.sha256, changed_at = p.made_at, stored = d.stored
     WHERE id = d.id;
END $$;
