/* SPDX-License-Identifier: Apache-2.0 */
/* Documents and their history in SQLite.  Contents are in tables of their own, so that pages of the
 * history are read without them. */
#include "docs/store/sqlite.h"

static struct str sha_bytes(const uint8_t sha[32])
{
    return str_n((const char *)sha, 32);
}

bool sq_document_find(struct sqlite_store *s, struct str folder, struct str path, struct arena *mem,
                      struct document_row **ret_row, struct error *err)
{
    struct document_place place = {folder, path};
    struct store_call c = {VERB_DOCUMENT, .filter = &place, .mem = mem};
    if (!sq_read_call(s, &c, err))
        return false;
    *ret_row = c.rows;
    return true;
}

static bool document_add(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct document_revise *rows = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_DOCUMENT_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, rows->document->id);
    sq_text(&b, rows->document->folder);
    sq_text(&b, rows->document->path);
    sq_blob(&b, sha_bytes(rows->revision->sha256));
    sq_int(&b, rows->revision->at_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool document_revised(struct sq_batch *batch, const struct revision_row *r, struct str id,
                             struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_DOCUMENT_REVISED, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, id);
    sq_blob(&b, sha_bytes(r->sha256));
    sq_int(&b, r->at_ms);
    return sq_run(batch->s, st, err);
}

bool sq_content_add(struct sqlite_store *s, struct str content, struct str id, int64_t number,
                    struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_CONTENT_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, id);
    sq_int(&b, number);
    sq_blob(&b, content);
    bool ok = sq_run(s, st, err);
    sqlite3_clear_bindings(st);
    return ok;
}

/* The history before the new revision is added. */
struct history {
    struct str id;
    int64_t number;        /* number of the new revision */
    int64_t stored, depth; /* stored bytes in all; depth of the newest revision */
    bool follows;          /* the new revision is a change of the newest text */
};

static size_t middle_of(const struct revision_row *r)
{
    return r->content.n - r->prefix - r->suffix;
}

static bool delta_add(struct sq_batch *batch, const struct revision_row *r, const struct history *h,
                      struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_DELTA_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, h->id);
    sq_int(&b, h->number);
    sq_int(&b, h->depth + 1);
    sq_int(&b, (int64_t)r->prefix);
    sq_int(&b, (int64_t)r->suffix);
    sq_blob(&b, str_n(r->content.p + r->prefix, middle_of(r)));
    bool ok = sq_run(batch->s, st, err);
    sqlite3_clear_bindings(st);
    return ok;
}

sqlite3_stmt *sq_bind_upto(struct sqlite_store *s, enum sq_document_statement which, struct str id,
                           int64_t number, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, which, err);
    if (!st)
        return NULL;
    struct sq_bind b = {.st = st};
    sq_text(&b, id);
    sq_int(&b, number);
    return st;
}

bool sq_run_upto(struct sqlite_store *s, enum sq_document_statement which, struct str id,
                 int64_t number, struct error *err)
{
    sqlite3_stmt *st = sq_bind_upto(s, which, id, number, err);
    return st && sq_run(s, st, err);
}

bool sq_number_upto(struct sqlite_store *s, enum sq_document_statement which, struct str id,
                    int64_t number, int64_t *ret, struct error *err)
{
    bool found = false;
    sqlite3_stmt *st = sq_bind_upto(s, which, id, number, err);
    if (!st || !sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    *ret = found ? sq_get_int(&r) : 0;
    sq_reset(st);
    return true;
}

static bool history_state(struct sqlite_store *s, struct history *h, struct error *err)
{
    bool found = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_HISTORY_STATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, h->id);
    if (!sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    h->stored = found ? sq_get_int(&r) : 0;
    h->depth = found ? sq_get_int(&r) : 0;
    sq_reset(st);
    return true;
}

/* Deletes the oldest revisions, a whole text with the differences after it at a time.  The last
 * whole text stays. */
static bool history_prune(struct sqlite_store *s, struct history *h, int64_t max, struct error *err)
{
    static const enum sq_document_statement tables[] = {SQ_PRUNE_CONTENTS, SQ_PRUNE_DELTAS,
                                                        SQ_PRUNE_REVISIONS};
    while (max > 0 && h->stored > max) {
        int64_t next = 0, taken = 0;
        sqlite3_stmt *st = sq_prepare(s, SQ_HISTORY_SECOND, err);
        bool found = false;
        if (!st)
            return false;
        struct sq_bind b = {.st = st};
        sq_text(&b, h->id);
        if (!sq_step(s, st, &found, err))
            return false;
        struct sq_row r = {.st = st};
        next = found ? sq_get_int(&r) : 0;
        sq_reset(st);
        if (!next)
            return true;
        if (!sq_number_upto(s, SQ_HISTORY_BYTES, h->id, next, &taken, err))
            return false;
        for (size_t i = 0; i < countof(tables); i++)
            if (!sq_run_upto(s, tables[i], h->id, next, err))
                return false;
        h->stored -= taken;
    }
    return true;
}

/* Stores the text of the revision, as a difference if that is small, and keeps the history within
 * its limit.  If only one whole text with its differences is left and still exceeds the limit, the
 * new text is stored whole and replaces them. */
static bool text_add(struct sq_batch *batch, const struct revision_row *r, struct history *h,
                     struct error *err)
{
    int64_t delta = (int64_t)middle_of(r) + HISTORY_ROW_BYTES;
    bool is_delta = h->follows && middle_of(r) < r->content.n / 2 && h->depth < REVISION_DEPTH_MAX;

    if (is_delta) {
        h->stored += delta;
        if (!delta_add(batch, r, h, err) || !history_prune(batch->s, h, r->history_max, err))
            return false;
        if (!r->history_max || h->stored <= r->history_max)
            return true;
        h->stored -= delta;
        if (!sq_run_upto(batch->s, SQ_DELTA_DROP, h->id, h->number, err))
            return false;
    }
    h->stored += (int64_t)r->content.n + HISTORY_ROW_BYTES;
    return sq_content_add(batch->s, r->content, h->id, h->number, err) &&
           history_prune(batch->s, h, r->history_max, err);
}

static bool history_add(struct sq_batch *batch, const struct revision_row *r, struct history *h,
                        struct error *err)
{
    if (!text_add(batch, r, h, err))
        return false;
    return sq_run_upto(batch->s, SQ_HISTORY_STORED, h->id, h->stored, err);
}

static bool revision_add(struct sq_batch *batch, const struct document_revise *rows,
                         struct history *h, struct error *err)
{
    const struct revision_row *r = rows->revision;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_REVISION_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, h->id);
    sq_int(&b, h->number);
    sq_int(&b, r->at_ms);
    sq_text(&b, r->author);
    sq_text(&b, r->kind);
    sq_text(&b, r->reason);
    sq_text(&b, rows->document->path);
    sq_blob(&b, sha_bytes(r->sha256));
    sq_int(&b, (int64_t)r->content.n);
    return sq_run(batch->s, st, err) && history_add(batch, r, h, err);
}

