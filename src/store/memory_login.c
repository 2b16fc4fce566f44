/* SPDX-License-Identifier: Apache-2.0 */
/* Users with passwords, and their logins, in the memory store.  The caller of a verb holds the
 * lock; reads take it. */
#include "store/memory_impl.h"

#include <stdlib.h>

#include "base/clock.h"

static const size_t login_texts[] = {
    offsetof(struct login_row, id),
    offsetof(struct login_row, family),
    offsetof(struct login_row, tenant),
    offsetof(struct login_row, user_id),
    offsetof(struct login_row, device_info),
    offsetof(struct login_row, ip_address),
    offsetof(struct login_row, revoke_reason),
};

static struct user_row *user_of(struct memory_store *s, const struct user_row *wanted)
{
    struct user_row *row = mem_user_by_id(s, wanted->id);
    return row && str_eq(row->tenant, wanted->tenant) ? row : NULL;
}

static struct user_row *user_named(struct memory_store *s, struct str tenant, struct str name)
{
    for (size_t i = 0; i < s->n_users; i++)
        if (!s->users[i].issuer.p && str_eq(s->users[i].tenant, tenant) &&
            str_eq(s->users[i].name, name))
            return &s->users[i];
    return NULL;
}

static struct login_row *login_by_id(struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_logins; i++)
        if (str_eq(s->logins[i].id, id))
            return &s->logins[i];
    return NULL;
}

static struct login_row *login_with(struct memory_store *s, const uint8_t hash[32])
{
    for (size_t i = 0; i < s->n_logins; i++)
        if (memcmp(s->logins[i].refresh_hash, hash, 32) == 0)
            return &s->logins[i];
    return NULL;
}

static enum verdict user_create(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct user_row *row = mem_user_by_id(s, op->user->id);
    mem_tenant_make(s, op->user->tenant, now_ms);
    if (row) {
        if (!str_eq(row->tenant, op->user->tenant) || row->password.p || row->ended_ms ||
            row->issuer.p)
            return VERDICT_DUPLICATE;
        row->role = op->user->role;
        row->password = arena_dup(s->mem, op->user->password);
        return VERDICT_OK;
    }
    if (user_named(s, op->user->tenant, op->user->name))
        return VERDICT_DUPLICATE;
    s->users = mem_grow(s->users, s->n_users, &s->cap_users, sizeof(struct user_row));
    row = &s->users[s->n_users++];
    *row = (struct user_row){.id = op->user->id,
                             .tenant = op->user->tenant,
                             .name = op->user->name,
                             .role = op->user->role,
                             .password = op->user->password,
                             .created_ms = op->user->created_ms};
    mem_copy_texts(s->mem, row, mem_user_texts, MEM_USER_TEXTS);
    return VERDICT_OK;
}

static void revoke_all(struct memory_store *s, struct str tenant, struct str user_id, int64_t at_ms,
                       struct str reason)
{
    for (size_t i = 0; i < s->n_logins; i++) {
        struct login_row *row = &s->logins[i];
        if (row->revoked_ms || !str_eq(row->user_id, user_id) || !str_eq(row->tenant, tenant))
            continue;
        row->revoked_ms = at_ms;
        row->revoke_reason = arena_dup(s->mem, reason);
    }
}

static enum verdict user_password(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct user_row *row = user_of(s, op->user);
    if (!row || row->issuer.p)
        return VERDICT_MISSING;
    row->password = arena_dup(s->mem, op->user->password);
    row->failed_logins = 0;
    row->locked_until_ms = 0;
    revoke_all(s, row->tenant, row->id, now_ms, STR("password"));
    return VERDICT_OK;
}

static enum verdict user_end(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct user_row *row = user_of(s, op->user);
    if (!row)
        return VERDICT_MISSING;
    row->ended_ms = op->user->ended_ms;
    revoke_all(s, row->tenant, row->id, now_ms, STR("disabled"));
    return VERDICT_OK;
}

