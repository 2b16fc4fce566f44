/* SPDX-License-Identifier: Apache-2.0 */
/* Documents, their revisions and the reads of sessions, in the memory store.  The caller of a verb
 * holds the lock; reads take it. */
#include "docs/store/family.h"
#include "docs/store/impl.h"
#include "store/memory_impl.h"

#include <stdlib.h>

/* Of the row's texts only session_id is set. */
struct mem_read {
    struct document_read_row row;
    struct str document_id;
};

struct arrays {
    struct document_row *documents;
    size_t n_documents, cap_documents;
    struct revision_row *revisions; /* in the order they were made */
    size_t n_revisions, cap_revisions;
    struct mem_read *reads; /* oldest first */
    size_t n_reads, cap_reads;
};

static struct arrays *arrays_of(struct memory_store *s)
{
    return mem_family_arrays(s, &docs_memory);
}

static const size_t document_texts[] = {
    offsetof(struct document_row, id),
    offsetof(struct document_row, folder),
    offsetof(struct document_row, path),
};
static const size_t revision_texts[] = {
    offsetof(struct revision_row, document_id), offsetof(struct revision_row, author),
    offsetof(struct revision_row, kind),        offsetof(struct revision_row, reason),
    offsetof(struct revision_row, path),        offsetof(struct revision_row, content),
};
static const size_t read_texts[] = {
    offsetof(struct document_read_row, session_id),
    offsetof(struct document_read_row, folder),
    offsetof(struct document_read_row, path),
};

static struct document_row *document_at(struct memory_store *s, struct str folder, struct str path)
{
    struct arrays *a = arrays_of(s);
    for (size_t i = 0; i < a->n_documents; i++)
        if (!a->documents[i].ended_ms && str_eq(a->documents[i].folder, folder) &&
            str_eq(a->documents[i].path, path))
            return &a->documents[i];
    return NULL;
}

static const struct document_row *ended_at(struct memory_store *s, struct str folder,
                                           struct str path)
{
    struct arrays *a = arrays_of(s);
    const struct document_row *last = NULL;
    for (size_t i = 0; i < a->n_documents; i++) {
        const struct document_row *row = &a->documents[i];
        if (row->ended_ms && str_eq(row->folder, folder) && str_eq(row->path, path) &&
            (!last || row->ended_ms > last->ended_ms ||
             (row->ended_ms == last->ended_ms && str_cmp(row->id, last->id) > 0)))
            last = row;
    }
    return last;
}

static struct document_row *document_with(struct memory_store *s, struct str id)
{
    struct arrays *a = arrays_of(s);
    for (size_t i = 0; i < a->n_documents; i++)
        if (str_eq(a->documents[i].id, id))
            return &a->documents[i];
    return NULL;
}

static struct document_row *document_add(struct memory_store *s, const struct document_revise *rows)
{
    struct arrays *a = arrays_of(s);
    a->documents =
        mem_grow(a->documents, a->n_documents, &a->cap_documents, sizeof(struct document_row));
    struct document_row *row = &a->documents[a->n_documents++];
    *row = (struct document_row){.id = rows->document->id,
                                 .folder = rows->document->folder,
                                 .path = rows->document->path,
                                 .created_ms = rows->revision->at_ms};
    mem_copy_texts(s->mem, row, document_texts, countof(document_texts));
    return row;
}

static void revision_add(struct memory_store *s, const struct revision_row *made,
                         struct document_row *document)
{
    struct arrays *a = arrays_of(s);
    a->revisions =
        mem_grow(a->revisions, a->n_revisions, &a->cap_revisions, sizeof(struct revision_row));
    struct revision_row *row = &a->revisions[a->n_revisions++];
    *row = *made;
    row->document_id = document->id;
    row->revision = ++document->revision;
    row->path = document->path;
    row->size = (int64_t)row->content.n;
    row->has_text = true;
    mem_copy_texts(s->mem, row, revision_texts, countof(revision_texts));
    document->changed_ms = row->at_ms;
    memcpy(document->sha256, row->sha256, sizeof(document->sha256));
}

static int64_t stored_size(const struct revision_row *r)
{
    return r->content.p ? r->size + HISTORY_ROW_BYTES : 0;
}

