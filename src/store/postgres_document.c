/* SPDX-License-Identifier: Apache-2.0 */
/* Documents, their history and the reads of sessions, in PostgreSQL.  Functions of the schema
 * (sql/postgres) decide the verdicts, under the lock of the document or session. */
#include "store/postgres_impl.h"

#include <stdio.h>

void pg_document_revise(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct revision_row *r = op->revision;
    pg_own_uuid(p, op->document->id);
    pg_text(p, op->document->folder);
    pg_instant(p, r->at_ms);
    pg_text(p, r->author);
    pg_text(p, r->kind);
    pg_text(p, r->reason);
    pg_text(p, op->document->path);
    pg_bytes(p, str_n((const char *)r->sha256, sizeof(r->sha256)));
    pg_int(p, (int64_t)r->content.n);
    pg_bytes(p, r->content);
    pg_bool(p, op->even_if_same);
    pg_int(p, (int64_t)r->prefix);
    pg_int(p, (int64_t)r->suffix);
    pg_bytes(p, str_n((const char *)r->follows, sizeof(r->follows)));
    pg_int(p, r->history_max);
}

void pg_document_revised(struct pg_row *r, const struct store_op *op)
{
    revision_row_name(op->revision, pg_peek_bytes(r));
    op->revision->revision = pg_get_int(r);
}

void pg_document_move(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_text(p, op->document->folder);
    pg_text(p, op->document->path);
    pg_text(p, op->document->new_path);
}

void pg_document_end(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_text(p, op->document->folder);
    pg_text(p, op->document->path);
    pg_instant(p, op->document->ended_ms);
}

