-- SPDX-License-Identifier: Apache-2.0
-- The knowledge base: documents, what each of them was, and what each session has read of it.

-- At most one at a path is there; those that are gone keep their history.
CREATE TABLE documents (
    id         TEXT PRIMARY KEY NOT NULL,
    folder     TEXT NOT NULL,
    path       TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    sha256     BLOB NOT NULL CHECK (length(sha256) = 32),
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    ended_at   INTEGER
) STRICT;
CREATE UNIQUE INDEX idx_documents_path ON documents (folder, path) WHERE ended_at IS NULL;
CREATE INDEX idx_documents_ended ON documents (folder, path, ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE document_revisions (
    document_id TEXT NOT NULL REFERENCES documents (id),
    revision    INTEGER NOT NULL,
    made_at     INTEGER NOT NULL,
    author      TEXT,
    kind        TEXT NOT NULL,
    reason      TEXT,
    path        TEXT NOT NULL,
    sha256      BLOB NOT NULL CHECK (length(sha256) = 32),
    size        INTEGER NOT NULL,
    PRIMARY KEY (document_id, revision)
) STRICT, WITHOUT ROWID;

-- Apart, so that a page of the history does not go through what the documents were.
CREATE TABLE document_contents (
    document_id TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    content     BLOB NOT NULL,
    PRIMARY KEY (document_id, revision)
) STRICT;

-- In the order of seq; gone when the session is over.
CREATE TABLE document_reads (
    session_id  TEXT NOT NULL,
    document_id TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    from_line   INTEGER NOT NULL,
    to_line     INTEGER NOT NULL,
    read_at     INTEGER NOT NULL,
    PRIMARY KEY (session_id, document_id, seq)
) STRICT, WITHOUT ROWID;