/* This store keeps every text whole, so it deletes the oldest revisions one by one. */
static void history_prune(struct memory_store *s, struct str id, int64_t max)
{
    struct arrays *a = arrays_of(s);
    int64_t stored = 0;
    size_t n = 0;
    for (size_t i = 0; i < a->n_revisions; i++)
        if (str_eq(a->revisions[i].document_id, id)) {
            stored += stored_size(&a->revisions[i]);
            n++;
        }
    for (size_t i = 0; max > 0 && stored > max && n > 1 && i < a->n_revisions;) {
        if (!str_eq(a->revisions[i].document_id, id)) {
            i++;
            continue;
        }
        stored -= stored_size(&a->revisions[i]);
        n--;
        a->n_revisions--;
        memmove(&a->revisions[i], &a->revisions[i + 1],
                (a->n_revisions - i) * sizeof(*a->revisions));
    }
}

static enum verdict document_revise(struct memory_store *s, const struct store_op *op,
                                    int64_t now_ms)
{
    const struct document_revise *rows = op->row;
    struct revision_row *r = rows->revision;
    struct document_row *document = document_at(s, rows->document->folder, rows->document->path);
    (void)now_ms;
    if (!document && document_with(s, rows->document->id))
        return VERDICT_DUPLICATE;
    if (!document)
        document = document_add(s, rows);
    if (!document->revision || rows->even_if_same ||
        memcmp(document->sha256, r->sha256, sizeof(document->sha256)) != 0)
        revision_add(s, r, document);
    history_prune(s, document->id, r->history_max);
    revision_row_name(r, document->id);
    r->revision = document->revision;
    return VERDICT_OK;
}

static enum verdict document_move(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct document_row *d = op->row;
    struct document_row *row = document_at(s, d->folder, d->path);
    (void)now_ms;
    if (!row)
        return VERDICT_MISSING;
    if (document_at(s, d->folder, d->new_path))
        return VERDICT_DUPLICATE;
    row->path = arena_dup(s->mem, d->new_path);
    return VERDICT_OK;
}

static enum verdict document_end(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct document_row *d = op->row;
    struct document_row *row = document_at(s, d->folder, d->path);
    (void)now_ms;
    if (!row)
        return VERDICT_MISSING;
    row->ended_ms = d->ended_ms;
    return VERDICT_OK;
}

/* The first revision whose text stays. */
static int64_t age_from(struct memory_store *s, const struct document_row *d, int64_t before_ms)
{
    struct arrays *a = arrays_of(s);
    int64_t from = 0;
    if (d->ended_ms && d->ended_ms <= before_ms)
        return INT64_MAX;
    for (size_t i = 0; i < a->n_revisions; i++)
        if (str_eq(a->revisions[i].document_id, d->id) && a->revisions[i].at_ms <= before_ms)
            from = a->revisions[i].revision;
    return from;
}

static void age(struct memory_store *s, const struct document_row *d, struct documents_age *row)
{
    struct arrays *a = arrays_of(s);
    int64_t from = age_from(s, d, row->before_ms);
    for (size_t i = 0; i < a->n_revisions; i++) {
        struct revision_row *r = &a->revisions[i];
        if (!str_eq(r->document_id, d->id) || r->revision >= from || !r->content.p)
            continue;
        row->bytes += stored_size(r);
        row->texts++;
        r->content = STR_NONE;
        r->has_text = false;
    }
    row->documents++;
    memcpy(row->last, d->id.p, UUID_TEXT - 1);
    row->last[UUID_TEXT - 1] = '\0';
}

static const struct document_row *next_of_folder(struct memory_store *s, struct str folder,
                                                 struct str after)
{
    struct arrays *a = arrays_of(s);
    const struct document_row *next = NULL;
    for (size_t i = 0; i < a->n_documents; i++)
        if (str_eq(a->documents[i].folder, folder) && str_cmp(a->documents[i].id, after) > 0 &&
            (!next || str_cmp(a->documents[i].id, next->id) < 0))
            next = &a->documents[i];
    return next;
}

static enum verdict documents_age(struct memory_store *s, const struct store_op *op,
                                  int64_t now_ms unused_arg)
{
    struct documents_age *row = op->row;
    const struct document_row *d = next_of_folder(s, row->folder, row->after);
    row->documents = row->texts = row->bytes = 0;
    for (; d && row->documents < row->limit; d = next_of_folder(s, row->folder, d->id))
        age(s, d, row);
    return VERDICT_OK;
}