void pg_document_read(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct document_read_row *r = op->document_read;
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

/* Queries. */

/* A name that PostgreSQL cannot store is replaced by the empty name, which no document has, so the
 * query finds nothing. */
static void name(struct pg_params *p, struct str s)
{
    pg_text(p, s.p && pg_is_text(s) ? s : STR(""));
}

static bool read_document(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct document_row *row = to;
    row->id = pg_get_uuid(r);
    row->folder = pg_get_bytes(r);
    row->path = pg_get_bytes(r);
    row->revision = pg_get_int(r);
    pg_get_sha(r, row->sha256);
    row->created_ms = pg_get_time(r);
    row->changed_ms = pg_get_time(r);
    row->ended_ms = pg_get_time(r);
    return true;
}

static bool read_one(struct store *s, enum pg_statement which, const struct pg_params *p,
                     struct arena *mem, struct document_row **ret_row, struct error *err)
{
    struct pg_rows documents = {
        .read = read_document, .size = sizeof(struct document_row), .mem = mem};
    if (!pg_read_row(pg_of(s), which, p, &documents, err))
        return false;
    *ret_row = documents.items;
    return true;
}

bool pg_document(struct store *s, struct str folder, struct str path, bool ended, struct arena *mem,
                 struct document_row **ret_row, struct error *err)
{
    struct pg_params p = {0};
    name(&p, folder);
    name(&p, path);
    return read_one(s, ended ? PG_DOCUMENT_ENDED_AT : PG_DOCUMENT_AT, &p, mem, ret_row, err);
}

bool pg_document_by_id(struct store *s, struct str id, struct arena *mem,
                       struct document_row **ret_row, struct error *err)
{
    struct pg_params p = {0};
    pg_uuid(&p, id);
    return read_one(s, PG_DOCUMENT_BY_ID, &p, mem, ret_row, err);
}

bool pg_documents_page(struct store *s, struct str folder, struct str after, unsigned limit,
                       struct arena *mem, struct document_row **ret_rows, size_t *ret_n,
                       struct error *err)
{
    struct pg_rows documents = {
        .read = read_document, .size = sizeof(struct document_row), .mem = mem};
    struct pg_params p = {0};
    name(&p, folder);
    pg_text(&p, after.p ? after : STR(""));
    pg_int(&p, limit);
    if (!pg_read_page(pg_of(s), PG_DOCUMENTS_PAGE, &p, &documents, err))
        return false;
    *ret_rows = documents.items;
    *ret_n = documents.n;
    return true;
}

static bool read_revision(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct revision_row *row = to;
    row->document_id = pg_get_uuid(r);
    row->revision = pg_get_int(r);
    row->at_ms = pg_get_time(r);
    row->author = pg_get_bytes(r);
    row->kind = pg_get_bytes(r);
    row->reason = pg_get_bytes(r);
    row->path = pg_get_bytes(r);
    pg_get_sha(r, row->sha256);
    row->size = pg_get_int(r);
    row->content = pg_get_bytes(r);
    return true;
}

bool pg_document_history(struct store *s, struct str document_id, int64_t before, unsigned limit,
                         struct arena *mem, struct revision_row **ret_rows, size_t *ret_n,
                         struct error *err)
{
    struct pg_rows revisions = {
        .read = read_revision, .size = sizeof(struct revision_row), .mem = mem};
    struct pg_params p = {0};
    pg_uuid(&p, document_id);
    pg_int(&p, before ? before : INT64_MAX);
    pg_int(&p, limit);
    if (!pg_read_page(pg_of(s), PG_REVISIONS_PAGE, &p, &revisions, err))
        return false;
    *ret_rows = revisions.items;
    *ret_n = revisions.n;
    return true;
}

static bool read_part(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct revision_part *part = to;
    part->prefix = (size_t)pg_get_int(r);
    part->suffix = (size_t)pg_get_int(r);
    part->middle = pg_get_bytes(r);
    if (!part->middle.p)
        part->middle = STR("");
    return true;
}

static bool read_parts(struct pg_store *s, struct revision_row *row, struct arena *mem,
                       struct error *err)
{
    struct arena *parts_mem = arena_new(REVISION_PARTS_MEM);
    struct pg_rows parts = {
        .read = read_part, .size = sizeof(struct revision_part), .mem = parts_mem};
    struct pg_params p = {0};
    pg_uuid(&p, row->document_id);
    pg_int(&p, row->revision);
    bool ok = pg_read_rows(s, PG_REVISION_PARTS, &p, &parts, err) &&
              revision_assemble(parts.items, parts.n, mem, &row->content, err);
    arena_free(parts_mem);
    return ok;
}

bool pg_document_revision(struct store *s, struct str document_id, int64_t revision,
                          struct arena *mem, struct revision_row **ret_row, struct error *err)
{
    struct pg_rows revisions = {
        .read = read_revision, .size = sizeof(struct revision_row), .mem = mem};
    struct pg_params p = {0};
    pg_uuid(&p, document_id);
    pg_int(&p, revision);
    if (!pg_read_row(pg_of(s), PG_REVISION_GET, &p, &revisions, err))
        return false;
    *ret_row = revisions.items;
    return !*ret_row || (*ret_row)->content.p || read_parts(pg_of(s), *ret_row, mem, err);
}

static bool read_read(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct document_read_row *row = to;
    row->session_id = pg_get_uuid(r);
    row->folder = pg_get_bytes(r);
    row->path = pg_get_bytes(r);
    row->revision = pg_get_int(r);
    row->from_line = pg_get_int(r);
    row->to_line = pg_get_int(r);
    row->at_ms = pg_get_time(r);
    return true;
}

bool pg_document_reads(struct store *s, const struct principal *who, struct str session_id,
                       struct str document_id, struct arena *mem,
                       struct document_read_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows reads = {
        .read = read_read, .size = sizeof(struct document_read_row), .mem = mem};
    struct pg_params p = {0};
    pg_uuid(&p, session_id);
    pg_uuid(&p, document_id);
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    if (!pg_read_rows(pg_of(s), PG_READS_OF, &p, &reads, err))
        return false;
    *ret_rows = reads.items;
    *ret_n = reads.n;
    return true;
}
