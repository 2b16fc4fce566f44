/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of the knowledge base, for both SQL backends: documents, their history, and the lines that
 * sessions have seen. */
#include "docs/store/impl.h"

#define AT(member) offsetof(struct document_row, member)
static const struct row_column document_columns[] = {
    {COLUMN_UUID, AT(id), "id"},
    {COLUMN_TEXT, AT(folder), "folder"},
    {COLUMN_TEXT, AT(path), "path"},
    {COLUMN_INT, AT(revision), "revision"},
    {COLUMN_SHA, AT(sha256), "sha256"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_INSTANT, AT(changed_ms), "changed_at"},
    {COLUMN_TIME, AT(ended_ms), "ended_at"},
};
#undef AT
static const struct row_type document = {sizeof(struct document_row), document_columns,
                                         countof(document_columns), NULL};

#define AT(member) offsetof(struct revision_row, member)
static const struct row_column revision_columns[] = {
    {COLUMN_UUID, AT(document_id), "r.document_id"},
    {COLUMN_INT, AT(revision), "r.revision"},
    {COLUMN_INSTANT, AT(at_ms), "r.made_at"},
    {COLUMN_TEXT, AT(author), "r.author"},
    {COLUMN_TEXT, AT(kind), "r.kind"},
    {COLUMN_TEXT, AT(reason), "r.reason"},
    {COLUMN_TEXT, AT(path), "r.path"},
    {COLUMN_SHA, AT(sha256), "r.sha256"},
    {COLUMN_INT, AT(size), "r.size"},
    {COLUMN_BOOL, AT(has_text),
     "EXISTS (SELECT 1 FROM document_contents w WHERE w.document_id = r.document_id "
     "AND w.revision <= r.revision)",
     "EXISTS (SELECT FROM mcp.document_contents w WHERE w.document_id = r.document_id "
     "AND w.revision <= r.revision)"},
    {COLUMN_BYTES, AT(content), "c.content"},
};
#undef AT
static const struct row_type revision = {sizeof(struct revision_row), revision_columns,
                                         countof(revision_columns), NULL};
/* Without the content, which is in a table of its own. */
static const struct row_type revision_listed = {sizeof(struct revision_row), revision_columns,
                                                countof(revision_columns) - 1, NULL};

/* Statements give these columns literally, because a whole text has neither prefix nor suffix. */
#define AT(member) offsetof(struct revision_part, member)
static const struct row_column part_columns[] = {
    {COLUMN_INT, AT(prefix), "prefix"},
    {COLUMN_INT, AT(suffix), "suffix"},
    {COLUMN_BYTES, AT(middle), "middle"},
};
#undef AT
_Static_assert(sizeof(size_t) == sizeof(int64_t), "COLUMN_INT reads into a size_t");

static void finish_part(void *row)
{
    struct revision_part *part = row;
    if (!part->middle.p)
        part->middle = STR("");
}
const struct row_type sql_revision_part = {sizeof(struct revision_part), part_columns,
                                           countof(part_columns), finish_part};

#define AT(member) offsetof(struct document_read_row, member)
static const struct row_column read_columns[] = {
    {COLUMN_UUID, AT(session_id), "r.session_id"},
    {COLUMN_TEXT, AT(folder), "d.folder"},
    {COLUMN_TEXT, AT(path), "d.path"},
    {COLUMN_INT, AT(revision), "r.revision"},
    {COLUMN_INT, AT(from_line), "r.from_line"},
    {COLUMN_INT, AT(to_line), "r.to_line"},
    {COLUMN_INSTANT, AT(at_ms), "r.read_at"},
};
#undef AT
static const struct row_type document_read = {sizeof(struct document_read_row), read_columns,
                                              countof(read_columns), NULL};

static unsigned by_number(const struct store_call *c)
{
    return c->number != 0;
}

#define SQ_WITH_CONTENT                                                                            \
    "SELECT @ FROM document_revisions r LEFT JOIN document_contents c "                            \
    "ON c.document_id = r.document_id AND c.revision = r.revision WHERE r.document_id = ?1 "
