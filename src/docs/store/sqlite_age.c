/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes the texts of old revisions in SQLite.  The first text that stays may be stored as a
 * difference from a deleted one, so it is stored whole before. */
#include "docs/store/sqlite.h"

struct aged {
    struct str id;
    int64_t ended_ms;
    int64_t from; /* the first revision whose text stays; INT64_MAX: none stays */
    int64_t stored;
};

static bool find_documents(struct sqlite_store *s, const struct documents_age *row,
                           struct arena *mem, struct aged *ret, size_t *ret_n, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_AGE_DOCUMENTS, err);
    bool found = false;
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->folder);
    sq_text(&b, row->after.p ? row->after : STR(""));
    sq_int(&b, row->limit);
    for (*ret_n = 0; sq_step(s, st, &found, err); (*ret_n)++) {
        if (!found) {
            sq_reset(st);
            return true;
        }
        struct sq_row r = {.st = st, .mem = mem};
        struct str id = sq_get_bytes(&r);
        ret[*ret_n] = (struct aged){.id = id, .ended_ms = sq_get_int(&r)};
    }
    return false;
}

/* Stores the text of revision `from` whole.  *ret is its size. */
static bool make_whole(struct sqlite_store *s, struct aged *a, int64_t *ret, struct error *err)
{
    struct arena *mem = arena_new(2 * DOCUMENT_CONTENT_MAX);
    struct revision_row row = {.document_id = a->id, .revision = a->from};
    int64_t middle = 0;
    bool ok = sq_number_upto(s, SQ_AGE_MIDDLE, a->id, a->from, &middle, err) &&
              sq_revision_text(s, &row, mem, err);

    if (ok && row.content.p) {
        a->stored += (int64_t)row.content.n - middle;
        *ret = (int64_t)row.content.n;
        ok = sq_content_add(s, row.content, a->id, a->from, err) &&
             sq_run_upto(s, SQ_DELTA_DROP, a->id, a->from, err);
    } else if (ok) {
        a->from = 0; /* the newest text is missing; delete nothing more */
    }
    arena_free(mem);
    return ok;
}

static bool delete_before(struct sqlite_store *s, struct aged *a, struct documents_age *row,
                          struct error *err)
{
    int64_t bytes = 0, texts = 0;

    if (!sq_number_upto(s, SQ_HISTORY_BYTES, a->id, a->from, &bytes, err) ||
        !sq_number_upto(s, SQ_AGE_TEXTS, a->id, a->from, &texts, err) ||
        !sq_run_upto(s, SQ_PRUNE_CONTENTS, a->id, a->from, err) ||
        !sq_run_upto(s, SQ_PRUNE_DELTAS, a->id, a->from, err))
        return false;
    row->texts += texts;
    row->bytes += bytes;
    return sq_run_upto(s, SQ_HISTORY_STORED, a->id, a->stored - bytes, err);
}

static bool stored_of(struct sqlite_store *s, struct aged *a, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_HISTORY_STATE, err);
    bool found = false;
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, a->id);
    if (!sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    a->stored = found ? sq_get_int(&r) : 0;
    sq_reset(st);
    return true;
}

/* *ret_size: bytes of the text that was written. */
static bool age(struct sqlite_store *s, struct aged *a, struct documents_age *row,
                int64_t *ret_size, struct error *err)
{
    int64_t first = 0, is_whole = 1;

    if (a->ended_ms && a->ended_ms <= row->before_ms)
        a->from = INT64_MAX;
    else if (!sq_number_upto(s, SQ_AGE_FROM, a->id, row->before_ms, &a->from, err))
        return false;
    if (!sq_number_upto(s, SQ_AGE_FIRST, a->id, a->from, &first, err))
        return false;
    if (!first)
        return true;
    if (!stored_of(s, a, err))
        return false;
    if (a->from != INT64_MAX && !sq_number_upto(s, SQ_AGE_IS_WHOLE, a->id, a->from, &is_whole, err))
        return false;
    if (!is_whole && !make_whole(s, a, ret_size, err))
        return false;
    return !a->from || delete_before(s, a, row, err);
}

bool sq_documents_age(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct documents_age *row = op->row;
    struct arena *mem = arena_new(1 << 20);
    struct aged *found = arena_zalloc(mem, (row->limit + 1) * sizeof(*found));
    int64_t written = 0;
    size_t n = 0;
    bool ok = find_documents(batch->s, row, mem, found, &n, err);

    op->verdict = VERDICT_OK;
    row->documents = row->texts = row->bytes = 0;
    for (size_t i = 0; i < n && ok && row->bytes + written < DOCUMENTS_AGE_BYTES; i++) {
        int64_t size = 0;
        ok = age(batch->s, &found[i], row, &size, err);
        written += size;
        row->documents++;
        memcpy(row->last, found[i].id.p, found[i].id.n);
        row->last[found[i].id.n] = '\0';
    }
    arena_free(mem);
    return ok;
}
