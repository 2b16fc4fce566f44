/* SPDX-License-Identifier: Apache-2.0 */
/* Documents, their history and the reads of sessions, in PostgreSQL.  Functions of the schema
 * (sql/postgres) decide the verdicts, under the lock of the document or session. */
#include "docs/store/impl.h"
#include "store/postgres_impl.h"

enum pg_document_statement {
    PG_DOCUMENT_REVISE = PG_COUNT + SQL_FAMILY,
    PG_DOCUMENT_MOVE,
    PG_DOCUMENT_END,
    PG_DOCUMENT_READ,
    PG_REVISION_PARTS,
    PG_READS_UPTO,
    PG_READS_REAP,
    PG_DOCUMENTS_AGE,
    PG_READS_COPY,
};

static const struct sql_text texts[] = {
    /* Parameters in the order of the columns of mcp.document_revisions; PG_DOCUMENT_READ likewise
     * of mcp.document_reads. */
    {PG_DOCUMENT_REVISE,
     "SELECT mcp.hf_require(v.ret_verdict, $16::boolean), v.ret_id::text, v.ret_revision FROM "
     "mcp.hf_document_revise($1::uuid, $2::text, ROW(NULL, NULL, $3::timestamptz, $4::text, "
     "$5::text, $6::text, $7::text, $8::bytea, $9::bigint)::mcp.document_revisions, "
     "$10::bytea, $11::boolean, $12::bigint, $13::bigint, $14::bytea, $15::bigint) v"},
    {PG_DOCUMENT_MOVE, PG_VERB("hf_document_move($1::text, $2::text, $3::text)", "$4")},
    {PG_DOCUMENT_END, PG_VERB("hf_document_end($1::text, $2::text, $3::timestamptz)", "$4")},
    {PG_DOCUMENT_READ,
     PG_VERB("hf_document_read($1::uuid, $2::text, $3::text, $4::text, $5::text, ROW(NULL, NULL, "
             "NULL, $6::bigint, $7::bigint, $8::bigint, $9::timestamptz)::mcp.document_reads, "
             "$10::bigint, $11::timestamptz)",
             "$12")},
    /* The last whole text up to revision $2, and the differences after it up to $2. */
    {PG_REVISION_PARTS,
     "WITH whole AS (SELECT revision, content FROM mcp.document_contents WHERE document_id = "
     "$1::uuid AND revision <= $2::bigint ORDER BY revision DESC LIMIT 1) SELECT 0::bigint, "
     "0::bigint, content, revision FROM whole UNION ALL SELECT prefix, suffix, middle, revision "
     "FROM mcp.document_deltas WHERE document_id = $1 AND revision <= $2 AND revision > (SELECT "
     "revision FROM whole) ORDER BY 4"},
    /* The last of the next $2 sessions after $1, and how many there are.  Reads one entry of the
     * key per session. */
    {PG_READS_UPTO,
     "WITH RECURSIVE s(id) AS ((SELECT session_id FROM mcp.document_reads WHERE session_id > "
     "$1::uuid ORDER BY session_id LIMIT 1) UNION ALL SELECT (SELECT session_id FROM "
     "mcp.document_reads WHERE session_id > s.id ORDER BY session_id LIMIT 1) FROM s "
     "WHERE s.id IS NOT NULL) SELECT x.id::text, count(*) OVER () FROM (SELECT id FROM s "
     "LIMIT $2::bigint) x WHERE x.id IS NOT NULL ORDER BY x.id DESC LIMIT 1"},
    {PG_READS_REAP,
     "DELETE FROM mcp.document_reads r WHERE session_id > $1::uuid AND session_id <= $2::uuid "
     "AND NOT EXISTS (SELECT FROM mcp.edge_mcp_sessions e WHERE e.id = r.session_id "
     "AND e.status IN ('active', 'idle'))"},
    {PG_READS_COPY,
     "WITH copied AS (INSERT INTO mcp.document_reads (session_id, document_id, seq, revision, "
     "from_line, to_line, read_at) SELECT $2::uuid, document_id, seq, revision, from_line, "
     "to_line, "
     "read_at FROM mcp.document_reads WHERE session_id = $1::uuid AND EXISTS (SELECT FROM "
     "mcp.edge_mcp_sessions e WHERE e.id = $2 AND e.tenant_id = $3::text AND e.owner = $4::text "
     "AND e.status IN ('active', 'idle')) ON CONFLICT DO NOTHING RETURNING 1) "
     "SELECT mcp.hf_require(0, $5::boolean) FROM (SELECT count(*) FROM copied) n"},
    {PG_DOCUMENTS_AGE,
     "SELECT mcp.hf_require(0, $6::boolean), v.ret_last::text, v.ret_documents, v.ret_texts, "
     "v.ret_bytes FROM mcp.hf_documents_age($1::text, $2::timestamptz, $3::uuid, $4::bigint, "
     "$5::bigint) v"},
    {0},
};

