/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks in the memory store.  The caller of an op holds the lock; reads take it. */
#include "sinks/store/family.h"
#include "sinks/store/impl.h"

#include "store/memory_impl.h"

struct item {
    struct sink_row row;
    int64_t lease_until_ms;
};
struct arrays {
    struct item *items;
    size_t n, cap;
};

static struct arrays *arrays_of(struct memory_store *s)
{
    return mem_family_arrays(s, &sinks_memory);
}

static struct item *find(struct memory_store *s, struct str name)
{
    struct arrays *a = arrays_of(s);

    for (size_t i = 0; i < a->n; i++)
        if (str_eq(a->items[i].row.name, name))
            return &a->items[i];
    return NULL;
}

static bool is_held(const struct memory_store *s, const struct item *item,
                    const struct sink_claim *c)
{
    int64_t writer = item->row.writer;

    if (c->is_alone || writer == c->writer || item->lease_until_ms <= c->now_ms)
        return false;
    return (size_t)writer > s->n_writers || !s->writers[writer - 1].ended_ms;
}

static void lend(struct item *item, const struct sink_claim *c)
{
    item->row.writer = c->lease_ms ? c->writer : 0;
    item->lease_until_ms = c->now_ms + c->lease_ms;
}

static enum verdict sink_take(struct memory_store *s, const struct store_op *op,
                              int64_t now_ms unused_arg)
{
    const struct sink_claim *c = op->row;
    struct item *item = find(s, c->name);

    if (item && item->row.writer && is_held(s, item, c))
        return VERDICT_DUPLICATE;
    if (!item) {
        struct arrays *a = arrays_of(s);
        a->items = mem_grow(a->items, a->n, &a->cap, sizeof(*a->items));
        item = &a->items[a->n++];
        *item = (struct item){.row = {.name = arena_dup(s->mem, c->name), .saved_ms = c->now_ms}};
    }
    lend(item, c);
    return VERDICT_OK;
}

static enum verdict sink_save(struct memory_store *s, const struct store_op *op,
                              int64_t now_ms unused_arg)
{
    const struct sink_claim *c = op->row;
    struct item *item = find(s, c->name);

    if (!item || item->row.writer != c->writer)
        return VERDICT_MISSING;
    if (c->position.p)
        item->row.position = arena_dup(s->mem, c->position);
    item->row.saved_ms = c->now_ms;
    lend(item, c);
    return VERDICT_OK;
}

static bool sink(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);

    pthread_mutex_lock(&s->lock);
    const struct item *item = find(s, c->name);
    c->rows = NULL;
    c->n = item != NULL;
    if (item) {
        struct sink_row *row = arena_new_of(c->mem, struct sink_row);
        *row = item->row;
        row->name = arena_dup(c->mem, row->name);
        row->position = row->position.p ? arena_dup(c->mem, row->position) : STR_NONE;
        c->rows = row;
    }
    pthread_mutex_unlock(&s->lock);
    return true;
}

static const struct mem_op ops[] = {{OP_SINK_TAKE, sink_take}, {OP_SINK_SAVE, sink_save}, {0}};
static const struct verb_handler verbs[] = {{VERB_SINK, sink}, {0}};

static size_t tables(void *arrays, struct mem_table *ret)
{
    struct arrays *a = arrays;
    ret[0] = (struct mem_table){(void **)&a->items, &a->n, sizeof(*a->items)};
    return 1;
}

const struct memory_family sinks_memory = {
    .size = sizeof(struct arrays), .tables = tables, .ops = ops, .verbs = verbs};
