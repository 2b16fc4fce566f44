/* SPDX-License-Identifier: Apache-2.0 */
/* Open-addressing hash map from bytes to pointers, hashed by XXH3 with a secret seed (keys are
 * chosen by peers).  Keys are borrowed: they must live as long as their entry, usually inside the
 * value.  Not thread-safe. */
#ifndef HOLDFAST_BASE_MAP_H
#define HOLDFAST_BASE_MAP_H

#include "base/str.h"

struct map_slot {
    struct str key; /* p == NULL: free */
    void *value;
    uint64_t hash;
};
struct map {
    struct map_slot *slots;
    size_t n;   /* entries */
    size_t cap; /* power of two, or 0 */
};

void map_init(struct map *m); /* a zeroed map is initialised too */
void map_release(struct map *m);
void *map_get(const struct map *m, struct str key); /* NULL when absent */
/* Adds or replaces; returns the value that was there before, or NULL. */
void *map_put(struct map *m, struct str key, void *value);
void *map_remove(struct map *m, struct str key); /* the removed value, or NULL */
/* Iteration: size_t at = 0; while (map_next(&m, &at, &key, &value)) …; do not change the map
 * meanwhile. */
bool map_next(const struct map *m, size_t *at, struct str *ret_key, void **ret_value);
/* The keyed hash itself, for labels and buckets. */
uint64_t map_hash(struct str key);

#endif