static void document_revise(struct pg_params *p, const struct store_op *op,
                            int64_t now_ms unused_arg)
{
    const struct document_revise *rows = op->row;
    const struct revision_row *r = rows->revision;
    pg_own_uuid(p, rows->document->id);
    pg_text(p, rows->document->folder);
    pg_instant(p, r->at_ms);
    pg_text(p, r->author);
    pg_text(p, r->kind);
    pg_text(p, r->reason);
    pg_text(p, rows->document->path);
    pg_bytes(p, str_n((const char *)r->sha256, sizeof(r->sha256)));
    pg_int(p, (int64_t)r->content.n);
    pg_bytes(p, r->content);
    pg_bool(p, rows->even_if_same);
    pg_int(p, (int64_t)r->prefix);
    pg_int(p, (int64_t)r->suffix);
    pg_bytes(p, str_n((const char *)r->follows, sizeof(r->follows)));
    pg_int(p, r->history_max);
}

static void document_revised(struct pg_row *r, const struct store_op *op)
{
    const struct document_revise *rows = op->row;
    revision_row_name(rows->revision, pg_peek_bytes(r));
    rows->revision->revision = pg_get_int(r);
}

static void document_move(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct document_row *d = op->row;
    pg_text(p, d->folder);
    pg_text(p, d->path);
    pg_text(p, d->new_path);
}

static void document_end(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct document_row *d = op->row;
    pg_text(p, d->folder);
    pg_text(p, d->path);
    pg_instant(p, d->ended_ms);
}

static void document_read(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct document_read_row *r = op->row;
    pg_uuid(p, r->session_id);
    pg_text(p, op->who->tenant);
    pg_text(p, op->who->owner);
    pg_text(p, r->folder);
    pg_text(p, r->path);
    pg_int(p, r->revision);
    pg_int(p, r->from_line);
    pg_int(p, r->to_line);
    pg_instant(p, r->at_ms);
    pg_int(p, DOCUMENT_READS_MAX);
    pg_instant(p, now_ms);
}

static void document_reads_copy(struct pg_params *p, const struct store_op *op,
                                int64_t now_ms unused_arg)
{
    const struct document_reads_copy *c = op->row;
    pg_uuid(p, c->from);
    pg_uuid(p, c->to);
    pg_text(p, op->who->tenant);
    pg_text(p, op->who->owner);
}

static void documents_age(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct documents_age *row = op->row;
    pg_text(p, row->folder);
    pg_instant(p, row->before_ms);
    pg_uuid(p, row->after.p ? row->after : STR("")); /* the zero UUID is before all others */
    pg_int(p, row->limit);
    pg_int(p, DOCUMENTS_AGE_BYTES);
}

static void documents_aged(struct pg_row *r, const struct store_op *op)
{
    struct documents_age *row = op->row;
    struct str last = pg_peek_bytes(r);
    if (last.n < UUID_TEXT)
        memcpy(row->last, last.p ? last.p : "", last.n);
    row->last[last.n < UUID_TEXT ? last.n : 0] = '\0';
    row->documents = pg_get_int(r);
    row->texts = pg_get_int(r);
    row->bytes = pg_get_int(r);
}

static bool read_parts(struct pg_store *s, struct revision_row *row, struct arena *mem,
                       struct error *err)
{
    struct arena *parts_mem = arena_new(REVISION_PARTS_MEM);
    struct pg_rows parts = {.type = &sql_revision_part, .mem = parts_mem};
    struct pg_params p = {0};
    pg_uuid(&p, row->document_id);
    pg_int(&p, row->revision);
    bool ok = pg_read_rows(s, PG_REVISION_PARTS, &p, &parts, err) &&
              (!parts.n || revision_assemble(parts.items, parts.n, mem, &row->content, err));
    arena_free(parts_mem);
    return ok;
}

static bool document_revision(struct store *s, struct store_call *c, struct error *err)
{
    if (!pg_read_call(pg_of(s), c, err))
        return false;
    struct revision_row *row = c->rows;
    return !row || row->content.p || read_parts(pg_of(s), row, c->mem, err);
}

static const struct pg_verb ops[] = {
    {OP_DOCUMENT_REVISE, PG_DOCUMENT_REVISE, document_revise, document_revised},
    {OP_DOCUMENT_MOVE, PG_DOCUMENT_MOVE, document_move, NULL},
    {OP_DOCUMENT_END, PG_DOCUMENT_END, document_end, NULL},
    {OP_DOCUMENT_READ, PG_DOCUMENT_READ, document_read, NULL},
    {OP_DOCUMENTS_AGE, PG_DOCUMENTS_AGE, documents_age, documents_aged},
    {OP_DOCUMENT_READS_COPY, PG_READS_COPY, document_reads_copy, NULL},
    {0},
};

static const struct verb_handler verbs[] = {
    {VERB_DOCUMENT_REVISION, document_revision},
    {0},
};

const struct postgres_family document_postgres = {
    .texts = texts,
    .ops = ops,
    .verbs = verbs,
    .upto = PG_READS_UPTO,
    .over = PG_READS_REAP,
};
