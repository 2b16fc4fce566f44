/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an object has two keys that are equal after unescaping.  The parser asks only when its
 * filter of key shapes found a collision.  A few plain keys are compared pairwise.  More keys, or
 * escaped ones, go through a table hashed with the secret seed, so ten thousand hostile keys still
 * cost ten thousand steps. */
#include "json/read_impl.h"

#include "base/map.h"

#include <stdlib.h>

#define FEW 16

static const struct js_node *next_key(const struct js_doc *d, const struct js_node *key)
{
    return &d->nodes[key[1].next];
}

static const struct js_node *compare_each(const struct js_doc *d, const struct js_node *first,
                                          const struct js_node *end)
{
    struct str seen[FEW];
    size_t n = 0;

    for (const struct js_node *key = first; key < end; key = next_key(d, key)) {
        struct str body = js_body(d, key);
        for (size_t i = 0; i < n; i++)
            if (str_eq(seen[i], body))
                return key;
        seen[n++] = body;
    }
    return NULL;
}

/* Returns a key as bytes: plain keys in place, escaped keys written to `room`. */
static struct str plain_key(const struct js_doc *d, const struct js_node *key, char **room)
{
    struct str body = js_body(d, key);

    if (key->escaped) {
        body.n = js_unescape(body, *room);
        body.p = *room;
        *room += body.n;
    }
    return body;
}

static size_t escaped_bytes(const struct js_doc *d, const struct js_node *first,
                            const struct js_node *end)
{
    size_t n = 0;

    for (const struct js_node *key = first; key < end; key = next_key(d, key))
        n += key->escaped ? key->end - key->start : 0;
    return n;
}

static const struct js_node *through_table(const struct js_doc *d, const struct js_node *first,
                                           const struct js_node *end, uint32_t keys)
{
    struct entry {
        uint64_t hash;
        struct str key; /* p == NULL: free */
    } * table;
    const struct js_node *twin = NULL;
    size_t mask = 1;
    char *room, *next_room;

    while (mask < (size_t)keys * 2)
        mask *= 2;
    table = xcalloc(mask, sizeof(*table));
    mask--;
    room = next_room = xmalloc(escaped_bytes(d, first, end));
    for (const struct js_node *key = first; key < end && !twin; key = next_key(d, key)) {
        struct entry e = {.key = plain_key(d, key, &next_room)};
        size_t at;
        e.hash = map_hash(e.key);
        for (at = e.hash & mask; table[at].key.p; at = (at + 1) & mask)
            if (table[at].hash == e.hash && str_eq(table[at].key, e.key))
                twin = key;
        table[at] = e;
    }
    free(room);
    free(table);
    return twin;
}

const struct js_node *js_find_duplicate(const struct js_doc *d, const struct js_node *first,
                                        const struct js_node *end, uint32_t keys)
{
    if (keys <= FEW && escaped_bytes(d, first, end) == 0)
        return compare_each(d, first, end);
    return through_table(d, first, end, keys);
}