/* Reads of sessions. */

static void read_drop(struct memory_store *s, size_t at)
{
    struct arrays *a = arrays_of(s);
    a->n_reads--;
    memmove(&a->reads[at], &a->reads[at + 1], (a->n_reads - at) * sizeof(*a->reads));
}

static void read_add(struct memory_store *s, struct mem_read read)
{
    struct arrays *a = arrays_of(s);
    a->reads = mem_grow(a->reads, a->n_reads, &a->cap_reads, sizeof(struct mem_read));
    a->reads[a->n_reads++] = read;
}

static bool is_of(const struct mem_read *r, struct str session_id, struct str document_id)
{
    return str_eq(r->row.session_id, session_id) && str_eq(r->document_id, document_id);
}

static bool covers(const struct document_read_row *a, const struct document_read_row *b)
{
    return a->revision == b->revision && a->from_line <= b->from_line && a->to_line >= b->to_line;
}

/* Drops the reads that `fresh` covers, and the oldest read when there are too many. */
static void reads_make_room(struct memory_store *s, const struct mem_read *fresh)
{
    struct arrays *a = arrays_of(s);
    size_t n = 0, oldest = 0;
    for (size_t i = a->n_reads; i-- > 0;) {
        if (!is_of(&a->reads[i], fresh->row.session_id, fresh->document_id))
            continue;
        if (covers(&fresh->row, &a->reads[i].row)) {
            read_drop(s, i);
            oldest -= oldest > i;
        } else {
            oldest = i;
            n++;
        }
    }
    if (n >= DOCUMENT_READS_MAX)
        read_drop(s, oldest);
}

/* If a known read covers `fresh`, the newest such read gets the time of `fresh` instead. */
static bool reads_renew(struct memory_store *s, const struct mem_read *fresh)
{
    struct arrays *a = arrays_of(s);
    for (size_t i = a->n_reads; i-- > 0;) {
        struct mem_read known = a->reads[i];
        if (!is_of(&known, fresh->row.session_id, fresh->document_id) ||
            !covers(&known.row, &fresh->row))
            continue;
        known.row.at_ms = fresh->row.at_ms;
        read_drop(s, i);
        read_add(s, known);
        return true;
    }
    return false;
}

static enum verdict document_read(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct document_read_row *r = op->row;
    const struct session_row *session = mem_session_of(s, op->who, r->session_id);
    const struct document_row *document = document_at(s, r->folder, r->path);
    if (!session)
        return VERDICT_MISSING;
    if (!session_row_is_live(session, now_ms))
        return VERDICT_NOT_ACTIVE;
    if (!document || r->revision < 0 || r->revision > document->revision)
        return VERDICT_MISSING;
    struct mem_read fresh = {.row = *r, .document_id = document->id};
    fresh.row.session_id = session->id;
    fresh.row.folder = fresh.row.path = STR_NONE;
    if (!r->revision)
        fresh.row.revision = document->revision;
    if (reads_renew(s, &fresh))
        return VERDICT_OK;
    reads_make_room(s, &fresh);
    read_add(s, fresh);
    return VERDICT_OK;
}

static enum verdict document_reads_copy(struct memory_store *s, const struct store_op *op,
                                        int64_t now_ms)
{
    const struct document_reads_copy *c = op->row;
    struct principal owner = *op->who;
    struct arrays *a = arrays_of(s);
    size_t n = a->n_reads;
    owner.tenant_wide = false;
    const struct session_row *to = mem_session_of(s, &owner, c->to);
    for (size_t i = 0; to && session_row_is_live(to, now_ms) && i < n; i++) {
        struct mem_read copy = a->reads[i];
        if (!str_eq(copy.row.session_id, c->from))
            continue;
        copy.row.session_id = to->id;
        read_add(s, copy);
    }
    return VERDICT_OK;
}

static void reads_reap(struct memory_store *s)
{
    struct arrays *a = arrays_of(s);
    for (size_t i = a->n_reads; i-- > 0;)
        if (mem_session_is_over(s, a->reads[i].row.session_id))
            read_drop(s, i);
}

