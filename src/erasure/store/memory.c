/* SPDX-License-Identifier: Apache-2.0 */
/* Erasures in the memory store.  The documents of the knowledge base are a family of their own, which
 * this store does not reach into, so there are none here. */
#include "erasure/store/family.h"
#include "erasure/store/impl.h"

#include "holds/store/rows.h"
#include "holds/store/verbs.h"
#include "store/memory_impl.h"

struct arrays {
    struct erasure_row *rows; /* in the order they were made */
    size_t n, cap;
};

static struct arrays *arrays_of(struct memory_store *s)
{
    return mem_family_arrays(s, &erasure_memory);
}

static const size_t texts[] = {
    offsetof(struct erasure_row, id),      offsetof(struct erasure_row, tenant),
    offsetof(struct erasure_row, user_id), offsetof(struct erasure_row, made_by),
    offsetof(struct erasure_row, reason),  offsetof(struct erasure_row, names),
};

static bool owns(const struct memory_store *s, struct str owner, struct str user)
{
    struct str rest = owner, kind = str_split(&rest, ':');

    if (str_eq(kind, STR("user")))
        return str_eq(rest, user);
    for (size_t i = 0; str_eq(kind, STR("key")) && i < s->n_keys; i++)
        if (str_eq(s->keys[i].id, rest) && str_eq(s->keys[i].user_id, user))
            return true;
    return false;
}

static struct erasure_row *row_of(struct memory_store *s, struct str id)
{
    struct arrays *a = arrays_of(s);

    for (size_t i = 0; i < a->n; i++)
        if (str_eq(a->rows[i].id, id))
            return &a->rows[i];
    return NULL;
}

static bool is_under_way(struct memory_store *s, struct str user)
{
    const struct arrays *a = arrays_of(s);

    for (size_t i = 0; i < a->n; i++)
        if (str_eq(a->rows[i].user_id, user) && !a->rows[i].done_ms)
            return true;
    return false;
}

static void cut(struct memory_store *s, struct user_row *user, int64_t now_ms)
{
    user->password = STR_NONE;
    user->ended_ms = user->ended_ms ? user->ended_ms : now_ms;
    for (size_t i = 0; i < s->n_keys; i++)
        if (str_eq(s->keys[i].user_id, user->id) && !s->keys[i].revoked_ms)
            s->keys[i].revoked_ms = now_ms;
    for (size_t i = s->n_logins; i-- > 0;)
        if (str_eq(s->logins[i].user_id, user->id))
            s->logins[i] = s->logins[--s->n_logins];
}

static enum verdict begin(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct arrays *a = arrays_of(s);
    const struct erasure_row *row = op->row;
    struct user_row *user = mem_user_by_id(s, row->user_id);
    const struct session_row of_user = {
        .tenant = row->tenant, .owner = arena_printf(s->mem, "user:%.*s", STR_ARG(row->user_id))};

    if (!user || !str_eq(user->tenant, row->tenant))
        return VERDICT_MISSING;
    if (is_under_way(s, row->user_id))
        return VERDICT_DUPLICATE;
    if (mem_families_keep(s, &of_user))
        return VERDICT_NOT_ACTIVE;
    a->rows = mem_grow(a->rows, a->n, &a->cap, sizeof(*a->rows));
    a->rows[a->n] = *row;
    mem_copy_texts(s->mem, &a->rows[a->n++], texts, countof(texts));
    cut(s, user, now_ms);
    return VERDICT_OK;
}

static enum verdict move(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct erasure_move *m = op->row;
    struct erasure_row *row = row_of(s, m->id);

    if (!row || row->done_ms || row->next_id != m->from)
        return VERDICT_STALE;
    row->next_id = m->to;
    row->bodies += m->bodies;
    row->body_bytes += m->body_bytes;
    row->moved_ms = now_ms;
    return VERDICT_OK;
}

static void drop_others(struct memory_store *s, const struct erasure_rows *r)
{
    for (size_t i = s->n_transports; i-- > 0;)
        if (str_eq(s->transports[i].tenant, r->tenant) &&
            owns(s, s->transports[i].owner, r->user_id))
            s->transports[i] = s->transports[--s->n_transports];
    for (size_t i = s->n_undelivered; i-- > 0;)
        if (str_eq(s->undelivered[i].tenant, r->tenant) &&
            owns(s, s->undelivered[i].owner, r->user_id))
            s->undelivered[i] = s->undelivered[--s->n_undelivered];
    for (size_t i = s->n_idempotency; i-- > 0;)
        if (str_eq(s->idempotency[i].tenant, r->tenant) &&
            owns(s, s->idempotency[i].owner, r->user_id))
            s->idempotency[i] = s->idempotency[--s->n_idempotency];
}

static void drop_context(struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_sessions; i++)
        if (str_eq(s->sessions[i].context_id, id))
            return;
    for (size_t i = s->n_contexts; i-- > 0;)
        if (str_eq(s->contexts[i].id, id))
            s->contexts[i] = s->contexts[--s->n_contexts];
}

