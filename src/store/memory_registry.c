/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants, users, keys, contexts and idempotency rows in the memory store.  The caller of a verb
 * holds the lock; reads take it. */
#include "store/memory_impl.h"

#include <stdlib.h>

#include "base/clock.h"

const size_t mem_user_texts[MEM_USER_TEXTS] = {
    offsetof(struct user_row, id),       offsetof(struct user_row, tenant),
    offsetof(struct user_row, name),     offsetof(struct user_row, issuer),
    offsetof(struct user_row, password),
};
static const size_t key_texts[] = {
    offsetof(struct key_row, id),     offsetof(struct key_row, tenant),
    offsetof(struct key_row, name),   offsetof(struct key_row, user_id),
    offsetof(struct key_row, scopes),
};
static const size_t context_texts[] = {
    offsetof(struct context_row, id),
    offsetof(struct context_row, tenant),
    offsetof(struct context_row, document),
};
static const size_t idempotency_texts[] = {
    offsetof(struct idempotency_row, tenant), offsetof(struct idempotency_row, owner),
    offsetof(struct idempotency_row, key),    offsetof(struct idempotency_row, headers),
    offsetof(struct idempotency_row, body),
};

static struct tenant_row *tenant_by_id(struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_tenants; i++)
        if (str_eq(s->tenants[i].id, id))
            return &s->tenants[i];
    return NULL;
}

void mem_tenant_make(struct memory_store *s, struct str id, int64_t now_ms)
{
    if (tenant_by_id(s, id))
        return;
    s->tenants = mem_grow(s->tenants, s->n_tenants, &s->cap_tenants, sizeof(struct tenant_row));
    s->tenants[s->n_tenants++] =
        (struct tenant_row){.id = arena_dup(s->mem, id), .created_ms = now_ms};
}

static enum verdict tenant_ensure(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    (void)now_ms;
    mem_tenant_make(s, op->tenant->id, op->tenant->created_ms);
    return VERDICT_OK;
}

struct user_row *mem_user_by_id(struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_users; i++)
        if (str_eq(s->users[i].id, id))
            return &s->users[i];
    return NULL;
}

/* Names are unique among those users of a tenant that have no issuer. */
static bool name_is_taken(const struct memory_store *s, const struct user_row *user)
{
    for (size_t i = 0; i < s->n_users; i++)
        if (!user->issuer.p && !s->users[i].issuer.p && str_eq(s->users[i].tenant, user->tenant) &&
            str_eq(s->users[i].name, user->name))
            return true;
    return false;
}

static enum verdict user_ensure(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct user_row *row = mem_user_by_id(s, op->user->id);
    mem_tenant_make(s, op->user->tenant, now_ms);
    if (row) {
        if (!str_eq(row->tenant, op->user->tenant))
            return VERDICT_DUPLICATE;
        if (!row->password.p)
            row->role = op->user->role;
        return VERDICT_OK;
    }
    if (name_is_taken(s, op->user))
        return VERDICT_DUPLICATE;
    s->users = mem_grow(s->users, s->n_users, &s->cap_users, sizeof(struct user_row));
    row = &s->users[s->n_users++];
    *row = *op->user;
    mem_copy_texts(s->mem, row, mem_user_texts, MEM_USER_TEXTS);
    return VERDICT_OK;
}

static struct key_row *key_by_id(struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_keys; i++)
        if (str_eq(s->keys[i].id, id))
            return &s->keys[i];
    return NULL;
}

static enum verdict key_create(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    if (key_by_id(s, op->key->id))
        return VERDICT_DUPLICATE;
    if (op->key->user_id.p) {
        const struct user_row *user = mem_user_by_id(s, op->key->user_id);
        if (!user || !str_eq(user->tenant, op->key->tenant))
            return VERDICT_MISSING;
    }
    mem_tenant_make(s, op->key->tenant, now_ms);
    s->keys = mem_grow(s->keys, s->n_keys, &s->cap_keys, sizeof(struct key_row));
    struct key_row *row = &s->keys[s->n_keys++];
    *row = *op->key;
    mem_copy_texts(s->mem, row, key_texts, countof(key_texts));
    return VERDICT_OK;
}

