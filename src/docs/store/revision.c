/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of revisions that are stored as differences. */
#include "docs/store/impl.h"

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
