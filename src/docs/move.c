/* SPDX-License-Identifier: Apache-2.0 */
/* Moving a document and updating the documents that link to it: first the file, then one document
 * after another.  Each document is in the history before the next one is changed.  Links that could
 * not be rewritten (a person was saving the document) stay unchanged and are not counted. */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/unicode.h"
#include "docs/links.h"

/* The progress of a move. */
struct moving {
    struct docs_change change;
    struct docs_call *call;
    struct str from;
    struct str *others; /* documents that link to `from` */
    size_t n, at;
    struct str source; /* the document being rewritten, by its path before the move */
    size_t rewritten;  /* links in `source` */
    struct error err;  /* unused */
};

static bool is_same(struct str a, struct str b)
{
    return unicode_same_name(a, b);
}

/* Answers as before the move, even if the index already has the move. */
static bool exists(void *arg, struct str path, struct str *ret_path)
{
    struct moving *m = arg;
    const struct docs_call *c = m->call;
    struct error err;

    if (is_same(path, m->from)) {
        *ret_path = m->from;
        return true;
    }
    *ret_path = STR_NONE;
    if (is_same(path, c->to_path))
        return false;
    if (!index_find_path(c->home->index, c->place.folder->name, path, c->mem, ret_path, &err))
        return false;
    return ret_path->p != NULL;
}

static bool rewrite(struct docs_change *change, struct str bytes, struct arena *mem,
                    struct str *ret, struct error *err unused_arg)
{
    struct moving *m = container_of(change, struct moving, change);
    bool is_moved = str_eq(m->source, m->from);

    *ret = links_rewrite(bytes, m->source, is_moved ? m->call->to_path : m->source, m->from,
                         m->call->to_path, exists, m, mem, &m->rewritten);
    return true;
}

static bool apply(void *arg, struct str bytes, struct arena *mem, struct str *ret,
                  struct error *err)
{
    struct moving *m = arg;
    return rewrite(&m->change, bytes, mem, ret, err);
}

/* A link that resolved to another document may mean the moved one after the move.  So the backlinks
 * of the new path are examined too. */
static void take_others(struct moving *m, const struct str *paths, size_t n)
{
    struct str *all = arena_zalloc(m->call->mem, (m->n + n + 1) * sizeof(*all));

    for (size_t i = 0; i < m->n; i++)
        all[i] = m->others[i];
    m->others = all;
    for (size_t i = 0; i < n; i++) {
        bool known = false;
        for (size_t k = 0; k < m->n && !known; k++)
            known = str_eq(all[k], paths[i]);
        if (!known)
            all[m->n++] = paths[i];
    }
}

/* Finds the other documents with links that the move would rewrite.  A document that cannot be read
 * is skipped, because it could not be rewritten either. */
static void find_linking(struct docs_call *c)
{
    struct moving *m = c->moving;

    c->linking = arena_zalloc(c->mem, (m->n + 1) * sizeof(*c->linking));
    for (size_t i = 0; i < m->n; i++) {
        struct arena *mem = arena_new(DOCS_ARENA);
        struct vault_file file;
        struct error unread;
        size_t links = 0;
        if (!str_eq(m->others[i], m->from) &&
            vault_read(c->place.folder->vault, m->others[i], mem, &file, &unread))
            (void)links_rewrite(file.bytes, m->others[i], m->others[i], m->from, c->to_path, exists,
                                m, mem, &links);
        if (links > 0)
            c->linking[c->n_linking++] = m->others[i];
        arena_free(mem);
    }
}

/* Only a person may make a move that changes other documents, so it is refused. */
static bool spare_others(struct docs_call *c, struct error *err)
{
    find_linking(c);
    if (c->n_linking > 0)
        return error_set(err, ERR_DENIED, "%zu other document%s to this one, and would be changed",
                         c->n_linking, c->n_linking == 1 ? " links" : "s link");
    c->moving->n = 0; /* so a link that is added at this moment is not rewritten either */
    return true;
}