static bool revise(struct sq_batch *batch, struct store_op *op, const struct document_row *known,
                   struct error *err)
{
    const struct document_revise *rows = op->row;
    struct revision_row *r = rows->revision;
    struct str id = known ? known->id : rows->document->id;
    int64_t number = known ? known->revision + 1 : 1;
    bool same = known && !rows->even_if_same &&
                memcmp(known->sha256, r->sha256, sizeof(known->sha256)) == 0;
    struct history h = {.id = id, .number = number};
    op->verdict = VERDICT_OK;
    if (known && !same) {
        h.follows = memcmp(known->sha256, r->follows, sizeof(known->sha256)) == 0;
        if (!history_state(batch->s, &h, err))
            return false;
    }
    if (same)
        number = known->revision;
    else if (known ? !document_revised(batch, r, id, err) : !document_add(batch, op, err))
        return false;
    if (op->verdict != VERDICT_OK)
        return true;
    if (!same && !revision_add(batch, rows, &h, err))
        return false;
    revision_row_name(r, id);
    r->revision = number;
    return true;
}

static bool document_revise(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct document_row *d = ((const struct document_revise *)op->row)->document;
    struct arena *mem = arena_new(1 << 16);
    struct document_row *known = NULL;
    bool ok = sq_document_find(batch->s, d->folder, d->path, mem, &known, err) &&
              revise(batch, op, known, err);
    arena_free(mem);
    return ok;
}

static bool document_move(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct document_row *d = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_DOCUMENT_MOVE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, d->folder);
    sq_text(&b, d->path);
    sq_text(&b, d->new_path);
    if (!sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = sq_prepare(batch->s, SQ_DOCUMENT_IS, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_text(&b, d->folder);
    sq_text(&b, d->path);
    return sq_run_refusal(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool document_end(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct document_row *d = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_DOCUMENT_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, d->folder);
    sq_text(&b, d->path);
    sq_int(&b, d->ended_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool document_reads_copy(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct document_reads_copy *c = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_READS_COPY, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, c->from);
    sq_text(&b, c->to);
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    op->verdict = VERDICT_OK;
    return sq_run(batch->s, st, err);
}

bool sq_revision_text(struct sqlite_store *s, struct revision_row *row, struct arena *mem,
                      struct error *err)
{
    struct arena *parts_mem = arena_new(REVISION_PARTS_MEM);
    struct sq_rows parts = {.type = &sql_revision_part, .mem = parts_mem};
    sqlite3_stmt *st = sq_bind_upto(s, SQ_REVISION_PARTS, row->document_id, row->revision, err);
    bool ok = st && sq_read_rows(s, st, REVISION_DEPTH_MAX + 1, &parts, err) &&
              (!parts.n || revision_assemble(parts.items, parts.n, mem, &row->content, err));
    arena_free(parts_mem);
    return ok;
}

static bool document_revision(struct store *store, struct store_call *c, struct error *err)
{
    if (!sq_read_call(sq_of(store), c, err))
        return false;
    struct revision_row *row = c->rows;
    return !row || row->content.p || sq_revision_text(sq_of(store), row, c->mem, err);
}

static const struct sq_op ops[] = {
    {OP_DOCUMENT_REVISE, document_revise},
    {OP_DOCUMENT_MOVE, document_move},
    {OP_DOCUMENT_END, document_end},
    {OP_DOCUMENT_READ, sq_document_read},
    {OP_DOCUMENTS_AGE, sq_documents_age},
    {OP_DOCUMENT_READS_COPY, document_reads_copy},
    {0},
};

static const struct verb_handler verbs[] = {
    {VERB_DOCUMENT_REVISION, document_revision},
    {0},
};

const struct sqlite_family document_sqlite = {
    .texts = sq_document_texts,
    .ops = ops,
    .verbs = verbs,
    .upto = SQ_READS_UPTO,
    .over = SQ_READS_REAP,
};