static enum verdict login_failed(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct user_row *row = user_of(s, op->user);
    if (!row)
        return VERDICT_MISSING;
    row->failed_logins++;
    if (row->failed_logins >= LOGIN_FREE_FAILURES) {
        int64_t doubled = row->failed_logins - LOGIN_FREE_FAILURES;
        int64_t lock_ms = LOGIN_LOCK_MS << (doubled < 20 ? doubled : 20);
        row->locked_until_ms = now_ms + (lock_ms < LOGIN_LOCK_MAX_MS ? lock_ms : LOGIN_LOCK_MAX_MS);
    }
    return VERDICT_OK;
}

static struct login_row *login_add(struct memory_store *s, struct login_row row)
{
    s->logins = mem_grow(s->logins, s->n_logins, &s->cap_logins, sizeof(struct login_row));
    struct login_row *added = &s->logins[s->n_logins++];
    row.password = STR_NONE;
    memset(row.next_hash, 0, sizeof(row.next_hash));
    row.arrived_ms = 0;
    *added = row;
    mem_copy_texts(s->mem, added, login_texts, countof(login_texts));
    return added;
}

/* The longest unused of the user's unrevoked logins, except for `spared`.  *ret_n counts these
 * logins. */
static struct login_row *oldest(struct memory_store *s, struct str user_id, struct str spared,
                                int64_t *ret_n)
{
    struct login_row *old = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < s->n_logins; i++) {
        struct login_row *row = &s->logins[i];
        if (row->revoked_ms || !str_eq(row->user_id, user_id) || str_eq(row->id, spared))
            continue;
        (*ret_n)++;
        if (!old || row->last_activity_ms < old->last_activity_ms ||
            (row->last_activity_ms == old->last_activity_ms && str_cmp(row->id, old->id) < 0))
            old = row;
    }
    return old;
}

static enum verdict login_create(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    struct user_row *user = mem_user_by_id(s, l->user_id);
    struct login_row *old;
    int64_t n = 0;
    if (!user || !str_eq(user->tenant, l->tenant))
        return VERDICT_MISSING;
    if (user->ended_ms || !user->password.p || !str_eq(user->password, l->password))
        return VERDICT_NOT_ACTIVE;
    if (login_by_id(s, l->id) || login_with(s, l->refresh_hash))
        return VERDICT_DUPLICATE;
    struct login_row row = *l;
    row.family = l->id;
    row.revoked_ms = 0;
    row.revoke_reason = STR_NONE;
    login_add(s, row);
    while ((old = oldest(s, l->user_id, l->id, &n)) && n >= op->max_counted) {
        old->revoked_ms = now_ms;
        old->revoke_reason = STR("limit");
    }
    user->failed_logins = 0;
    user->locked_until_ms = 0;
    return VERDICT_OK;
}

static enum verdict login_rotate(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    struct login_row *token = login_with(s, l->refresh_hash);
    struct login_row *device = token ? login_by_id(s, token->family) : NULL;
    if (!device || !login_row_is_live(device, now_ms))
        return VERDICT_MISSING;
    if (token != device) {
        if (token->revoked_ms >= l->arrived_ms)
            return VERDICT_DUPLICATE;
        device->revoked_ms = now_ms;
        device->revoke_reason = STR("reuse");
        return VERDICT_STALE;
    }
    if (mem_user_by_id(s, device->user_id)->ended_ms)
        return VERDICT_NOT_ACTIVE;
    struct login_row spent = *device;
    spent.id = l->id;
    spent.device_info = spent.ip_address = STR_NONE;
    spent.created_ms = device->last_activity_ms;
    spent.last_activity_ms = spent.revoked_ms = now_ms;
    spent.revoke_reason = STR("rotated");
    memcpy(device->refresh_hash, l->next_hash, sizeof(device->refresh_hash));
    device->expires_ms = l->expires_ms;
    device->last_activity_ms = now_ms;
    if (l->ip_address.p)
        device->ip_address = arena_dup(s->mem, l->ip_address);
    login_add(s, spent); /* the array may move: do not use `device` after this */
    return VERDICT_OK;
}