static enum verdict key_revoke(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct key_row *row = key_by_id(s, op->key->id);
    (void)now_ms;
    if (!row || row->revoked_ms || !str_eq(row->tenant, op->key->tenant))
        return VERDICT_MISSING;
    row->revoked_ms = op->key->revoked_ms;
    return VERDICT_OK;
}

static enum verdict key_used(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct key_row *row = key_by_id(s, op->key->id);
    (void)now_ms;
    if (!row)
        return VERDICT_MISSING;
    if (op->key->last_used_ms > row->last_used_ms)
        row->last_used_ms = op->key->last_used_ms;
    return VERDICT_OK;
}

static struct context_row *context_by_id(struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_contexts; i++)
        if (str_eq(s->contexts[i].id, id))
            return &s->contexts[i];
    return NULL;
}

enum verdict mem_context_write(struct memory_store *s, const struct store_op *op, struct str id)
{
    struct context_row *row = context_by_id(s, id);
    int64_t expected = op->context->version;
    if (row && !str_eq(row->tenant, op->who->tenant))
        return VERDICT_DUPLICATE;
    if (expected >= 0 && expected != (row ? row->version : 0))
        return VERDICT_STALE;
    if (!row) {
        s->contexts =
            mem_grow(s->contexts, s->n_contexts, &s->cap_contexts, sizeof(struct context_row));
        row = &s->contexts[s->n_contexts++];
        *row = (struct context_row){
            .id = id, .tenant = op->who->tenant, .created_ms = op->context->created_ms};
    }
    row->version++;
    row->document = op->context->document;
    row->updated_ms = op->context->updated_ms;
    mem_copy_texts(s->mem, row, context_texts, countof(context_texts));
    return VERDICT_OK;
}

static struct idempotency_row *answer_of(struct memory_store *s, const struct principal *who,
                                         struct str key)
{
    for (size_t i = 0; i < s->n_idempotency; i++) {
        struct idempotency_row *row = &s->idempotency[i];
        if (principal_owns(who, row->tenant, row->owner) && str_eq(row->key, key))
            return row;
    }
    return NULL;
}

static enum verdict idempotency_put(struct memory_store *s, const struct store_op *op,
                                    int64_t now_ms)
{
    struct idempotency_row *row = answer_of(s, op->who, op->idempotency->key);
    if (row && row->expires_ms > now_ms)
        return VERDICT_DUPLICATE;
    if (!row) {
        s->idempotency = mem_grow(s->idempotency, s->n_idempotency, &s->cap_idempotency,
                                  sizeof(struct idempotency_row));
        row = &s->idempotency[s->n_idempotency++];
    }
    *row = *op->idempotency;
    row->tenant = op->who->tenant;
    row->owner = op->who->owner;
    mem_copy_texts(s->mem, row, idempotency_texts, countof(idempotency_texts));
    return VERDICT_OK;
}

void mem_idempotency_reap(struct memory_store *s, int64_t now_ms, unsigned batch)
{
    for (; batch; batch--) {
        struct idempotency_row *first = NULL;
        for (size_t i = 0; i < s->n_idempotency; i++) {
            struct idempotency_row *row = &s->idempotency[i];
            if (row->expires_ms <= now_ms && (!first || row->expires_ms < first->expires_ms))
                first = row;
        }
        if (!first)
            return;
        *first = s->idempotency[--s->n_idempotency];
    }
}

void *mem_copy_row(struct arena *mem, const void *row, size_t size, const size_t *texts,
                   size_t n_texts)
{
    if (!row)
        return NULL;
    void *copy = arena_zalloc(mem, size);
    memcpy(copy, row, size);
    mem_copy_texts(mem, copy, texts, n_texts);
    return copy;
}

/* True when the principal reaches the whole tenant, or owns a session with this context. */
static bool reaches_context(const struct memory_store *s, const struct principal *who,
                            struct str id)
{
    bool found = who->tenant_wide;

    for (size_t i = 0; i < s->n_sessions && !found; i++)
        found = str_eq(s->sessions[i].context_id, id) &&
                str_eq(s->sessions[i].tenant, who->tenant) &&
                str_eq(s->sessions[i].owner, who->owner);
    return found;
}

