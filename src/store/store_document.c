/* SPDX-License-Identifier: Apache-2.0 */
/* The document part of the entry (store.c): checks of ops on documents that all backends need, the
 * output members after a write, and the reads. */
#include "store/store.h"

#include "store/store_impl.h"

static bool revise_is_sound(const struct store_op *op, struct error *err)
{
    const struct document_revise *rows = op->row;
    const struct revision_row *r = rows->revision;
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

static bool names_document(const struct document_row *d)
{
    return d && d->folder.p && d->path.p;
}

static bool names_read(const struct document_read_row *r)
{
    return r->session_id.p && r->folder.p && r->path.p;
}

bool store_document_op_is_sound(const struct store_op *op, struct error *err)
{
    bool named = true;
    if (op->kind == OP_DOCUMENT_READ)
        named = names_read(op->row);
    else if (op->kind == OP_DOCUMENT_REVISE)
        named = names_document(((const struct document_revise *)op->row)->document);
    else if (op->kind == OP_DOCUMENT_MOVE)
        named = names_document(op->row) && ((const struct document_row *)op->row)->new_path.p;
    else if (op->kind == OP_DOCUMENT_END)
        named = names_document(op->row) && ((const struct document_row *)op->row)->ended_ms;
    if (!named)
        return error_set(err, ERR_INTERNAL,
                         "A store op that names no document was refused; report it.");
    return op->kind != OP_DOCUMENT_REVISE || revise_is_sound(op, err);
}

void store_document_op_done(struct store_op *op)
{
    if (op->kind != OP_DOCUMENT_REVISE || op->verdict != VERDICT_OK)
        return;
    struct document_revise *rows = op->row;
    rows->revision->path = rows->document->path;
    rows->revision->size = (int64_t)rows->revision->content.n;
    rows->document->id = rows->revision->document_id;
    rows->document->revision = rows->revision->revision;
}

/* Copies `n` bytes from offset `from` of the text that the first `at` + 1 parts make. */
static void copy_text(const struct revision_part *p, size_t at, size_t from, size_t n, char *to)
{
    if (at == 0) {
        memcpy(to, p[0].middle.p + from, n);
        return;
    }
    const struct revision_part *one = &p[at];
    size_t head = from < one->prefix ? one->prefix - from : 0;
    head = head < n ? head : n;
    if (head)
        copy_text(p, at - 1, from, head, to);
    from += head;
    n -= head;
    to += head;
    size_t middle = 0;
    if (n && from < one->prefix + one->middle.n) {
        middle = one->prefix + one->middle.n - from;
        middle = middle < n ? middle : n;
        memcpy(to, one->middle.p + (from - one->prefix), middle);
    }
    if (n > middle)
        copy_text(p, at - 1, from + middle + p[at - 1].size - one->size, n - middle, to + middle);
}

bool revision_assemble(struct revision_part *parts, size_t n, struct arena *mem, struct str *ret,
                       struct error *err)
{
    bool sound = n > 0 && parts[0].prefix == 0 && parts[0].suffix == 0;

    for (size_t i = 0; i < n && sound; i++) {
        struct revision_part *p = &parts[i];
        size_t before = i ? parts[i - 1].size : 0;
        sound = p->prefix <= before && p->suffix <= before - p->prefix;
        p->size = p->prefix + p->middle.n + p->suffix;
        sound = sound && p->size <= DOCUMENT_CONTENT_MAX;
    }
    if (!sound)
        return error_set(err, ERR_INTERNAL,
                         "A revision of a document is damaged in the database; restore another "
                         "one.");
    char *text = arena_alloc(mem, parts[n - 1].size + 1);
    copy_text(parts, n - 1, 0, parts[n - 1].size, text);
    text[parts[n - 1].size] = '\0';
    *ret = str_n(text, parts[n - 1].size);
    return true;
}

void revision_row_name(struct revision_row *row, struct str id)
{
    size_t n = id.n < UUID_TEXT ? id.n : UUID_TEXT - 1;
    memcpy(row->id_text, id.p, n);
    row->id_text[n] = '\0';
    row->document_id = str_n(row->id_text, n);
}

bool store_document(struct store *s, struct str folder, struct str path, struct arena *mem,
                    struct document_row **ret_row, struct error *err)
{
    struct document_place place = {folder, path};
    return store_row(s, &(struct store_call){VERB_DOCUMENT, .filter = &place, .mem = mem}, ret_row,
                     err);
}

bool store_document_ended(struct store *s, struct str folder, struct str path, struct arena *mem,
                          struct document_row **ret_row, struct error *err)
{
    struct document_place place = {folder, path};
    return store_row(s, &(struct store_call){VERB_DOCUMENT_ENDED, .filter = &place, .mem = mem},
                     ret_row, err);
}

bool store_document_by_id(struct store *s, struct str id, struct arena *mem,
                          struct document_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_DOCUMENT_BY_ID, .id = id, .mem = mem}, ret_row,
                     err);
}

bool store_documents_page(struct store *s, struct str folder, struct str after, unsigned limit,
                          struct arena *mem, struct document_row **ret_rows, size_t *ret_n,
                          struct error *err)
{
    struct document_place place = {.folder = folder};
    return store_rows(s,
                      &(struct store_call){VERB_DOCUMENTS_PAGE, .filter = &place, .after = after,
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_document_history(struct store *s, struct str document_id, int64_t before, unsigned limit,
                            struct arena *mem, struct revision_row **ret_rows, size_t *ret_n,
                            struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_DOCUMENT_HISTORY, .id = document_id,
                                           .after_id = before, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_document_revision(struct store *s, struct str document_id, int64_t revision,
                             struct arena *mem, struct revision_row **ret_row, struct error *err)
{
    return store_row(s,
                     &(struct store_call){VERB_DOCUMENT_REVISION, .id = document_id,
                                          .number = revision, .mem = mem},
                     ret_row, err);
}

bool store_document_reads(struct store *s, const struct principal *who, struct str session_id,
                          struct str document_id, struct arena *mem,
                          struct document_read_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_DOCUMENT_READS, .who = who,
                                           .session_id = session_id, .id = document_id, .mem = mem},
                      ret_rows, ret_n, err);
}
