/* SPDX-License-Identifier: Apache-2.0 */
/* Announces writes to Redis, and tells readers of this process which entries are not up to date
 * meanwhile. */
#include "store/cached_impl.h"

#include <stdlib.h>

struct cache_message *cache_message_new(struct cached_store *s, enum cache_message_kind kind,
                                        size_t max_names)
{
    struct cache_message *message =
        xcalloc(1, sizeof(*message) + max_names * sizeof(struct entry_name));
    message->kind = kind;
    message->number = atomic_load(&s->cache->began);
    if (kind == NEWS_BEGUN) {
        cache_new_tombstone(s);
        memcpy(message->tombstone, s->tombstone, sizeof(s->tombstone));
    }
    return message;
}

/* The first digits of a name choose its slot; names are digits of an HMAC. */
static atomic_uint *slot_of(struct cache *c, const struct entry_name *name)
{
    unsigned slot = 0;
    for (size_t i = 0; i < 3; i++) {
        char digit = name->digits[i];
        slot = slot << 4 | (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return &c->on_the_way[slot % NEWS_SLOTS];
}

static void add_on_the_way(struct cache *c, const struct cache_message *message, unsigned one)
{
    if (message->forgets_all)
        atomic_fetch_add(&c->all_on_the_way, one);
    for (size_t i = 0; i < message->n; i++)
        atomic_fetch_add(slot_of(c, &message->names[i]), one);
}

bool cache_may_use(struct cache *c, const struct entry_name *name)
{
    return !atomic_load(&c->all_on_the_way) && !atomic_load(slot_of(c, name));
}

void cache_distrust(struct cache *c, uint64_t number)
{
    uint64_t known = atomic_load(&c->distrusted);
    while (known < number && !atomic_compare_exchange_weak(&c->distrusted, &known, number))
        ;
}

/* Deletes the epoch if an announcement failed, so that all processes ignore the existing entries.
 * Only after the write in question: before it, a reader could cache the old row again. */
static void trust_again(struct cached_store *s, uint64_t number)
{
    uint64_t known = atomic_load(&s->cache->distrusted);
    if (known && known <= number && cache_forget_all(s))
        atomic_compare_exchange_strong(&s->cache->distrusted, &known, 0);
}

static bool tell(struct cached_store *s, const struct cache_message *message)
{
    const struct entry_name *rest = message->names + message->n_ended;
    size_t n_rest = message->n - message->n_ended;
    memcpy(s->tombstone, message->tombstone, sizeof(s->tombstone));
    switch (message->kind) {
    case NEWS_BEGUN:
        return cache_bury(s, message->names, message->n, CACHE_TOMBSTONE_MS);
    case NEWS_WRITTEN: {
        bool ok = !message->n_ended ||
                  cache_bury(s, message->names, message->n_ended, s->cache->config.ttl_ms);
        return (!n_rest || cache_lift(s, rest, n_rest)) && ok;
    }
    case NEWS_CHANGED:
        return message->forgets_all ? cache_forget_all(s)
                                    : !message->n || cache_drop(s, message->names, message->n);
    }
    return true;
}

void cache_message_publish(struct cached_store *s, const struct cache_message *message)
{
    if (!tell(s, message))
        cache_distrust(s->cache, message->number);
    if (message->kind != NEWS_BEGUN)
        trust_again(s, message->number);
    if (message->publishes)
        cache_publish(s, STR(REDIS_SAYS_CHANGES));
    add_on_the_way(s->cache, message, -1U);
}

void cache_message_lost(struct cache *c, const struct cache_message *message)
{
    cache_distrust(c, message->number);
    add_on_the_way(c, message, -1U);
}

void cache_message_send(struct cached_store *s, struct cache_message *message)
{
    add_on_the_way(s->cache, message, 1);
    if (s->lane && cache_lane_put(s->lane, message))
        return;
    if (s->lane)
        cache_message_lost(s->cache, message);
    else
        cache_message_publish(s, message);
    free(message);
}
