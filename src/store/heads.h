/* SPDX-License-Identifier: Apache-2.0 */
/* Collects chain heads for a backend: the heads that its fold knows, advanced by the events that
 * are not folded yet. */
#ifndef HOLDFAST_STORE_HEADS_H
#define HOLDFAST_STORE_HEADS_H

#include "base/map.h"
#include "store/store.h"

/* Zero-initialise all but `mem`, which holds the heads. */
struct heads {
    struct arena *mem;
    struct map by_key; /* "writer/tenant" → struct chain_head */
    struct chain_head **order;
    size_t n, cap;
    struct chain_head *last; /* the head advanced last */
};
/* The head of this chain; all zero when the chain is new. */
struct chain_head *heads_of(struct heads *h, int64_t writer, struct str tenant);
/* Advances the head of the event's chain to this event. */
void heads_follow(struct heads *h, const struct event_row *e);
/* All heads in chain_head_order(). */
struct chain_head *heads_list(const struct heads *h, size_t *ret_n);
void heads_release(struct heads *h);

#endif
