/* SPDX-License-Identifier: Apache-2.0 */
/* Shares and bindings in the memory store.  The caller of a verb holds the lock; reads take it. */
#include "session/share_store/family.h"
#include "session/share_store/impl.h"
#include "store/memory_impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "crypto/hash.h"

struct arrays {
    struct share_row *shares; /* in the order they were made */
    size_t n_shares, cap_shares;
    struct binding_row *bindings;
    size_t n_bindings, cap_bindings;
};

static struct arrays *arrays_of(struct memory_store *s)
{
    return mem_family_arrays(s, &sharing_memory);
}

static const size_t share_texts[] = {
    offsetof(struct share_row, id),         offsetof(struct share_row, tenant),
    offsetof(struct share_row, session_id), offsetof(struct share_row, made_by),
    offsetof(struct share_row, grantee),    offsetof(struct share_row, joined_client),
    offsetof(struct share_row, end_reason),
};
static const size_t binding_texts[] = {
    offsetof(struct binding_row, tenant),     offsetof(struct binding_row, owner),
    offsetof(struct binding_row, carrier),    offsetof(struct binding_row, carrier_key),
    offsetof(struct binding_row, session_id), offsetof(struct binding_row, share_id),
    offsetof(struct binding_row, end_reason),
};
static const uint8_t no_code[32];

static bool has_code(const struct share_row *r)
{
    return memcmp(r->code_hash, no_code, sizeof(no_code)) != 0;
}

static bool is_live(const struct share_row *r, int64_t now_ms)
{
    return !r->ended_ms && (!r->expires_ms || r->expires_ms > now_ms);
}

static struct share_row *share_with(struct memory_store *s, struct str id)
{
    struct arrays *a = arrays_of(s);

    for (size_t i = 0; i < a->n_shares; i++)
        if (str_eq(a->shares[i].id, id))
            return &a->shares[i];
    return NULL;
}

static struct binding_row *binding_of(struct memory_store *s, const struct principal *who,
                                      struct str carrier, struct str key)
{
    struct arrays *a = arrays_of(s);

    for (size_t i = 0; i < a->n_bindings; i++)
        if (principal_owns(who, a->bindings[i].tenant, a->bindings[i].owner) &&
            str_eq(a->bindings[i].carrier, carrier) && str_eq(a->bindings[i].carrier_key, key))
            return &a->bindings[i];
    return NULL;
}

static void binding_remove(struct arrays *a, size_t at)
{
    a->n_bindings--;
    memmove(&a->bindings[at], &a->bindings[at + 1], (a->n_bindings - at) * sizeof(*a->bindings));
}

static void share_remove(struct memory_store *s, size_t at)
{
    struct arrays *a = arrays_of(s);

    for (size_t i = a->n_bindings; i-- > 0;)
        if (str_eq(a->bindings[i].share_id, a->shares[at].id))
            binding_remove(a, i);
    a->n_shares--;
    memmove(&a->shares[at], &a->shares[at + 1], (a->n_shares - at) * sizeof(*a->shares));
}

static enum verdict reach(struct memory_store *s, const struct store_op *op, struct str session_id,
                          int64_t now_ms)
{
    const struct session_row *row = mem_session_reached(s, op->who, session_id);

    return !row                               ? VERDICT_MISSING
           : session_row_is_live(row, now_ms) ? VERDICT_OK
                                              : VERDICT_NOT_ACTIVE;
}

static void prune(struct memory_store *s, struct str session_id, int64_t now_ms)
{
    struct arrays *a = arrays_of(s);
    size_t ended = 0;

    for (size_t i = a->n_shares; i-- > 0;)
        if (str_eq(a->shares[i].session_id, session_id) && !is_live(&a->shares[i], now_ms) &&
            ++ended > SHARES_ENDED_KEPT)
            share_remove(s, i);
}

static enum verdict share_create(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct share_row *r = op->row;
    struct arrays *a = arrays_of(s);
    enum verdict verdict = reach(s, op, r->session_id, now_ms);
    size_t live = 0;

    if (verdict != VERDICT_OK)
        return verdict;
    for (size_t i = 0; i < a->n_shares; i++)
        live += str_eq(a->shares[i].session_id, r->session_id) && is_live(&a->shares[i], now_ms);
    if (live >= SHARES_LIVE_MAX)
        return VERDICT_LIMIT;
    for (size_t i = 0; i < a->n_shares; i++)
        if (str_eq(a->shares[i].id, r->id) ||
            (has_code(r) &&
             memcmp(a->shares[i].code_hash, r->code_hash, sizeof(r->code_hash)) == 0))
            return VERDICT_DUPLICATE;
    a->shares = mem_grow(a->shares, a->n_shares, &a->cap_shares, sizeof(struct share_row));
    struct share_row *row = &a->shares[a->n_shares++];
    *row = *r;
    row->tenant = op->who->tenant;
    row->made_by = op->who->owner;
    mem_copy_texts(s->mem, row, share_texts, countof(share_texts));
    prune(s, row->session_id, now_ms);
    return VERDICT_OK;
}

