/* SPDX-License-Identifier: Apache-2.0 */
/* Templates in the memory store.  The caller of an op holds the lock; reads take it. */
#include "templates/store/family.h"
#include "templates/store/impl.h"

#include "store/memory_impl.h"

#include <stdlib.h>

struct arrays {
    struct template_row *rows; /* in the order they were made */
    size_t n, cap;
};

static struct arrays *arrays_of(struct memory_store *s)
{
    return mem_family_arrays(s, &templates_memory);
}

static const size_t texts[] = {
    offsetof(struct template_row, tenant),
    offsetof(struct template_row, name),
    offsetof(struct template_row, created_by),
    offsetof(struct template_row, spec),
};

static const struct template_row *newest_of(struct memory_store *s, struct str tenant,
                                            struct str name)
{
    struct arrays *a = arrays_of(s);
    for (size_t i = a->n; i-- > 0;)
        if (str_eq(a->rows[i].tenant, tenant) && str_eq(a->rows[i].name, name))
            return &a->rows[i];
    return NULL;
}

static bool is_full(struct memory_store *s, const struct template_row *newest, struct str tenant)
{
    struct arrays *a = arrays_of(s);
    size_t names = 0;
    if (newest)
        return newest->version >= TEMPLATE_VERSIONS_MAX;
    for (size_t i = 0; i < a->n; i++)
        names += a->rows[i].version == 1 && str_eq(a->rows[i].tenant, tenant);
    return names >= TEMPLATES_MAX;
}

static enum verdict template_put(struct memory_store *s, const struct store_op *op,
                                 int64_t now_ms unused_arg)
{
    struct arrays *a = arrays_of(s);
    struct template_change *c = op->row;
    const struct template_row *newest = newest_of(s, c->row.tenant, c->row.name);
    int64_t version = newest ? newest->version : 0;
    if (c->expected >= 0 && c->expected != version)
        return VERDICT_STALE;
    c->row.version = version;
    if (newest && str_eq(newest->spec, c->row.spec))
        return VERDICT_OK;
    if (is_full(s, newest, c->row.tenant))
        return VERDICT_LIMIT;
    c->row.version++;
    a->rows = mem_grow(a->rows, a->n, &a->cap, sizeof(*a->rows));
    a->rows[a->n] = c->row;
    mem_copy_texts(s->mem, &a->rows[a->n++], texts, countof(texts));
    return VERDICT_OK;
}

static enum verdict template_remove(struct memory_store *s, const struct store_op *op,
                                    int64_t now_ms unused_arg)
{
    struct arrays *a = arrays_of(s);
    const struct template_change *c = op->row;
    const struct template_row *newest = newest_of(s, c->row.tenant, c->row.name);
    size_t n = 0;
    if (!newest)
        return VERDICT_MISSING;
    if (c->expected >= 0 && c->expected != newest->version)
        return VERDICT_STALE;
    for (size_t i = 0; i < a->n; i++)
        if (!str_eq(a->rows[i].tenant, c->row.tenant) || !str_eq(a->rows[i].name, c->row.name))
            a->rows[n++] = a->rows[i];
    a->n = n;
    return VERDICT_OK;
}

/* Queries. */

static bool one(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    pthread_mutex_lock(&s->lock);
    const struct template_row *found = newest_of(s, c->tenant, c->name);
    if (c->number)
        found = NULL;
    for (size_t i = 0; c->number && !found && i < a->n; i++)
        if (a->rows[i].version == c->number && str_eq(a->rows[i].tenant, c->tenant) &&
            str_eq(a->rows[i].name, c->name))
            found = &a->rows[i];
    c->rows = mem_copy_row(c->mem, found, sizeof(*found), texts, countof(texts));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct template_row *)a)->name, ((const struct template_row *)b)->name);
}

static bool page(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    struct template_row *rows = arena_zalloc(c->mem, (a->n + 1) * sizeof(*rows));
    for (size_t i = 0; i < a->n; i++) {
        const struct template_row *row = &a->rows[i];
        if (!str_eq(row->tenant, c->tenant) || newest_of(s, row->tenant, row->name) != row ||
            (c->after.p && str_cmp(row->name, c->after) <= 0))
            continue;
        rows[n] = *row;
        mem_copy_texts(c->mem, &rows[n++], texts, countof(texts));
    }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), by_name);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

static bool versions(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    struct template_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = a->n; n < c->limit && i-- > 0;) {
        const struct template_row *row = &a->rows[i];
        if (!str_eq(row->tenant, c->tenant) || !str_eq(row->name, c->name) ||
            (c->after_id && row->version >= c->after_id))
            continue;
        rows[n] = *row;
        rows[n].spec = STR_NONE;
        mem_copy_texts(c->mem, &rows[n++], texts, countof(texts));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static const struct mem_op ops[] = {
    {OP_TEMPLATE_PUT, template_put},
    {OP_TEMPLATE_REMOVE, template_remove},
    {0},
};

static const struct verb_handler verbs[] = {
    {VERB_TEMPLATE, one},
    {VERB_TEMPLATES_PAGE, page},
    {VERB_TEMPLATE_VERSIONS, versions},
    {0},
};

static size_t tables(void *arrays, struct mem_table *ret)
{
    struct arrays *a = arrays;
    ret[0] = (struct mem_table){(void **)&a->rows, &a->n, sizeof(*a->rows)};
    return 1;
}

const struct memory_family templates_memory = {
    .size = sizeof(struct arrays),
    .tables = tables,
    .ops = ops,
    .verbs = verbs,
};