static enum verdict login_revoke(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    struct login_row *row = login_by_id(s, l->id);
    if (!row || !login_row_is_live(row, now_ms) || !str_eq(row->tenant, l->tenant) ||
        (l->user_id.p && !str_eq(row->user_id, l->user_id)))
        return VERDICT_MISSING;
    row->revoked_ms = l->revoked_ms;
    row->revoke_reason = arena_dup(s->mem, l->revoke_reason);
    return VERDICT_OK;
}

static enum verdict logins_revoke(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct login_row *l = op->login;
    (void)now_ms;
    revoke_all(s, l->tenant, l->user_id, l->revoked_ms, l->revoke_reason);
    return VERDICT_OK;
}

void mem_logins_reap(struct memory_store *s, int64_t now_ms, unsigned batch)
{
    for (; batch; batch--) {
        struct login_row *first = NULL;
        for (size_t i = 0; i < s->n_logins; i++) {
            struct login_row *row = &s->logins[i];
            if (row->expires_ms <= now_ms && (!first || row->expires_ms < first->expires_ms))
                first = row;
        }
        if (!first)
            return;
        *first = s->logins[--s->n_logins];
    }
}

/* Reads. */

static bool user_by_name(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    c->rows = mem_copy_row(c->mem, user_named(s, c->tenant, c->name), sizeof(struct user_row),
                           mem_user_texts, MEM_USER_TEXTS);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static int by_tenant_and_name(const void *a, const void *b)
{
    const struct user_row *one = a, *other = b;
    int order = str_cmp(one->tenant, other->tenant);
    return order ? order : str_cmp(one->name, other->name);
}

static bool users_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct user_row after = {.tenant = c->name.p ? c->name : STR(""),
                             .name = c->after.p ? c->after : STR("")};
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct user_row *rows = arena_zalloc(c->mem, (s->n_users + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_users; i++)
        if (!s->users[i].issuer.p && (!c->tenant.p || str_eq(s->users[i].tenant, c->tenant)) &&
            by_tenant_and_name(&s->users[i], &after) > 0) {
            rows[n] = s->users[i];
            mem_copy_texts(c->mem, &rows[n++], mem_user_texts, MEM_USER_TEXTS);
        }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), by_tenant_and_name);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

static struct login_row *login_copy(struct arena *mem, const struct login_row *row)
{
    return mem_copy_row(mem, row, sizeof(*row), login_texts, countof(login_texts));
}

static bool login_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct login_row *row = login_by_id(s, c->id);
    if (row && !str_eq(row->id, row->family))
        row = NULL;
    c->rows = login_copy(c->mem, row);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool login_by_hash(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    c->rows = login_copy(c->mem, login_with(s, c->hash));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static int newest_first(const void *a, const void *b)
{
    return -str_cmp(((const struct login_row *)a)->id, ((const struct login_row *)b)->id);
}

static bool logins_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    int64_t now_ms = clock_life_ms();
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct login_row *rows = arena_zalloc(c->mem, (s->n_logins + 1) * sizeof(*rows));
    for (size_t i = 0; i < s->n_logins; i++) {
        const struct login_row *row = &s->logins[i];
        if (!login_row_is_live(row, now_ms) || !str_eq(row->user_id, c->id) ||
            !str_eq(row->tenant, c->tenant) || (c->after.p && str_cmp(row->id, c->after) >= 0))
            continue;
        rows[n] = *row;
        mem_copy_texts(c->mem, &rows[n++], login_texts, countof(login_texts));
    }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), newest_first);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

const struct mem_op mem_login_ops[] = {
    {OP_USER_CREATE, user_create},
    {OP_USER_PASSWORD, user_password},
    {OP_USER_END, user_end},
    {OP_LOGIN_FAILED, login_failed},
    {OP_LOGIN_CREATE, login_create},
    {OP_LOGIN_ROTATE, login_rotate},
    {OP_LOGIN_REVOKE, login_revoke},
    {OP_LOGINS_REVOKE, logins_revoke},
    {0},
};

const struct verb_handler mem_login_verbs[] = {
    {VERB_USER_BY_NAME, user_by_name}, {VERB_USERS_PAGE, users_page},
    {VERB_LOGIN_GET, login_get},       {VERB_LOGIN_BY_HASH, login_by_hash},
    {VERB_LOGINS_PAGE, logins_page},   {0},
};