/* The backlinks are looked up before the move: after it the old path has none. */
static bool find_and_move(struct docs_call *c, struct error *err)
{
    struct moving *m = c->moving;
    struct index *x = c->home->index;
    struct str folder = c->place.folder->name, *to = NULL;
    size_t n = 0;
    bool more = false, also = false;

    if (!vault_is_current(c->place.folder->vault, err))
        return false;
    if (x && (!index_backlinks(x, folder, c->place.path, c->mem, &m->others, &m->n, &more, err) ||
              !index_backlinks(x, folder, c->to_path, c->mem, &to, &n, &also, err)))
        return false;
    take_others(m, to, n);
    if (more || also)
        return error_set(err, ERR_LIMIT,
                         "More than 1,000 documents link to this one; move it by hand");
    if (c->spares_others && !spare_others(c, err))
        return false;
    return vault_move(c->place.folder->vault, c->place.path, c->to_path, err);
}

static struct str place_of(const struct moving *m, struct str source)
{
    return str_eq(source, m->from) ? m->call->to_path : source;
}

static bool rewrite_one(struct docs_call *c, struct error *err)
{
    struct moving *m = c->moving;

    c->published = (struct vault_published){0};
    m->rewritten = 0;
    if (!vault_change(c->place.folder->vault, place_of(m, m->source), apply, m, c->mem,
                      &c->published, err))
        m->rewritten = 0;
    return true;
}

static void next_one(struct docs_call *c);

static void on_recorded(struct docs_call *c)
{
    struct moving *m = c->moving;

    keep_path(c->home, open_folder_of(c->place.folder), place_of(m, m->source));
    c->number += (int64_t)m->rewritten;
    late_add(c->home, c, place_of(m, m->source));
    c->published.staged = STR("");
    next_one(c);
}

static void on_rewritten(struct docs_call *c)
{
    struct moving *m = c->moving;

    c->n_ops = 0;
    /* A document that was not rewritten may still have been displaced and put back. */
    if (c->published.n == 0 || (!c->published.changed && c->published.staged.n == 0)) {
        on_recorded(c);
        return;
    }
    change_record(c, place_of(m, m->source), &c->published);
    call_write(c, on_recorded);
}

/* First the documents that link to `from`, then the moved document with its relative links. */
static void next_one(struct docs_call *c)
{
    struct moving *m = c->moving;

    if (m->at > m->n) {
        c->ok = true;
        call_finish(c);
        return;
    }
    m->source = m->at < m->n ? m->others[m->at] : m->from;
    m->at++;
    if (m->at <= m->n && str_eq(m->source, m->from)) { /* it links to itself: comes last */
        next_one(c);
        return;
    }
    call_submit(c, c->home->changes, rewrite_one, on_rewritten);
}

static void on_move_recorded(struct docs_call *c)
{
    struct open_folder *f = open_folder_of(c->place.folder);

    keep_path(c->home, f, c->moving->from);
    keep_path(c->home, f, c->to_path);
    next_one(c);
}

static void on_moved(struct docs_call *c)
{
    struct document_row *row;

    if (!c->ok) {
        call_finish(c);
        return;
    }
    row = arena_new_of(c->mem, struct document_row);
    row->folder = c->place.folder->name;
    row->path = c->place.path;
    row->changed_ms = clock_life_ms();
    c->n_ops = 0;
    row->new_path = c->to_path;
    call_op(c, op_document_move(row));
    call_write(c, on_move_recorded);
}

static void move_begin(struct docs_call *c)
{
    call_submit(c, c->home->changes, find_and_move, on_moved);
}

void docs_move(struct docs *d, struct docs_call *c, struct str to_path)
{
    c->home = d;
    c->to_path = arena_dup(c->mem, to_path);
    c->moving = arena_new_of(c->mem, struct moving);
    c->moving->call = c;
    c->moving->from = c->place.path;
    c->number = 0;
    c->in_line = true;
    c->begin = move_begin;
    change_enter(c);
}
