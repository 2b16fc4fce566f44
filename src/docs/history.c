/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups of documents in the store: their revisions, and the lines that a session has read. */
#include "docs/docs_impl.h"

#include "base/map.h"
#include "docs/critic/critic.h"
#include "docs/text.h"

#include <stdlib.h>

static bool document_of(struct docs_call *c, struct store *store, struct error *err)
{
    struct document_row *row;

    if (!store_document(store, c->place.folder->name, c->place.path, c->mem, &row, err))
        return false;
    if (!row)
        return error_set(err, ERR_NOT_FOUND, "Error: Document not found: %.*s/%.*s",
                         STR_ARG(c->place.folder->name), STR_ARG(c->place.path));
    c->document = *row;
    return true;
}

static bool look_history(struct docs_call *c, struct store *store, struct error *err)
{
    return document_of(c, store, err) &&
           store_document_history(store, c->document.id, c->revision, c->limit, c->mem,
                                  &c->revisions, &c->n_revisions, err);
}

static bool look_revision(struct docs_call *c, struct store *store, struct error *err)
{
    if (!document_of(c, store, err) ||
        !store_document_revision(store, c->document.id, c->revision, c->mem, &c->revisions, err))
        return false;
    c->n_revisions = c->revisions ? 1 : 0;
    if (!c->revisions)
        return error_set(err, ERR_NOT_FOUND,
                         "There is no revision %lld of this document; its history names them",
                         (long long)c->revision);
    if (!c->revisions->content.p)
        return error_set(err, ERR_NOT_FOUND,
                         "The text of revision %lld was deleted: another text replaced it longer "
                         "ago than history_keep of the folder \"%.*s\"; the history says which "
                         "texts are stored",
                         (long long)c->revisions->revision, STR_ARG(c->place.folder->name));
    return true;
}

static void on_looked(struct docs_call *c)
{
    c->ok = true;
    call_finish(c);
}

void docs_history(struct docs *d, struct docs_call *c, int64_t before, unsigned limit)
{
    c->home = d;
    c->revision = before;
    c->limit = limit;
    call_lookup(c, look_history, on_looked);
}

void docs_revision(struct docs *d, struct docs_call *c, int64_t number)
{
    c->home = d;
    c->revision = number;
    call_lookup(c, look_revision, on_looked);
}

/* Lines read.  Texts are compared, not line numbers, so that changes elsewhere do not matter. */

#define LINES_REVISIONS_MAX 16 /* the widest read first, then the newest */

struct lines_part {
    struct str content;
    struct document_read_row *reads;
    size_t n;
};
struct docs_lines {
    struct arena *mem;
    struct lines_part parts[LINES_REVISIONS_MAX];
    size_t n;
    bool is_made; /* the maps below are filled */
    struct map read, there;
};

static struct lines_part *part_of(struct docs_lines *l, struct store *store, struct docs_call *c,
                                  int64_t revision, int64_t numbers[], struct error *err)
{
    struct revision_row *row;
    size_t i = 0;

    while (i < l->n && numbers[i] != revision)
        i++;
    if (i < l->n || i == LINES_REVISIONS_MAX)
        return i < l->n ? &l->parts[i] : NULL;
    if (!store_document_revision(store, c->document.id, revision, l->mem, &row, err))
        return NULL;
    if (!row || !row->content.p)
        return NULL; /* deleted; its lines count as unread */
    numbers[i] = revision;
    l->parts[i].content = row->content;
    l->n++;
    return &l->parts[i];
}

static bool look_lines(struct docs_call *c, struct store *store, struct error *err)
{
    struct docs_lines *l = *c->lines;
    int64_t numbers[LINES_REVISIONS_MAX];
    struct document_read_row *rows;
    struct document_row *document;
    size_t n = 0;

    err->code = ERR_NONE;
    if (!store_document(store, c->place.folder->name, c->place.path, c->mem, &document, err))
        return false;
    if (!document)
        return true;
    c->document = *document;
    if (!store_document_reads(store, call_reader(c), c->session_id, document->id, l->mem, &rows, &n,
                              err))
        return false;
    /* The widest read comes first, then the newest.  So a session that once read the whole
     * document, and changed it often since, still counts as having read all of it. */
    size_t widest = 0;
    for (size_t i = 1; i < n; i++)
        if (rows[i].to_line - rows[i].from_line >= rows[widest].to_line - rows[widest].from_line)
            widest = i;
    for (size_t k = 0, i; k < n + 1; k++) {
        i = k == 0 ? widest : n - k;
        if (n == 0 || (k > 0 && i == widest))
            continue;
        struct lines_part *p = part_of(l, store, c, rows[i].revision, numbers, err);
        if (!p && err->code != ERR_NONE)
            return false;
        if (!p)
            continue;
        if (!p->reads)
            p->reads = arena_zalloc(l->mem, n * sizeof(*p->reads));
        p->reads[p->n++] = rows[i];
    }
    return true;
}

void lines_look(struct docs_call *c, void (*next)(struct docs_call *c))
{
    *c->lines = xcalloc(1, sizeof(**c->lines));
    (*c->lines)->mem = arena_new(DOCS_ARENA);
    call_lookup(c, look_lines, next);
}

/* Runs on the worker that calls first. */
static void lines_make(struct docs_lines *l)
{
    static char yes;

    l->is_made = true;
    for (size_t i = 0; i < l->n; i++) {
        struct lines_part *p = &l->parts[i];
        struct critic critic;
        struct str *lines;
        critic_parse(p->content, l->mem, &critic);
        size_t n = text_lines(critic_accepted(&critic, l->mem), l->mem, &lines);
        for (size_t k = 0; k < n; k++) {
            struct str line = lines[k].n ? lines[k] : STR("");
            map_put(&l->there, line, &yes);
            for (size_t r = 0; r < p->n; r++)
                if ((int64_t)k + 1 >= p->reads[r].from_line &&
                    (int64_t)k + 1 <= p->reads[r].to_line)
                    map_put(&l->read, line, &yes);
        }
    }
}

bool docs_has_read(struct docs_lines *l, struct str line)
{
    if (!l->is_made)
        lines_make(l);
    return map_get(&l->read, line.n ? line : STR("")) != NULL;
}

bool docs_was_there(struct docs_lines *l, struct str line)
{
    if (!l->is_made)
        lines_make(l);
    return map_get(&l->there, line.n ? line : STR("")) != NULL;
}

bool docs_read_any(const struct docs_lines *l)
{
    return l->n > 0;
}

void docs_lines_free(struct docs_lines *l)
{
    if (!l)
        return;
    map_release(&l->read);
    map_release(&l->there);
    arena_free(l->mem);
    free(l);
}
