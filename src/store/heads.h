/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of chains while a backend gathers them: those its fold knows, moved on by the events behind
 * it. */
#ifndef HOLDFAST_STORE_HEADS_H
#define HOLDFAST_STORE_HEADS_H

#include "base/map.h"
#include "store/store.h"

/* Zero but for `mem`, where the heads are. */
struct heads {
    struct arena *mem;
    struct map by_key; /* "writer/tenant" → struct chain_head */
    struct chain_head **order;
    size_t n, cap;
    struct chain_head *last; /* moved on */
};
/* The head of this chain, zero when it is a new one. */
struct chain_head *heads_of(struct heads *h, int64_t writer, struct str tenant);
/* Moves the head of the event's chain on to it. */
void heads_follow(struct heads *h, const struct event_row *e);
/* All of them in chain_head_order(). */
void heads_tell(const struct heads *h, struct chain_head **ret_heads, size_t *ret_n);
void heads_release(struct heads *h);

#endif
