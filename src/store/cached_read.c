/* SPDX-License-Identifier: Apache-2.0 */
/* Session reads through Redis, in batches: look up the known ids of handles, look up the entries,
 * read the misses from the store, and cache the rows that the store found.
 *
 * A foreign session and an unknown one take the same path: both are misses, and the store is asked
 * for both.  The entry name of a handle includes the principal that asks, so a handle of another
 * owner is a miss, like any unknown handle. */
#include "store/cached_impl.h"

#include "base/clock.h"

#include <stdlib.h>

/* This many rows of the maximum length fit into one reply. */
#define TOGETHER_MAX 60
_Static_assert(TOGETHER_MAX *(CACHE_ROW_BYTES_MAX + 256) <= REDIS_REPLY_BYTES_MAX,
               "a full reply is too long");

struct read {
    struct session_find *find;
    struct entry_name handle; /* unless by_id */
    struct str id;            /* absent: the cache does not know the handle */
    struct entry entry;
    bool is_hit;
};

static void name_handles(struct cached_store *s, struct read *reads, size_t n)
{
    struct entry_name names[TOGETHER_MAX];
    struct read *those[TOGETHER_MAX];
    struct str ids[TOGETHER_MAX];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const struct session_find *f = reads[i].find;
        if (f->by_id) {
            reads[i].id = f->name;
            continue;
        }
        cache_entry_name(s->cache, f->who->tenant_wide ? 'w' : 'h', f->who->tenant, f->who->owner,
                         f->name, &reads[i].handle);
        names[count] = reads[i].handle;
        those[count++] = &reads[i];
    }
    if (count == 0 || !cache_get_names(s, names, count, ids))
        return;
    for (size_t i = 0; i < count; i++)
        if (ids[i].n > 0 && ids[i].n <= 64)
            those[i]->id = arena_dup(those[i]->find->mem, ids[i]);
}

static bool is_reached(const struct session_row *row, const struct principal *who)
{
    return str_eq(row->tenant, who->tenant) && (who->tenant_wide || str_eq(row->owner, who->owner));
}

/* Takes a live row that the principal may see.  For an ended session the store is asked. */
static bool take_hit(struct cached_store *s, struct read *r)
{
    struct session_find *f = r->find;
    struct session_row found;
    struct str value = r->entry.value;
    if (value.n < 1 + EPOCH_BYTES || value.p[0] != 'R')
        return false;
    struct str packed =
        arena_dup(f->mem, str_n(value.p + 1 + EPOCH_BYTES, value.n - 1 - EPOCH_BYTES));
    if (!cache_row_unpack(s->cache, &r->entry.name, packed, &found) ||
        !is_reached(&found, f->who) || !session_row_is_live(&found, clock_life_ms()) ||
        (!f->by_id && !str_eq(found.handle, f->name)))
        return false;
    f->row = arena_new_of(f->mem, struct session_row);
    *f->row = found;
    return true;
}

static void look(struct cached_store *s, struct read *reads, size_t n)
{
    struct entry *entries[TOGETHER_MAX];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!reads[i].id.p)
            continue;
        cache_session_name(s->cache, reads[i].find->who->tenant, reads[i].id, &reads[i].entry.name);
        if (cache_may_use(s->cache, &reads[i].entry.name))
            entries[count++] = &reads[i].entry;
    }
    if (count == 0)
        return;
    if (!cache_look(s, entries, count)) {
        for (size_t i = 0; i < n; i++)
            reads[i].entry.is_leased = false;
        return;
    }
    for (size_t i = 0; i < n; i++)
        reads[i].is_hit = take_hit(s, &reads[i]);
}

static bool ask_store(struct cached_store *s, struct read *reads, size_t n, struct error *err)
{
    struct session_find finds[TOGETHER_MAX];
    struct read *those[TOGETHER_MAX];
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (!reads[i].is_hit) {
            finds[count] = *reads[i].find;
            those[count++] = &reads[i];
        }
    metric_add(s->cache->hits, (int64_t)(n - count));
    metric_add(s->cache->misses, (int64_t)count);
    if (count > 0 && !store_sessions_find(s->inner, finds, count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        those[i]->find->row = finds[i].row;
    return true;
}

static int64_t ttl_of(const struct cached_store *s, const struct session_row *row)
{
    int64_t ttl = s->cache->config.ttl_ms, left = row->expires_ms - clock_life_ms();
    return row->expires_ms && left < ttl ? left : ttl;
}

/* Chooses the entry to cache after one read; false: none. */
static bool keep_of(struct cached_store *s, const struct read *r, struct keep *ret)
{
    const struct session_row *row = r->find->row;
    struct keep k = {0};
    if (r->is_hit || !row || !session_row_is_live(row, clock_life_ms()))
        return false;
    k.ttl_ms = ttl_of(s, row);
    if (r->entry.is_leased && str_ieq(row->id, r->id)) {
        k.entry = &r->entry;
        k.value = cache_row_pack(s->cache, &r->entry.name, row, r->find->mem);
    } else if (!r->find->by_id && !r->id.p) {
        k.name = &r->handle;
        k.value = row->id;
    }
    *ret = k;
    return k.value.p && k.ttl_ms > 0;
}

static bool find_some(struct cached_store *s, struct session_find *finds, size_t n,
                      struct error *err)
{
    struct read *reads = xcalloc(n, sizeof(*reads));
    struct keep keeps[TOGETHER_MAX];
    size_t n_keeps = 0;
    for (size_t i = 0; i < n; i++)
        reads[i].find = &finds[i];
    name_handles(s, reads, n);
    look(s, reads, n);
    bool ok = ask_store(s, reads, n, err);
    for (size_t i = 0; ok && i < n; i++)
        n_keeps += keep_of(s, &reads[i], &keeps[n_keeps]);
    cache_keep(s, keeps, n_keeps);
    free(reads);
    return ok;
}

bool cached_sessions_find(struct cached_store *s, struct session_find *finds, size_t n,
                          struct error *err)
{
    if (atomic_load(&s->cache->distrusted))
        return store_sessions_find(s->inner, finds, n, err);
    for (size_t at = 0; at < n; at += TOGETHER_MAX)
        if (!find_some(s, finds + at, n - at < TOGETHER_MAX ? n - at : TOGETHER_MAX, err))
            return false;
    return true;
}

bool cached_session_find(struct cached_store *s, struct store_call *c, bool by_id,
                         struct error *err)
{
    struct session_find find = {.who = c->who, .name = c->id, .by_id = by_id, .mem = c->mem};
    if (!cached_sessions_find(s, &find, 1, err))
        return false;
    c->rows = find.row;
    return true;
}
