/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing.  Removal shifts the run back, so there are no tombstones and
 * a map does not get slower with age.  Invariants: cap is a power of two, at most 3/4 full, and
 * every entry is reachable from its home slot without crossing a free slot. */
#include "base/map.h"

#include "base/random.h"

#include <stdatomic.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SMALLEST 8

static _Atomic uint64_t secret_seed; /* 0: not drawn yet */

static uint64_t draw_seed(void)
{
    uint64_t expected = 0;
    uint64_t seed;

    do {
        seed = random_u64();
    } while (seed == 0);
    /* Threads may race for the first draw; the loser takes the winner's seed. */
    return atomic_compare_exchange_strong(&secret_seed, &expected, seed) ? seed : expected;
}

uint64_t map_hash(struct str key)
{
    uint64_t seed = atomic_load_explicit(&secret_seed, memory_order_relaxed);

    if (unlikely(seed == 0))
        seed = draw_seed();
    return XXH3_64bits_withSeed(key.p, key.n, seed);
}

void map_init(struct map *m)
{
    *m = (struct map){0};
}

void map_release(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}

/* Returns the slot that holds `key`, or the free slot where it belongs. */
static struct map_slot *slot_for(const struct map *m, struct str key, uint64_t hash)
{
    size_t at = hash & (m->cap - 1);

    while (m->slots[at].key.p) {
        struct map_slot *slot = &m->slots[at];
        if (slot->hash == hash && str_eq(slot->key, key))
            return slot;
        at = (at + 1) & (m->cap - 1);
    }
    return &m->slots[at];
}

void *map_get(const struct map *m, struct str key)
{
    if (m->n == 0 || !key.p)
        return NULL;
    return slot_for(m, key, map_hash(key))->value;
}

static void rebuild(struct map *m, size_t cap)
{
    struct map old = *m;

    m->slots = xcalloc(cap, sizeof(*m->slots));
    m->cap = cap;
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].key.p)
            *slot_for(m, old.slots[i].key, old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

void *map_put(struct map *m, struct str key, void *value)
{
    uint64_t hash;
    struct map_slot *slot;
    void *before;

    if (!key.p)
        die("an absent key put into a map; this is a bug, please report it");
    if (m->n + 1 > m->cap - m->cap / 4)
        rebuild(m, m->cap ? m->cap * 2 : SMALLEST);
    hash = map_hash(key);
    slot = slot_for(m, key, hash);
    before = slot->value;
    m->n += slot->key.p == NULL;
    /* The key is replaced too: it usually lives inside the value. */
    *slot = (struct map_slot){.key = key, .value = value, .hash = hash};
    return before;
}

/* Fills the gap at `hole` with later entries of the same run that may move there. */
static void shift_back(struct map *m, size_t hole)
{
    size_t mask = m->cap - 1;

    for (size_t at = (hole + 1) & mask; m->slots[at].key.p; at = (at + 1) & mask) {
        size_t home = m->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            m->slots[hole] = m->slots[at];
            hole = at;
        }
    }
    m->slots[hole] = (struct map_slot){0};
}

void *map_remove(struct map *m, struct str key)
{
    struct map_slot *slot;
    void *value;

    if (m->n == 0 || !key.p)
        return NULL;
    slot = slot_for(m, key, map_hash(key));
    if (!slot->key.p)
        return NULL;
    value = slot->value;
    shift_back(m, (size_t)(slot - m->slots));
    m->n--;
    if (m->cap > 64 && m->n < m->cap / 8)
        rebuild(m, m->cap / 2);
    return value;
}

bool map_next(const struct map *m, size_t *at, struct str *ret_key, void **ret_value)
{
    while (*at < m->cap) {
        const struct map_slot *slot = &m->slots[(*at)++];
        if (!slot->key.p)
            continue;
        if (ret_key)
            *ret_key = slot->key;
        if (ret_value)
            *ret_value = slot->value;
        return true;
    }
    return false;
}
