/* SPDX-License-Identifier: Apache-2.0 */
/* Holds in the memory store.  The caller of an op holds the lock; reads take it. */
#include "holds/store/family.h"
#include "holds/store/impl.h"

#include "store/memory_impl.h"

struct arrays {
    struct hold_row *rows; /* in the order they were made */
    size_t n, cap;
};

static struct arrays *arrays_of(struct memory_store *s)
{
    return mem_family_arrays(s, &holds_memory);
}

static const size_t texts[] = {
    offsetof(struct hold_row, id),      offsetof(struct hold_row, tenant),
    offsetof(struct hold_row, target),  offsetof(struct hold_row, reason),
    offsetof(struct hold_row, made_by), offsetof(struct hold_row, released_by),
};

static bool exists(struct memory_store *s, const struct hold_row *row)
{
    const struct principal wide = {.tenant = row->tenant, .tenant_wide = true};
    const struct user_row *user;

    if (row->kind == HOLD_SESSION)
        return mem_session_reached(s, &wide, row->target);
    user = mem_user_by_id(s, row->target);
    return user && str_eq(user->tenant, row->tenant);
}

static enum verdict hold_put(struct memory_store *s, const struct store_op *op,
                             int64_t now_ms unused_arg)
{
    struct arrays *a = arrays_of(s);
    const struct hold_row *row = op->row;
    size_t live = 0;
    bool is_held = false;

    if (!exists(s, row))
        return VERDICT_MISSING;
    for (size_t i = 0; i < a->n; i++) {
        bool counts = !a->rows[i].released_ms && str_eq(a->rows[i].tenant, row->tenant);
        live += counts;
        is_held |= counts && a->rows[i].kind == row->kind && str_eq(a->rows[i].target, row->target);
    }
    if (is_held || live >= HOLDS_MAX)
        return is_held ? VERDICT_DUPLICATE : VERDICT_LIMIT;
    a->rows = mem_grow(a->rows, a->n, &a->cap, sizeof(*a->rows));
    a->rows[a->n] = *row;
    mem_copy_texts(s->mem, &a->rows[a->n++], texts, countof(texts));
    s->holds_made++;
    return VERDICT_OK;
}

static void prune(struct arrays *a, struct str tenant)
{
    size_t kept = 0, n = a->n;

    for (size_t i = a->n; i-- > 0;) {
        if (!a->rows[i].released_ms || !str_eq(a->rows[i].tenant, tenant) ||
            kept++ < HOLDS_RELEASED_KEPT)
            continue;
        memmove(&a->rows[i], &a->rows[i + 1], (n - i - 1) * sizeof(*a->rows));
        n--;
    }
    a->n = n;
}

static enum verdict hold_release(struct memory_store *s, const struct store_op *op,
                                 int64_t now_ms unused_arg)
{
    struct arrays *a = arrays_of(s);
    const struct hold_row *row = op->row;

    for (size_t i = 0; i < a->n; i++) {
        struct hold_row *r = &a->rows[i];
        if (!str_eq(r->id, row->id) || !str_eq(r->tenant, row->tenant) || r->released_ms)
            continue;
        r->released_ms = row->released_ms;
        r->released_by = arena_dup(s->mem, row->released_by);
        prune(a, row->tenant);
        return VERDICT_OK;
    }
    return VERDICT_MISSING;
}

/* Queries. */

static bool page(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    struct hold_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    for (size_t i = a->n; n < c->limit && i-- > 0;) {
        const struct hold_row *row = &a->rows[i];
        if ((c->tenant.p && !str_eq(row->tenant, c->tenant)) || (c->flag && row->released_ms) ||
            (c->after.p && str_cmp(row->id, c->after) >= 0))
            continue;
        rows[n] = *row;
        mem_copy_texts(c->mem, &rows[n++], texts, countof(texts));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static void add_owners(struct memory_store *s, const struct hold_row *row, struct arena *mem,
                       struct held_row *rows, size_t *n)
{
    struct held_row *user = &rows[(*n)++];

    *user = (struct held_row){.tenant = arena_dup(mem, row->tenant), .kind = HELD_OWNER};
    user->name = arena_printf(mem, "user:%.*s", STR_ARG(row->target));
    for (size_t i = 0; i < s->n_keys; i++)
        if (str_eq(s->keys[i].user_id, row->target)) {
            rows[*n] = *user;
            rows[(*n)++].name = arena_printf(mem, "key:%.*s", STR_ARG(s->keys[i].id));
        }
}

static bool held(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    struct held_row *rows = arena_zalloc(c->mem, (a->n + s->n_keys + 1) * sizeof(*rows));
    for (size_t i = 0; i < a->n; i++) {
        const struct hold_row *row = &a->rows[i];
        if (row->released_ms)
            continue;
        if (row->kind == HOLD_USER)
            add_owners(s, row, c->mem, rows, &n);
        else
            rows[n++] = (struct held_row){.tenant = arena_dup(c->mem, row->tenant),
                                          .kind = HELD_SESSION,
                                          .name = arena_dup(c->mem, row->target)};
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool is_of_user(struct memory_store *s, struct str owner, struct str user)
{
    struct str rest = owner, kind = str_split(&rest, ':');

    if (str_eq(kind, STR("user")))
        return str_eq(rest, user);
    for (size_t i = 0; str_eq(kind, STR("key")) && i < s->n_keys; i++)
        if (str_eq(s->keys[i].id, rest))
            return str_eq(s->keys[i].user_id, user);
    return false;
}

static bool keeps(struct memory_store *s, const struct session_row *session)
{
    const struct arrays *a = arrays_of(s);

    for (size_t i = 0; i < a->n; i++) {
        const struct hold_row *row = &a->rows[i];
        if (!row->released_ms && str_eq(row->tenant, session->tenant) &&
            (row->kind == HOLD_SESSION ? str_eq(row->target, session->id)
                                       : is_of_user(s, session->owner, row->target)))
            return true;
    }
    return false;
}

static const struct mem_op ops[] = {
    {OP_HOLD_PUT, hold_put},
    {OP_HOLD_RELEASE, hold_release},
    {0},
};

static const struct verb_handler verbs[] = {
    {VERB_HOLDS_PAGE, page},
    {VERB_HELD, held},
    {0},
};

static size_t tables(void *arrays, struct mem_table *ret)
{
    struct arrays *a = arrays;
    ret[0] = (struct mem_table){(void **)&a->rows, &a->n, sizeof(*a->rows)};
    return 1;
}

const struct memory_family holds_memory = {
    .size = sizeof(struct arrays),
    .tables = tables,
    .ops = ops,
    .verbs = verbs,
    .keeps = keeps,
};
