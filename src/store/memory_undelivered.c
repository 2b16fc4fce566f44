/* SPDX-License-Identifier: Apache-2.0 */
/* Undelivered results in the memory store.  The caller of a verb holds the lock; reads take it. */
#include "store/memory_impl.h"

#include "base/clock.h"

static const size_t texts[] = {
    offsetof(struct undelivered_row, tenant),
    offsetof(struct undelivered_row, owner),
    offsetof(struct undelivered_row, session_id),
    offsetof(struct undelivered_row, sealed),
};

static struct undelivered_row *row_by_id(struct memory_store *s, int64_t id)
{
    for (size_t i = 0; i < s->n_undelivered; i++)
        if (s->undelivered[i].id == id)
            return &s->undelivered[i];
    return NULL;
}

static struct undelivered_row *row_of(struct memory_store *s, const struct principal *who,
                                      int64_t id, int64_t now_ms)
{
    struct undelivered_row *row = row_by_id(s, id);
    bool theirs = row && principal_owns(who, row->tenant, row->owner);
    return theirs && row->expires_ms > now_ms ? row : NULL;
}

/* Keeps the other rows in the order in which they were put. */
static void drop(struct memory_store *s, struct undelivered_row *row)
{
    size_t at = (size_t)(row - s->undelivered);
    memmove(row, row + 1, (--s->n_undelivered - at) * sizeof(*row));
}

static enum verdict undelivered_put(struct memory_store *s, const struct store_op *op,
                                    int64_t now_ms)
{
    (void)now_ms;
    if (!mem_session_of(s, op->who, op->undelivered->session_id))
        return VERDICT_MISSING;
    if (row_by_id(s, op->undelivered->id))
        return VERDICT_DUPLICATE;
    s->undelivered = mem_grow(s->undelivered, s->n_undelivered, &s->cap_undelivered,
                              sizeof(struct undelivered_row));
    struct undelivered_row *row = &s->undelivered[s->n_undelivered++];
    *row = *op->undelivered;
    row->tenant = op->who->tenant;
    row->owner = op->who->owner;
    row->sealed_len = (int64_t)row->sealed.n;
    mem_copy_texts(s->mem, row, texts, countof(texts));
    return VERDICT_OK;
}

static enum verdict undelivered_take(struct memory_store *s, const struct store_op *op,
                                     int64_t now_ms)
{
    struct undelivered_row *row = row_of(s, op->who, op->undelivered->id, now_ms);
    if (!row)
        return VERDICT_MISSING;
    drop(s, row);
    return VERDICT_OK;
}

void mem_undelivered_reap(struct memory_store *s, int64_t now_ms, unsigned batch)
{
    for (; batch; batch--) {
        struct undelivered_row *first = NULL;
        for (size_t i = 0; i < s->n_undelivered; i++) {
            struct undelivered_row *row = &s->undelivered[i];
            if (row->expires_ms <= now_ms && (!first || row->expires_ms < first->expires_ms))
                first = row;
        }
        if (!first)
            return;
        drop(s, first);
    }
}

static bool undelivered_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct undelivered_row *copy = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct undelivered_row *row = row_of(s, c->who, c->number, clock_life_ms());
    if (row) {
        copy = arena_new_of(c->mem, struct undelivered_row);
        *copy = *row;
        mem_copy_texts(c->mem, copy, texts, countof(texts));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = copy;
    return true;
}

/* The row with the lowest id above `after` that is not past its end, or NULL. */
static const struct undelivered_row *next_of(const struct memory_store *s, int64_t after,
                                             int64_t now_ms)
{
    const struct undelivered_row *first = NULL;
    for (size_t i = 0; i < s->n_undelivered; i++) {
        const struct undelivered_row *row = &s->undelivered[i];
        if (row->id > after && row->expires_ms > now_ms && (!first || row->id < first->id))
            first = row;
    }
    return first;
}

static bool undelivered_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct undelivered_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    const struct undelivered_row *row;
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (; n < c->limit && (row = next_of(s, c->after_id, clock_life_ms()));
         c->after_id = row->id) {
        rows[n] = *row;
        rows[n].sealed = STR_NONE;
        mem_copy_texts(c->mem, &rows[n++], texts, countof(texts));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

const struct mem_op mem_undelivered_ops[] = {
    {OP_UNDELIVERED_PUT, undelivered_put},
    {OP_UNDELIVERED_TAKE, undelivered_take},
    {0},
};

const struct verb_handler mem_undelivered_verbs[] = {
    {VERB_UNDELIVERED_GET, undelivered_get},
    {VERB_UNDELIVERED_PAGE, undelivered_page},
    {0},
};
