/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of documents that a session has seen, in SQLite. */
#include "docs/store/sqlite.h"

/* Binds session, document, revision, lines and time, the first parameters of statements on
 * reads. */
static sqlite3_stmt *bind_read(struct sq_batch *batch, enum sq_document_statement which,
                               const struct document_read_row *r, const struct document_row *d,
                               bool with_time, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, which, err);
    if (!st)
        return NULL;
    struct sq_bind b = {.st = st};
    sq_text(&b, r->session_id);
    sq_text(&b, d->id);
    sq_int(&b, r->revision ? r->revision : d->revision);
    sq_int(&b, r->from_line);
    sq_int(&b, r->to_line);
    if (with_time)
        sq_int(&b, r->at_ms);
    return st;
}

static bool prune(struct sq_batch *batch, const struct document_read_row *r,
                  const struct document_row *d, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_READ_PRUNE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, r->session_id);
    sq_text(&b, d->id);
    sq_int(&b, DOCUMENT_READS_MAX);
    return sq_run(batch->s, st, err);
}

static bool put_read(struct sq_batch *batch, struct store_op *op, const struct document_row *d,
                     struct error *err)
{
    const struct document_read_row *r = op->row;
    sqlite3_stmt *st = bind_read(batch, SQ_READ_RENEW, r, d, true, err);
    if (!st || !sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = bind_read(batch, SQ_READ_COVERED, r, d, false, err);
    if (!st || !sq_run(batch->s, st, err))
        return false;
    st = bind_read(batch, SQ_READ_ADD, r, d, true, err);
    return st && sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err) && prune(batch, r, d, err);
}

static bool read_found(struct sq_batch *batch, struct store_op *op, struct arena *mem,
                       struct error *err)
{
    const struct document_read_row *r = op->row;
    struct document_row *d = NULL;
    if (!sq_document_find(batch->s, r->folder, r->path, mem, &d, err))
        return false;
    op->verdict = VERDICT_MISSING;
    return !d || r->revision < 0 || r->revision > d->revision || put_read(batch, op, d, err);
}

bool sq_document_read(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct document_read_row *r = op->row;
    struct sq_session_state state;
    struct principal owner = *op->who;
    owner.tenant_wide = false; /* only the session's own owner reads in it */
    if (!sq_session_state(batch->s, &owner, r->session_id, batch->now_ms, &state, err))
        return false;
    if (!state.found || !state.live) {
        op->verdict = state.found ? VERDICT_NOT_ACTIVE : VERDICT_MISSING;
        return true;
    }
    struct arena *mem = arena_new(1 << 16);
    bool ok = read_found(batch, op, mem, err);
    arena_free(mem);
    return ok;
}