#define PG_WITH_CONTENT                                                                            \
    "SELECT @ FROM mcp.document_revisions r LEFT JOIN mcp.document_contents c "                    \
    "USING (document_id, revision) WHERE r.document_id = $1::uuid "

#define PLACE_ARG(member) FILTER_ARG(ARG_NAME, document_place, member)

const struct sql_read sql_document_reads[] = {
    {VERB_DOCUMENT,
     &document,
     {PLACE_ARG(folder), PLACE_ARG(path)},
     NULL,
     {{"SELECT @ FROM documents WHERE folder = ?1 AND path = ?2 AND ended_at IS NULL"},
      {"SELECT @ FROM mcp.documents WHERE folder = $1::text AND path = $2::text "
       "AND ended_at IS NULL"}}},
    {VERB_DOCUMENT_ENDED,
     &document,
     {PLACE_ARG(folder), PLACE_ARG(path)},
     NULL,
     {{"SELECT @ FROM documents WHERE folder = ?1 AND path = ?2 AND ended_at IS NOT NULL "
       "ORDER BY ended_at DESC, id DESC LIMIT 1"},
      {"SELECT @ FROM mcp.documents WHERE folder = $1::text AND path = $2::text "
       "AND ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT 1"}}},
    {VERB_DOCUMENT_BY_ID,
     &document,
     {CALL_ARG(ARG_UUID, id)},
     NULL,
     {{"SELECT @ FROM documents WHERE id = ?1"},
      {"SELECT @ FROM mcp.documents WHERE id = $1::uuid"}}},
    {VERB_DOCUMENTS_PAGE,
     &document,
     {PLACE_ARG(folder), CALL_ARG(ARG_FROM, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM documents WHERE folder = ?1 AND path > ?2 AND ended_at IS NULL "
       "ORDER BY path LIMIT ?3"},
      {"SELECT @ FROM mcp.documents WHERE folder = $1::text AND path > $2::text "
       "AND ended_at IS NULL ORDER BY path LIMIT $3::bigint"}}},
    {VERB_DOCUMENT_HISTORY,
     &revision_listed,
     {CALL_ARG(ARG_UUID, id), CALL_ARG(ARG_INT_BEFORE, after_id), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM document_revisions r WHERE r.document_id = ?1 AND r.revision < ?2 "
       "ORDER BY r.revision DESC LIMIT ?3"},
      {"SELECT @ FROM mcp.document_revisions r WHERE r.document_id = $1::uuid "
       "AND r.revision < $2::bigint ORDER BY r.revision DESC LIMIT $3::bigint"}}},
    /* Handlers in both backends assemble the text of a revision that is stored as a difference. */
    {VERB_DOCUMENT_REVISION,
     &revision,
     {CALL_ARG(ARG_UUID, id), CALL_ARG(ARG_INT, number)},
     by_number,
     {{SQ_WITH_CONTENT "AND ?2 = 0 ORDER BY r.revision DESC LIMIT 1",
       SQ_WITH_CONTENT "AND r.revision = ?2"},
      {PG_WITH_CONTENT "AND $2::bigint = 0 AND r.revision = (SELECT d.revision FROM "
                       "mcp.documents d WHERE d.id = $1)",
       PG_WITH_CONTENT "AND r.revision = $2::bigint"}}},
    {VERB_DOCUMENT_READS,
     &document_read,
     {CALL_ARG(ARG_UUID, session_id), CALL_ARG(ARG_UUID, id), {ARG_TENANT}, {ARG_OWNER}},
     NULL,
     {{"SELECT @ FROM document_reads r JOIN documents d ON d.id = r.document_id "
       "WHERE r.session_id = ?1 AND r.document_id = ?2 AND EXISTS (SELECT 1 FROM "
       "edge_mcp_sessions WHERE id = ?1 AND tenant_id = ?3 AND owner = ?4) ORDER BY r.seq"},
      {"SELECT @ FROM mcp.document_reads r JOIN mcp.documents d ON d.id = r.document_id "
       "WHERE r.session_id = $1::uuid AND r.document_id = $2::uuid "
       "AND mcp.hf_owns($1, $3::text, $4::text) ORDER BY r.seq"}}},
    {0},
};