static enum verdict share_end(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct share_row *r = op->row;
    struct share_row *row = share_with(s, r->id);

    if (reach(s, op, r->session_id, now_ms) == VERDICT_MISSING || !row || row->ended_ms ||
        !str_eq(row->session_id, r->session_id))
        return VERDICT_MISSING;
    row->ended_ms = r->ended_ms;
    row->end_reason = arena_dup(s->mem, r->end_reason);
    return VERDICT_OK;
}

/* Join. */

static enum verdict may_join(struct memory_store *s, const struct store_op *op,
                             const struct share_row *share, int64_t now_ms)
{
    const struct share_join *j = op->row;
    bool is_theirs = share && share->grantee.p && str_eq(share->grantee, op->who->owner);
    const struct binding_row *b =
        is_theirs && j->carrier.p ? binding_of(s, op->who, j->carrier, j->carrier_key) : NULL;

    if (!share || !str_eq(share->tenant, op->who->tenant) ||
        !str_eq(share->session_id, j->session_id) || (!has_code(share) && !is_theirs))
        return VERDICT_MISSING;
    if (has_code(share) && share->grantee.p && !(b && str_eq(b->share_id, share->id)))
        return VERDICT_DUPLICATE;
    return is_live(share, now_ms) ? VERDICT_OK : VERDICT_STALE;
}

static void put_binding(struct memory_store *s, const struct principal *who,
                        const struct share_join *j, struct str carrier, struct str key,
                        bool replaces)
{
    struct arrays *a = arrays_of(s);
    struct binding_row *row = binding_of(s, who, carrier, key);

    if (row && !replaces)
        return;
    if (!row) {
        a->bindings =
            mem_grow(a->bindings, a->n_bindings, &a->cap_bindings, sizeof(struct binding_row));
        row = &a->bindings[a->n_bindings++];
    }
    *row = (struct binding_row){.tenant = who->tenant,
                                .owner = who->owner,
                                .carrier = carrier,
                                .carrier_key = key,
                                .session_id = j->session_id,
                                .share_id = j->id,
                                .bound_ms = j->at_ms};
    mem_copy_texts(s->mem, row, binding_texts, countof(binding_texts));
}

static void hand_bind(struct memory_store *s, const struct share_join *j,
                      const struct session_row *session)
{
    const struct principal former = {.tenant = session->tenant, .owner = session->owner};
    char hex[2 * 32 + 1];

    for (size_t i = 0; i < s->n_transports; i++) {
        const struct transport_row *t = &s->transports[i];
        if (t->ended_ms || !t->session_id.p || !str_eq(t->session_id, session->id))
            continue;
        hex_encode(t->id_hash, sizeof(t->id_hash), hex);
        put_binding(s, &former, j, STR(BINDING_TRANSPORT), str_of(hex), false);
    }
    if (session->carrier.p && session->carrier_key.p)
        put_binding(s, &former, j, session->carrier, session->carrier_key, false);
}

static void hand_over(struct memory_store *s, const struct store_op *op,
                      struct session_row *session)
{
    const struct share_join *j = op->row;
    struct arrays *a = arrays_of(s);

    hand_bind(s, j, session);
    for (size_t i = 0; i < a->n_shares; i++) {
        struct share_row *r = &a->shares[i];
        if (str_eq(r->session_id, j->session_id) && !str_eq(r->id, j->id) && !r->ended_ms) {
            r->ended_ms = j->at_ms;
            r->end_reason = STR("handed_over");
        }
    }
    for (size_t i = s->n_undelivered; i-- > 0;)
        if (str_eq(s->undelivered[i].session_id, j->session_id))
            s->undelivered[i] = s->undelivered[--s->n_undelivered];
    session->owner = arena_dup(s->mem, op->who->owner);
    session->user_id = str_starts(session->owner, STR("user:"))
                           ? str_n(session->owner.p + 5, session->owner.n - 5)
                           : STR_NONE;
    session->carrier_key = session->sealed_auth = session->sealed_context = STR_NONE;
    session->provisional = false;
    if (session->origin == ORIGIN_DERIVED)
        session->origin = ORIGIN_TRANSPORT;
    session->version++;
}

static enum verdict share_join(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct share_join *j = op->row;
    struct principal anyone = *op->who;
    struct share_row *share = share_with(s, j->id);
    enum verdict verdict = may_join(s, op, share, now_ms);

    if (verdict != VERDICT_OK)
        return verdict;
    anyone.tenant_wide = true;
    struct session_row *session = mem_session_reached(s, &anyone, j->session_id);
    if (!session || !session_row_is_live(session, now_ms))
        return VERDICT_NOT_ACTIVE;
    if (!share->grantee.p)
        share->expires_ms = share->access_ms ? j->at_ms + share->access_ms : 0;
    share->grantee = arena_dup(s->mem, op->who->owner);
    share->joined_ms = j->at_ms;
    share->joined_client = arena_dup(s->mem, j->client);
    if (j->carrier.p)
        put_binding(s, op->who, j, j->carrier, j->carrier_key, true);
    if (share->may == SHARE_HAND_OVER && !str_eq(session->owner, op->who->owner))
        hand_over(s, op, session);
    return VERDICT_OK;
}

