-- SPDX-License-Identifier: Apache-2.0
-- The knowledge base: documents, what each of them was, and what each session has read of it.

-- At most one at a path is there; those that are gone keep their history.
CREATE TABLE IF NOT EXISTS mcp.documents (
    id         uuid PRIMARY KEY,
    folder     text COLLATE "C" NOT NULL,
    path       text COLLATE "C" NOT NULL,
    revision   bigint NOT NULL,
    sha256     bytea NOT NULL CHECK (length(sha256) = 32),
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE UNIQUE INDEX IF NOT EXISTS idx_documents_path ON mcp.documents (folder, path) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS idx_documents_ended ON mcp.documents (folder, path, ended_at, id)
    WHERE ended_at IS NOT NULL;

CREATE TABLE IF NOT EXISTS mcp.document_revisions (
    document_id uuid NOT NULL REFERENCES mcp.documents (id),
    revision    bigint NOT NULL,
    made_at     timestamptz NOT NULL,
    author      text,
    kind        text NOT NULL,
    reason      text,
    path        text NOT NULL,
    sha256      bytea NOT NULL CHECK (length(sha256) = 32),
    size        bigint NOT NULL,
    PRIMARY KEY (document_id, revision)
);

-- Apart, so that a page of the history does not go through what the documents were.
CREATE TABLE IF NOT EXISTS mcp.document_contents (
    document_id uuid NOT NULL,
    revision    bigint NOT NULL,
    content     bytea NOT NULL,
    PRIMARY KEY (document_id, revision)
);

-- In the order of seq; gone when the session is over.
CREATE TABLE IF NOT EXISTS mcp.document_reads (
    session_id  uuid NOT NULL,
    document_id uuid NOT NULL,
    seq         bigint NOT NULL,
    revision    bigint NOT NULL,
    from_line   bigint NOT NULL,
    to_line     bigint NOT NULL,
    read_at     timestamptz NOT NULL,
    PRIMARY KEY (session_id, document_id, seq)
);

-- Verdicts: 0 OK, 1 DUPLICATE, 3 MISSING, 4 NOT_ACTIVE.

-- p says what the revision is, but for its document and number.  Of two nodes that make the same
-- document at once one makes it, and the other finds it.
CREATE OR REPLACE FUNCTION mcp.hf_document_revise(p_id uuid, p_folder text, p mcp.document_revisions,
                                                  p_content bytea, p_even_if_same boolean,
                                                  OUT ret_verdict integer, OUT ret_id uuid,
                                                  OUT ret_revision bigint)
LANGUAGE plpgsql AS $$
DECLARE
    d mcp.documents;
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
    UPDATE mcp.documents SET revision = ret_revision, sha256 = p.sha256, changed_at = p.made_at WHERE id = d.id;
    INSERT INTO mcp.document_revisions (document_id, revision, made_at, author, kind, reason, path, sha256, size)
    VALUES (d.id, ret_revision, p.made_at, p.author, p.kind, p.reason, p.path, p.sha256, p.size);
    INSERT INTO mcp.document_contents (document_id, revision, content) VALUES (d.id, ret_revision, p_content);
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_document_move(p_folder text, p_path text, p_new_path text)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.documents SET path = p_new_path
     WHERE folder = p_folder AND path = p_path AND ended_at IS NULL
       AND NOT EXISTS (SELECT FROM mcp.documents d
                        WHERE d.folder = p_folder AND d.path = p_new_path AND d.ended_at IS NULL);
    IF FOUND THEN
        RETURN 0;
    END IF;
    RETURN CASE WHEN EXISTS (SELECT FROM mcp.documents
                              WHERE folder = p_folder AND path = p_path AND ended_at IS NULL)
                THEN 1 ELSE 3 END;
EXCEPTION WHEN unique_violation THEN
    RETURN 1;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_document_end(p_folder text, p_path text, p_ended timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mcp.documents SET ended_at = p_ended
     WHERE folder = p_folder AND path = p_path AND ended_at IS NULL;
    RETURN CASE WHEN FOUND THEN 0 ELSE 3 END;
END $$;

-- p says what was read, but for its document and number; under the lock of the session.
CREATE OR REPLACE FUNCTION mcp.hf_document_read(p_session uuid, p_tenant text, p_owner text, p_folder text,
                                                p_path text, p mcp.document_reads, p_max bigint,
                                                p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    verdict integer := mcp.hf_live(p_session, p_tenant, p_owner, false, p_now);
    d mcp.documents;
    last bigint;
BEGIN
    IF verdict <> 0 THEN
        RETURN verdict;
    END IF;
    SELECT * INTO d FROM mcp.documents WHERE folder = p_folder AND path = p_path AND ended_at IS NULL;
    IF NOT FOUND OR p.revision < 0 OR p.revision > d.revision THEN
        RETURN 3;
    END IF;
    IF p.revision = 0 THEN
        p.revision := d.revision;
    END IF;
    SELECT coalesce(max(seq), 0) INTO last FROM mcp.document_reads
     WHERE session_id = p_session AND document_id = d.id;
    UPDATE mcp.document_reads SET seq = last + 1, read_at = p.read_at
     WHERE session_id = p_session AND document_id = d.id
       AND seq = (SELECT max(seq) FROM mcp.document_reads
                   WHERE session_id = p_session AND document_id = d.id AND revision = p.revision
                     AND from_line <= p.from_line AND to_line >= p.to_line);
    IF FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM mcp.document_reads
     WHERE session_id = p_session AND document_id = d.id AND revision = p.revision
       AND from_line >= p.from_line AND to_line <= p.to_line;
    INSERT INTO mcp.document_reads (session_id, document_id, seq, revision, from_line, to_line, read_at)
    VALUES (p_session, d.id, last + 1, p.revision, p.from_line, p.to_line, p.read_at);
    DELETE FROM mcp.document_reads
     WHERE session_id = p_session AND document_id = d.id
       AND seq <= (SELECT seq FROM mcp.document_reads
                    WHERE session_id = p_session AND document_id = d.id
                    ORDER BY seq DESC OFFSET p_max LIMIT 1);
    RETURN 0;
END $$;