static bool context_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct context_row *row = context_by_id(s, c->id);
    if (row && (!str_eq(row->tenant, c->who->tenant) || !reaches_context(s, c->who, c->id)))
        row = NULL;
    c->rows = mem_copy_row(c->mem, row, sizeof(*row), context_texts, countof(context_texts));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool idempotency_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct idempotency_row *row = answer_of(s, c->who, c->id);
    if (row && row->expires_ms <= clock_life_ms())
        row = NULL;
    c->rows =
        mem_copy_row(c->mem, row, sizeof(*row), idempotency_texts, countof(idempotency_texts));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool key_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    c->rows = mem_copy_row(c->mem, key_by_id(s, c->id), sizeof(struct key_row), key_texts,
                           countof(key_texts));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static int keys_by_id(const void *a, const void *b)
{
    return str_cmp(((const struct key_row *)a)->id, ((const struct key_row *)b)->id);
}

static bool keys_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct key_row *rows = arena_zalloc(c->mem, (s->n_keys + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_keys; i++)
        if ((!c->tenant.p || str_eq(s->keys[i].tenant, c->tenant)) &&
            (!c->after.p || str_cmp(s->keys[i].id, c->after) > 0)) {
            rows[n] = s->keys[i];
            mem_copy_texts(c->mem, &rows[n++], key_texts, countof(key_texts));
        }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), keys_by_id);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

static bool user_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    c->rows = mem_copy_row(c->mem, mem_user_by_id(s, c->id), sizeof(struct user_row),
                           mem_user_texts, MEM_USER_TEXTS);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static struct tenant_row tenant_copy(const struct memory_store *s, const struct tenant_row *row,
                                     struct arena *mem)
{
    struct tenant_row copy = {.id = arena_dup(mem, row->id), .created_ms = row->created_ms};
    for (size_t i = 0; i < s->n_sessions; i++)
        copy.counted_sessions += str_eq(s->sessions[i].tenant, row->id) &&
                                 session_row_counts(&s->sessions[i], clock_life_ms());
    return copy;
}

static bool tenant_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct tenant_row *copy = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct tenant_row *row = tenant_by_id(s, c->id);
    if (row) {
        copy = arena_new_of(c->mem, struct tenant_row);
        *copy = tenant_copy(s, row, c->mem);
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = copy;
    return true;
}

static int tenants_by_id(const void *a, const void *b)
{
    return str_cmp(((const struct tenant_row *)a)->id, ((const struct tenant_row *)b)->id);
}

static bool tenants_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct tenant_row *rows = arena_zalloc(c->mem, (s->n_tenants + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_tenants; i++)
        if (!c->after.p || str_cmp(s->tenants[i].id, c->after) > 0)
            rows[n++] = tenant_copy(s, &s->tenants[i], c->mem);
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), tenants_by_id);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

/* Always empty: no other process shares this store. */
static bool changes(struct store *store, struct store_call *c, struct error *err)
{
    (void)store, (void)c->after_id, (void)c->limit, (void)err;
    c->rows = arena_new_of(c->mem, struct change_row);
    c->n = 0;
    return true;
}

const struct mem_op mem_registry_ops[] = {
    {OP_TENANT_ENSURE, tenant_ensure},
    {OP_USER_ENSURE, user_ensure},
    {OP_KEY_CREATE, key_create},
    {OP_KEY_REVOKE, key_revoke},
    {OP_KEY_USED, key_used},
    {OP_IDEMPOTENCY_PUT, idempotency_put},
    {0},
};

const struct verb_handler mem_registry_verbs[] = {
    {VERB_CONTEXT_GET, context_get},
    {VERB_IDEMPOTENCY_GET, idempotency_get},
    {VERB_KEY_GET, key_get},
    {VERB_KEYS_PAGE, keys_page},
    {VERB_USER_GET, user_get},
    {VERB_TENANT_GET, tenant_get},
    {VERB_TENANTS_PAGE, tenants_page},
    {VERB_CHANGES, changes},
    {0},
};
