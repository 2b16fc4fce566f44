/* SPDX-License-Identifier: Apache-2.0 */
/* Chain heads, looked up by writer and tenant.  Successive events mostly belong to one tenant, so
 * the last head is tried first. */
#include "store/heads.h"

#include <inttypes.h>
#include <stdlib.h>

struct chain_head *heads_of(struct heads *h, int64_t writer, struct str tenant)
{
    struct str key = arena_printf(h->mem, "%" PRId64 "/%.*s", writer, STR_ARG(tenant));
    struct chain_head *head = map_get(&h->by_key, key);
    if (head)
        return head;
    head = arena_new_of(h->mem, struct chain_head);
    head->writer = writer;
    head->tenant = arena_dup(h->mem, tenant);
    map_put(&h->by_key, key, head);
    if (h->n == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 16;
        h->order = xrealloc(h->order, h->cap * sizeof(struct chain_head *));
    }
    h->order[h->n++] = head;
    return head;
}

void heads_follow(struct heads *h, const struct event_row *e)
{
    int64_t writer = e->id >> EVENT_WRITER_SHIFT;
    if (!h->last || h->last->writer != writer || !str_eq(h->last->tenant, e->tenant))
        h->last = heads_of(h, writer, e->tenant);
    h->last->last_id = e->id;
    h->last->seq = e->seq;
    memcpy(h->last->mac, e->mac, sizeof(h->last->mac));
}

struct chain_head *heads_list(const struct heads *h, size_t *ret_n)
{
    struct chain_head *heads = arena_zalloc(h->mem, h->n * sizeof(*heads) + 1);
    for (size_t i = 0; i < h->n; i++)
        heads[i] = *h->order[i];
    qsort(heads, h->n, sizeof(*heads), chain_head_order);
    *ret_n = h->n;
    return heads;
}

void heads_release(struct heads *h)
{
    map_release(&h->by_key);
    free(h->order);
}
