/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL texts of documents in SQLite that are not in the shared tables (sql.c). */
#include "docs/store/sqlite.h"

#define HISTORY_ROW "256" /* HISTORY_ROW_BYTES */
/* The reads of one document by one session. */
#define READ_OF "session_id = ?1 AND document_id = ?2 "

const struct sql_text sq_document_texts[] = {
    {SQ_DOCUMENT_IS,
     "SELECT 1 FROM documents WHERE folder = ?1 AND path = ?2 AND ended_at IS NULL"},
    {SQ_DOCUMENT_ADD, "INSERT INTO documents (id, folder, path, revision, sha256, created_at, "
                      "changed_at) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?5) ON CONFLICT DO NOTHING"},
    {SQ_DOCUMENT_REVISED, "UPDATE documents SET revision = revision + 1, sha256 = ?2, "
                          "changed_at = ?3 WHERE id = ?1"},
    {SQ_DOCUMENT_MOVE,
     "UPDATE documents SET path = ?3 WHERE folder = ?1 AND path = ?2 AND ended_at IS NULL "
     "AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.folder = ?1 AND d.path = ?3 "
     "AND d.ended_at IS NULL)"},
    {SQ_DOCUMENT_END,
     "UPDATE documents SET ended_at = ?3 WHERE folder = ?1 AND path = ?2 AND ended_at IS NULL"},
    {SQ_REVISION_ADD,
     "INSERT INTO document_revisions (document_id, revision, made_at, author, kind, reason, "
     "path, sha256, size) VALUES (?,?,?,?,?,?,?,?,?)"},
    {SQ_CONTENT_ADD,
     "INSERT INTO document_contents (document_id, revision, content) VALUES (?,?,?)"},
    {SQ_DELTA_ADD, "INSERT INTO document_deltas (document_id, revision, depth, prefix, suffix, "
                   "middle) VALUES (?,?,?,?,?,?)"},
    {SQ_DELTA_DROP, "DELETE FROM document_deltas WHERE document_id = ?1 AND revision = ?2"},
    {SQ_HISTORY_STATE,
     "SELECT stored, coalesce((SELECT depth FROM document_deltas WHERE document_id = ?1 "
     "AND revision = documents.revision), 0) FROM documents WHERE id = ?1"},
    {SQ_HISTORY_STORED, "UPDATE documents SET stored = ?2 WHERE id = ?1"},
    {SQ_HISTORY_SECOND, "SELECT revision FROM document_contents WHERE document_id = ?1 "
                        "ORDER BY revision LIMIT 1 OFFSET 1"},
    {SQ_HISTORY_BYTES,
     "SELECT (SELECT coalesce(sum(length(content) + " HISTORY_ROW "), 0) FROM document_contents "
     "WHERE document_id = ?1 AND revision < ?2) + (SELECT coalesce(sum(length(middle) "
     "+ " HISTORY_ROW "), 0) FROM document_deltas WHERE document_id = ?1 AND revision < ?2)"},
    {SQ_PRUNE_CONTENTS, "DELETE FROM document_contents WHERE document_id = ?1 AND revision < ?2"},
    {SQ_PRUNE_DELTAS, "DELETE FROM document_deltas WHERE document_id = ?1 AND revision < ?2"},
    {SQ_PRUNE_REVISIONS, "DELETE FROM document_revisions WHERE document_id = ?1 AND revision < ?2"},
    /* The last whole text up to revision ?2, and the differences after it up to ?2. */
    {SQ_REVISION_PARTS,
     "SELECT 0, 0, content, revision FROM document_contents WHERE document_id = ?1 "
     "AND revision = (SELECT max(revision) FROM document_contents WHERE document_id = ?1 "
     "AND revision <= ?2) UNION ALL SELECT prefix, suffix, middle, revision FROM "
     "document_deltas WHERE document_id = ?1 AND revision <= ?2 AND revision > (SELECT "
     "max(revision) FROM document_contents WHERE document_id = ?1 AND revision <= ?2) "
     "ORDER BY 4"},
    {SQ_READ_RENEW,
     "UPDATE document_reads SET read_at = ?6, seq = (SELECT max(seq) + 1 FROM document_reads "
     "WHERE " READ_OF ") WHERE " READ_OF "AND seq = (SELECT max(seq) FROM document_reads "
     "WHERE " READ_OF "AND revision = ?3 AND from_line <= ?4 AND to_line >= ?5)"},
    {SQ_READ_COVERED, "DELETE FROM document_reads WHERE " READ_OF
                      "AND revision = ?3 AND from_line >= ?4 AND to_line <= ?5"},
    {SQ_READ_ADD,
     "INSERT INTO document_reads (session_id, document_id, seq, revision, from_line, to_line, "
     "read_at) SELECT ?1, ?2, coalesce(max(seq), 0) + 1, ?3, ?4, ?5, ?6 FROM document_reads "
     "WHERE " READ_OF},
    {SQ_READ_PRUNE,
     "DELETE FROM document_reads WHERE " READ_OF "AND seq <= (SELECT seq FROM document_reads "
     "WHERE " READ_OF "ORDER BY seq DESC LIMIT 1 OFFSET ?3)"},
    /* The last of the next ?2 sessions after ?1, and how many there are.  Reads one entry of the
     * key per session. */
    {SQ_READS_UPTO,
     "WITH RECURSIVE s(id) AS (SELECT min(session_id) FROM document_reads WHERE session_id > ?1 "
     "UNION ALL SELECT (SELECT min(session_id) FROM document_reads WHERE session_id > s.id) "
     "FROM s WHERE s.id IS NOT NULL LIMIT ?2) SELECT max(id), count(id) FROM s"},
    {SQ_READS_COPY,
     "INSERT INTO document_reads (session_id, document_id, seq, revision, from_line, to_line, "
     "read_at) SELECT ?2, document_id, seq, revision, from_line, to_line, read_at FROM "
     "document_reads WHERE session_id = ?1 AND EXISTS (SELECT 1 FROM edge_mcp_sessions e WHERE "
     "e.id = ?2 AND e.tenant_id = ?3 AND e.owner = ?4 AND e.status IN ('active', 'idle')) "
     "ON CONFLICT DO NOTHING"},
    {SQ_READS_REAP,
     "DELETE FROM document_reads WHERE session_id > ?1 AND session_id <= ?2 AND NOT EXISTS "
     "(SELECT 1 FROM edge_mcp_sessions e WHERE e.id = document_reads.session_id "
     "AND e.status IN ('active', 'idle'))"},
    {SQ_AGE_DOCUMENTS, "SELECT id, coalesce(ended_at, 0) FROM documents WHERE folder = ?1 "
                       "AND id > ?2 ORDER BY id LIMIT ?3"},
    /* The revision whose text was the current one at the time ?2. */
    {SQ_AGE_FROM, "SELECT revision FROM document_revisions WHERE document_id = ?1 "
                  "AND made_at <= ?2 ORDER BY revision DESC LIMIT 1"},
    {SQ_AGE_FIRST,
     "SELECT coalesce(min(revision), 0) FROM document_contents WHERE document_id = ?1 "
     "AND revision < ?2"},
    {SQ_AGE_TEXTS,
     "SELECT (SELECT count(*) FROM document_contents WHERE document_id = ?1 AND revision < ?2) + "
     "(SELECT count(*) FROM document_deltas WHERE document_id = ?1 AND revision < ?2)"},
    {SQ_AGE_IS_WHOLE,
     "SELECT count(*) FROM document_contents WHERE document_id = ?1 AND revision = ?2"},
    {SQ_AGE_MIDDLE, "SELECT coalesce(sum(length(middle)), 0) FROM document_deltas "
                    "WHERE document_id = ?1 AND revision = ?2"},
    {0},
};