static enum verdict binding_drop(struct memory_store *s, const struct store_op *op,
                                 int64_t now_ms unused_arg)
{
    const struct binding_row *b = op->row;
    struct arrays *a = arrays_of(s);
    struct binding_row *row = binding_of(s, op->who, b->carrier, b->carrier_key);

    if (!row || !str_eq(row->share_id, b->share_id))
        return VERDICT_MISSING;
    binding_remove(a, (size_t)(row - a->bindings));
    return VERDICT_OK;
}

static void reap(struct memory_store *s)
{
    struct arrays *a = arrays_of(s);

    for (size_t i = a->n_shares; i-- > 0;)
        if (mem_session_is_over(s, a->shares[i].session_id))
            share_remove(s, i);
}

/* Reads. */

static bool shares_page(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    size_t n = 0;

    pthread_mutex_lock(&s->lock);
    struct share_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    for (size_t i = 0; i < a->n_shares && n < c->limit; i++) {
        const struct share_row *r = &a->shares[i];
        if (!str_eq(r->tenant, c->who->tenant) || !str_eq(r->session_id, c->session_id) ||
            (c->after.p && str_cmp(r->id, c->after) <= 0))
            continue;
        rows[n] = *r;
        mem_copy_texts(c->mem, &rows[n++], share_texts, countof(share_texts));
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool is_sought(const struct store_call *c, const struct share_row *r)
{
    const struct share_find *by = c->filter;

    if (!str_eq(r->tenant, c->who->tenant))
        return false;
    if (by->code_hash)
        return memcmp(by->code_hash, r->code_hash, sizeof(r->code_hash)) == 0;
    if (by->id.p)
        return str_eq(by->id, r->id);
    return str_eq(by->session_id, r->session_id) && r->grantee.p &&
           str_eq(r->grantee, c->who->owner) && is_live(r, clock_life_ms());
}

static bool share(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    const struct share_row *best = NULL;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < a->n_shares; i++)
        if (is_sought(c, &a->shares[i]) && (!best || a->shares[i].may > best->may))
            best = &a->shares[i];
    c->rows = mem_copy_row(c->mem, best, sizeof(*best), share_texts, countof(share_texts));
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool has_share(struct arrays *a, const struct principal *who, struct str session_id)
{
    for (size_t i = 0; i < a->n_shares; i++)
        if (str_eq(a->shares[i].session_id, session_id) && a->shares[i].grantee.p &&
            str_eq(a->shares[i].grantee, who->owner) && is_live(&a->shares[i], clock_life_ms()))
            return true;
    return false;
}

static bool shared_session(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);
    const struct session_row *found = NULL;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_sessions && !found; i++) {
        const struct session_row *row = &s->sessions[i];
        if (str_eq(row->tenant, c->who->tenant) && str_eq(c->flag ? row->id : row->handle, c->id) &&
            has_share(a, c->who, row->id))
            found = row;
    }
    c->rows = mem_session_copy(found, c->mem);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool binding(struct store *store, struct store_call *c, struct error *err unused_arg)
{
    struct memory_store *s = mem_of(store);
    struct arrays *a = arrays_of(s);

    pthread_mutex_lock(&s->lock);
    const struct binding_row *found = c->name.p       ? binding_of(s, c->who, c->name, c->id)
                                      : a->n_bindings ? a->bindings
                                                      : NULL;
    struct binding_row *copy =
        mem_copy_row(c->mem, found, sizeof(*found), binding_texts, countof(binding_texts));
    const struct share_row *r = copy ? share_with(s, copy->share_id) : NULL;
    if (r) {
        copy->may = r->may;
        copy->is_live =
            r->grantee.p && str_eq(r->grantee, copy->owner) && is_live(r, clock_life_ms());
        copy->end_reason = arena_dup(c->mem, r->end_reason);
    }
    c->rows = copy;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static const struct mem_op ops[] = {
    {OP_SHARE_CREATE, share_create},
    {OP_SHARE_END, share_end},
    {OP_SHARE_JOIN, share_join},
    {OP_BINDING_DROP, binding_drop},
    {0},
};

static const struct verb_handler verbs[] = {
    {VERB_SHARES_PAGE, shares_page},
    {VERB_SHARE, share},
    {VERB_SHARED_SESSION, shared_session},
    {VERB_BINDING, binding},
    {0},
};

static size_t tables(void *arrays, struct mem_table *ret)
{
    struct arrays *a = arrays;

    ret[0] = (struct mem_table){(void **)&a->shares, &a->n_shares, sizeof(*a->shares)};
    ret[1] = (struct mem_table){(void **)&a->bindings, &a->n_bindings, sizeof(*a->bindings)};
    return 2;
}

const struct memory_family sharing_memory = {
    .size = sizeof(struct arrays),
    .tables = tables,
    .ops = ops,
    .verbs = verbs,
    .reap = reap,
};