static enum verdict drop_rows(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct erasure_rows *r = op->row;
    struct erasure_row *row = row_of(s, r->id);
    int64_t n = 0;

    drop_others(s, r);
    for (size_t i = 0; i < s->n_sessions && n < r->most;) {
        const struct session_row *e = &s->sessions[i];
        if (!str_eq(e->tenant, r->tenant) || !owns(s, e->owner, r->user_id) ||
            mem_families_keep(s, e)) {
            i++;
            continue;
        }
        struct str context = e->context_id;
        memmove(&s->sessions[i], &s->sessions[i + 1],
                (--s->n_sessions - i) * sizeof(struct session_row));
        if (context.p)
            drop_context(s, context);
        n++;
    }
    if (row) {
        row->sessions += n;
        row->moved_ms = now_ms;
    }
    return VERDICT_OK;
}

static enum verdict authors(struct memory_store *s unused_arg, const struct store_op *op unused_arg,
                            int64_t now_ms unused_arg)
{
    return VERDICT_OK;
}

static enum verdict names(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct erasure_row *asked = op->row;
    struct erasure_row *row = row_of(s, asked->id);
    struct user_row *user = mem_user_by_id(s, asked->user_id);

    if (user && str_eq(user->tenant, asked->tenant))
        user->name = arena_printf(s->mem, "erased-%.*s", STR_ARG(user->id));
    for (size_t i = 0; i < s->n_keys; i++)
        if (str_eq(s->keys[i].user_id, asked->user_id))
            s->keys[i].name = STR_NONE;
    if (row) {
        row->names = STR_NONE;
        row->moved_ms = now_ms;
    }
    return VERDICT_OK;
}

static enum verdict done(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct erasure_row *asked = op->row;
    struct erasure_row *row = row_of(s, asked->id);

    if (!row || row->done_ms)
        return VERDICT_STALE;
    row->held = asked->held;
    row->moved_ms = row->done_ms = now_ms;
    return VERDICT_OK;
}

static const struct mem_op ops[] = {
    {OP_ERASURE_BEGIN, begin},
    {OP_ERASURE_MOVE, move},
    {OP_ERASURE_ROWS, drop_rows},
    {OP_ERASURE_AUTHORS, authors},
    {OP_ERASURE_NAMES, names},
    {OP_ERASURE_DONE, done},
    {0},
};

/* Queries. */

static bool page(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    struct erasure_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    for (size_t i = a->n; n < c->limit && i-- > 0;) {
        const struct erasure_row *row = &a->rows[i];
        if ((c->tenant.p && !str_eq(row->tenant, c->tenant)) || (c->flag && row->done_ms) ||
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

static void count_session(struct memory_store *s, const struct session_row *e,
                          struct erasure_left *to)
{
    bool is_live = e->status == SESSION_ACTIVE || e->status == SESSION_IDLE;

    if (mem_families_keep(s, e)) {
        to->held++;
        return;
    }
    to->calls += e->tool_count;
    to->live += is_live;
    to->over += !is_live;
}

static bool left(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct erasure_left *to = arena_zalloc(c->mem, sizeof(*to));
    const struct session_row of_user = {.tenant = c->tenant,
                                        .owner = arena_printf(c->mem, "user:%.*s", STR_ARG(c->id))};

    pthread_mutex_lock(&s->lock);
    to->is_held = mem_families_keep(s, &of_user);
    for (size_t i = 0; i < s->n_sessions; i++)
        if (str_eq(s->sessions[i].tenant, c->tenant) && owns(s, s->sessions[i].owner, c->id))
            count_session(s, &s->sessions[i], to);
    for (size_t i = 0; i < s->n_keys; i++)
        to->keys += str_eq(s->keys[i].user_id, c->id) && !s->keys[i].revoked_ms;
    for (size_t i = 0; i < s->n_logins; i++)
        to->logins += str_eq(s->logins[i].user_id, c->id) && !s->logins[i].revoked_ms &&
                      str_eq(s->logins[i].id, s->logins[i].family);
    pthread_mutex_unlock(&s->lock);
    c->rows = to;
    c->n = 1;
    return true;
}

static bool owners(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    struct erasure_owner *rows = arena_zalloc(c->mem, (s->n_keys + 1) * sizeof(*rows));
    rows[n++].owner = arena_printf(c->mem, "user:%.*s", STR_ARG(c->id));
    for (size_t i = 0; i < s->n_keys; i++)
        if (str_eq(s->keys[i].user_id, c->id))
            rows[n++].owner = arena_printf(c->mem, "key:%.*s", STR_ARG(s->keys[i].id));
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool documents(struct store *store unused_arg, struct store_call *c,
                      struct error *err unused_arg)
{
    c->rows = arena_zalloc(c->mem, 1);
    c->n = 0;
    return true;
}

static bool clean(struct store *store unused_arg, struct store_call *c,
                  struct error *err unused_arg)
{
    *(bool *)c->ret = true;
    return true;
}

static const struct verb_handler verbs[] = {
    {VERB_ERASURES_PAGE, page},          {VERB_ERASURE_LEFT, left},   {VERB_ERASURE_OWNERS, owners},
    {VERB_ERASURE_DOCUMENTS, documents}, {VERB_ERASURE_CLEAN, clean}, {0},
};

static size_t tables(void *arrays, struct mem_table *ret)
{
    struct arrays *a = arrays;
    ret[0] = (struct mem_table){(void **)&a->rows, &a->n, sizeof(*a->rows)};
    return 1;
}

const struct memory_family erasure_memory = {
    .size = sizeof(struct arrays),
    .tables = tables,
    .ops = ops,
    .verbs = verbs,
};
