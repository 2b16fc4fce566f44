/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on documents: the checks before any backend sees an op, and the output members after a
 * write. */
#include "docs/store/impl.h"

static bool is_named(bool named, struct error *err)
{
    return named || error_set(err, ERR_INTERNAL,
                              "A store op that names no document was refused; report it.");
}

static bool names_document(const struct document_row *d)
{
    return d && d->folder.p && d->path.p;
}

static bool revise_is_sound(const struct store_op *op, struct error *err)
{
    const struct document_revise *rows = op->row;
    const struct revision_row *r = rows->revision;
    if (!is_named(names_document(rows->document), err))
        return false;
    if (!r || !r->kind.p || !r->content.p || rows->document->id.n != UUID_TEXT - 1)
        return error_set(err, ERR_INTERNAL,
                         "A revision without kind, content or its document's id was refused; "
                         "report it.");
    if (r->prefix > r->content.n || r->suffix > r->content.n - r->prefix)
        return error_set(err, ERR_INTERNAL,
                         "A revision that shares more than it holds was refused; report it.");
    if (r->content.n > DOCUMENT_CONTENT_MAX)
        return error_set(err, ERR_TOO_LARGE,
                         "A document of %zu bytes is too large for the history; split it into "
                         "parts of at most %u.",
                         r->content.n, DOCUMENT_CONTENT_MAX);
    return true;
}

static bool move_is_sound(const struct store_op *op, struct error *err)
{
    const struct document_row *d = op->row;
    return is_named(names_document(d) && d->new_path.p, err);
}

static bool end_is_sound(const struct store_op *op, struct error *err)
{
    const struct document_row *d = op->row;
    return is_named(names_document(d) && d->ended_ms, err);
}

static bool read_is_sound(const struct store_op *op, struct error *err)
{
    const struct document_read_row *r = op->row;
    return is_named(r->session_id.p && r->folder.p && r->path.p, err);
}

static bool copy_is_sound(const struct store_op *op, struct error *err)
{
    const struct document_reads_copy *c = op->row;
    return is_named(c->from.p && c->to.p, err);
}

static bool age_is_sound(const struct store_op *op, struct error *err)
{
    const struct documents_age *a = op->row;
    return is_named(a->folder.p && a->limit, err);
}

static void revise_done(struct store_op *op)
{
    if (op->verdict != VERDICT_OK)
        return;
    struct document_revise *rows = op->row;
    rows->revision->path = rows->document->path;
    rows->revision->size = (int64_t)rows->revision->content.n;
    rows->document->id = rows->revision->document_id;
    rows->document->revision = rows->revision->revision;
}

const struct family_op document_ops[] = {
    {OP_DOCUMENT_REVISE, {"document revise", false, revise_is_sound, revise_done}},
    {OP_DOCUMENT_MOVE, {"document move", false, move_is_sound}},
    {OP_DOCUMENT_END, {"document end", false, end_is_sound}},
    {OP_DOCUMENT_READ, {"document read", true, read_is_sound}},
    {OP_DOCUMENTS_AGE, {"documents age", false, age_is_sound}},
    {OP_DOCUMENT_READS_COPY, {"document reads copy", true, copy_is_sound}},
    {0},
};
