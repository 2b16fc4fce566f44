/* SPDX-License-Identifier: Apache-2.0 */
/* Documents, their history and the reads of sessions, in PostgreSQL.  Functions of the schema
 * (sql/postgres) decide the verdicts, under the lock of the document or session. */
#include "store/postgres_impl.h"

#include <stdio.h>

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

static bool read_parts(struct pg_store *s, struct revision_row *row, struct arena *mem,
                       struct error *err)
{
    struct arena *parts_mem = arena_new(REVISION_PARTS_MEM);
    struct pg_rows parts = {.type = &sql_revision_part, .mem = parts_mem};
    struct pg_params p = {0};
    pg_uuid(&p, row->document_id);
    pg_int(&p, row->revision);
    bool ok = pg_read_rows(s, PG_REVISION_PARTS, &p, &parts, err) &&
              revision_assemble(parts.items, parts.n, mem, &row->content, err);
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

const struct pg_verb pg_document_ops[] = {
    {OP_DOCUMENT_REVISE, PG_DOCUMENT_REVISE, document_revise, document_revised},
    {OP_DOCUMENT_MOVE, PG_DOCUMENT_MOVE, document_move, NULL},
    {OP_DOCUMENT_END, PG_DOCUMENT_END, document_end, NULL},
    {OP_DOCUMENT_READ, PG_DOCUMENT_READ, document_read, NULL},
    {0},
};

const struct verb_handler pg_document_verbs[] = {
    {VERB_DOCUMENT_REVISION, document_revision},
    {0},
};
