/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants' keys, sealed credentials and sealed secrets in the memory store.  The caller of a verb
 * holds the lock; reads take it. */
#include "store/memory_impl.h"

#include <stdlib.h>

static const size_t key_texts[] = {
    offsetof(struct tenant_key_row, id),
    offsetof(struct tenant_key_row, tenant),
    offsetof(struct tenant_key_row, master_id),
    offsetof(struct tenant_key_row, wrapped),
};

/* `id` absent: the tenant's newest key.  `tenant` absent: a key of any tenant. */
static struct tenant_key_row *find(struct memory_store *s, struct str tenant, struct str id)
{
    struct tenant_key_row *found = NULL;
    for (size_t i = 0; i < s->n_tenant_keys; i++) {
        struct tenant_key_row *row = &s->tenant_keys[i];
        if ((tenant.p && !str_eq(row->tenant, tenant)) || (id.p && !str_eq(row->id, id)))
            continue;
        if (!found || str_cmp(found->id, row->id) < 0)
            found = row;
    }
    return found;
}

static enum verdict tenant_key_put(struct memory_store *s, const struct store_op *op,
                                   int64_t now_ms)
{
    if (find(s, STR_NONE, op->tenant_key->id))
        return VERDICT_DUPLICATE;
    mem_tenant_make(s, op->tenant_key->tenant, now_ms);
    s->tenant_keys = mem_grow(s->tenant_keys, s->n_tenant_keys, &s->cap_tenant_keys,
                              sizeof(struct tenant_key_row));
    struct tenant_key_row *row = &s->tenant_keys[s->n_tenant_keys++];
    *row = *op->tenant_key;
    mem_copy_texts(s->mem, row, key_texts, countof(key_texts));
    return VERDICT_OK;
}

static enum verdict tenant_key_wrap(struct memory_store *s, const struct store_op *op,
                                    int64_t now_ms)
{
    struct tenant_key_row *row = find(s, op->tenant_key->tenant, op->tenant_key->id);
    (void)now_ms;
    if (!row)
        return VERDICT_MISSING;
    row->master_id = arena_dup(s->mem, op->tenant_key->master_id);
    row->wrapped = arena_dup(s->mem, op->tenant_key->wrapped);
    return VERDICT_OK;
}

static enum verdict session_reseal(struct memory_store *s, const struct store_op *op,
                                   int64_t now_ms)
{
    (void)now_ms;
    for (size_t i = 0; i < s->n_sessions; i++) {
        struct session_row *row = &s->sessions[i];
        if (!str_eq(row->id, op->session->id) || !str_eq(row->tenant, op->session->tenant) ||
            (!row->sealed_auth.p && !row->sealed_context.p))
            continue;
        if (row->version != op->session->version)
            return VERDICT_STALE;
        if (op->session->sealed_auth.p)
            row->sealed_auth = arena_dup(s->mem, op->session->sealed_auth);
        if (op->session->sealed_context.p)
            row->sealed_context = arena_dup(s->mem, op->session->sealed_context);
        return VERDICT_OK;
    }
    return VERDICT_MISSING;
}

static bool tenant_key_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct tenant_key_row *copy = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct tenant_key_row *row = find(s, c->tenant, c->id);
    if (row) {
        copy = arena_new_of(c->mem, struct tenant_key_row);
        *copy = *row;
        mem_copy_texts(c->mem, copy, key_texts, countof(key_texts));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = copy;
    return true;
}

static int keys_by_id(const void *a, const void *b)
{
    return str_cmp(((const struct tenant_key_row *)a)->id, ((const struct tenant_key_row *)b)->id);
}

static bool tenant_keys_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct tenant_key_row *rows = arena_zalloc(c->mem, (s->n_tenant_keys + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_tenant_keys; i++)
        if (!c->after.p || str_cmp(s->tenant_keys[i].id, c->after) > 0) {
            rows[n] = s->tenant_keys[i];
            mem_copy_texts(c->mem, &rows[n++], key_texts, countof(key_texts));
        }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), keys_by_id);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

/* Secrets of the configuration. */

static const size_t secret_texts[] = {
    offsetof(struct secret_row, name),
    offsetof(struct secret_row, sealed),
};

static struct secret_row *find_secret(struct memory_store *s, struct str name)
{
    for (size_t i = 0; i < s->n_secrets; i++)
        if (str_eq(s->secrets[i].name, name))
            return &s->secrets[i];
    return NULL;
}

static enum verdict secret_put(struct memory_store *s, const struct store_op *op,
                               int64_t now_ms unused_arg)
{
    struct secret_row *row = find_secret(s, op->secret->name);

    if (row) {
        row->sealed = arena_dup(s->mem, op->secret->sealed);
        row->updated_ms = op->secret->updated_ms;
        return VERDICT_OK;
    }
    if (op->max_counted >= 0 && s->n_secrets >= (size_t)op->max_counted)
        return VERDICT_LIMIT;
    s->secrets = mem_grow(s->secrets, s->n_secrets, &s->cap_secrets, sizeof(struct secret_row));
    row = &s->secrets[s->n_secrets++];
    *row = *op->secret;
    mem_copy_texts(s->mem, row, secret_texts, countof(secret_texts));
    return VERDICT_OK;
}

static enum verdict secret_remove(struct memory_store *s, const struct store_op *op,
                                  int64_t now_ms unused_arg)
{
    struct secret_row *row = find_secret(s, op->secret->name);

    if (!row)
        return VERDICT_MISSING;
    *row = s->secrets[--s->n_secrets];
    return VERDICT_OK;
}

static int secrets_by_name(const void *a, const void *b)
{
    return str_cmp(((const struct secret_row *)a)->name, ((const struct secret_row *)b)->name);
}

static bool secrets_page(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    struct secret_row *rows = arena_zalloc(c->mem, (s->n_secrets + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_secrets; i++)
        if (!c->after.p || str_cmp(s->secrets[i].name, c->after) > 0) {
            rows[n] = s->secrets[i];
            mem_copy_texts(c->mem, &rows[n++], secret_texts, countof(secret_texts));
        }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), secrets_by_name);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

static int sessions_by_id(const void *a, const void *b)
{
    return str_cmp(((const struct session_row *)a)->id, ((const struct session_row *)b)->id);
}

static bool sealed_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct session_row *rows = arena_zalloc(c->mem, (s->n_sessions + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_sessions; i++)
        if ((s->sessions[i].sealed_auth.p || s->sessions[i].sealed_context.p) &&
            (!c->after.p || str_cmp(s->sessions[i].id, c->after) > 0))
            rows[n++] = *mem_session_copy(&s->sessions[i], c->mem);
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), sessions_by_id);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

const struct mem_op mem_secret_ops[] = {
    {OP_TENANT_KEY_PUT, tenant_key_put}, {OP_TENANT_KEY_WRAP, tenant_key_wrap},
    {OP_SESSION_RESEAL, session_reseal}, {OP_SECRET_PUT, secret_put},
    {OP_SECRET_REMOVE, secret_remove},   {0},
};

const struct verb_handler mem_secret_verbs[] = {
    {VERB_TENANT_KEY_GET, tenant_key_get},
    {VERB_TENANT_KEYS_PAGE, tenant_keys_page},
    {VERB_SEALED_PAGE, sealed_page},
    {VERB_SECRETS_PAGE, secrets_page},
    {0},
};