/* Queries. */

static bool document(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    const struct document_place *at = c->filter;
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct document_row *row = c->verb == VERB_DOCUMENT_ENDED
                                         ? ended_at(s, at->folder, at->path)
                                         : document_at(s, at->folder, at->path);
    c->rows = mem_copy_row(c->mem, row, sizeof(*row), document_texts, countof(document_texts));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool document_by_id(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    c->rows = mem_copy_row(c->mem, document_with(s, c->id), sizeof(struct document_row),
                           document_texts, countof(document_texts));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static int by_path(const void *a, const void *b)
{
    return str_cmp(((const struct document_row *)a)->path, ((const struct document_row *)b)->path);
}

static bool documents_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    const struct document_place *at = c->filter;
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct document_row *rows = arena_zalloc(c->mem, (a->n_documents + 1) * sizeof(*rows));
    for (size_t i = 0; i < a->n_documents; i++) {
        const struct document_row *row = &a->documents[i];
        if (row->ended_ms || !str_eq(row->folder, at->folder) ||
            (c->after.p && str_cmp(row->path, c->after) <= 0))
            continue;
        rows[n] = *row;
        mem_copy_texts(c->mem, &rows[n++], document_texts, countof(document_texts));
    }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), by_path);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

static bool document_history(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    struct revision_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = a->n_revisions; n < c->limit && i-- > 0;) {
        const struct revision_row *row = &a->revisions[i];
        if (!str_eq(row->document_id, c->id) || (c->after_id && row->revision >= c->after_id))
            continue;
        rows[n] = *row;
        rows[n].content = STR_NONE;
        mem_copy_texts(c->mem, &rows[n++], revision_texts, countof(revision_texts));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool document_revision(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    const struct revision_row *found = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = a->n_revisions; !found && i-- > 0;)
        if (str_eq(a->revisions[i].document_id, c->id) &&
            (!c->number || a->revisions[i].revision == c->number))
            found = &a->revisions[i];
    c->rows = mem_copy_row(c->mem, found, sizeof(*found), revision_texts, countof(revision_texts));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool document_reads(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    struct document_read_row *rows = arena_zalloc(c->mem, DOCUMENT_READS_MAX * sizeof(*rows));
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct document_row *document = document_with(s, c->id);
    bool owned = mem_session_of(s, c->who, c->session_id) != NULL;
    for (size_t i = 0; i < a->n_reads && owned && document; i++) {
        if (!is_of(&a->reads[i], c->session_id, c->id))
            continue;
        rows[n] = a->reads[i].row;
        rows[n].folder = document->folder;
        rows[n].path = document->path;
        mem_copy_texts(c->mem, &rows[n++], read_texts, countof(read_texts));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static const struct mem_op ops[] = {
    {OP_DOCUMENT_REVISE, document_revise},
    {OP_DOCUMENT_MOVE, document_move},
    {OP_DOCUMENT_END, document_end},
    {OP_DOCUMENT_READ, document_read},
    {OP_DOCUMENTS_AGE, documents_age},
    {OP_DOCUMENT_READS_COPY, document_reads_copy},
    {0},
};

static const struct verb_handler verbs[] = {
    {VERB_DOCUMENT, document},
    {VERB_DOCUMENT_ENDED, document},
    {VERB_DOCUMENT_BY_ID, document_by_id},
    {VERB_DOCUMENTS_PAGE, documents_page},
    {VERB_DOCUMENT_HISTORY, document_history},
    {VERB_DOCUMENT_REVISION, document_revision},
    {VERB_DOCUMENT_READS, document_reads},
    {0},
};

static size_t tables(void *arrays, struct mem_table *ret)
{
    struct arrays *a = arrays;
    ret[0] = (struct mem_table){(void **)&a->documents, &a->n_documents, sizeof(*a->documents)};
    ret[1] = (struct mem_table){(void **)&a->revisions, &a->n_revisions, sizeof(*a->revisions)};
    ret[2] = (struct mem_table){(void **)&a->reads, &a->n_reads, sizeof(*a->reads)};
    return 3;
}

const struct memory_family docs_memory = {
    .size = sizeof(struct arrays),
    .tables = tables,
    .ops = ops,
    .verbs = verbs,
    .reap = reads_reap,
};
