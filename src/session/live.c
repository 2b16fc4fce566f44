/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the number of transports of an owner.  Clients seldom end their transports, and a row
 * lives for 24 hours.  Above the limit a new transport ends the least recently used one.  A
 * transport in use by a request or a stream is not ended.
 *
 * Only transports created or used on this node since its start are counted. */
#include "session/session_impl.h"

#include "base/clock.h"

#include <stdlib.h>

#define LIVE_LOOKED_AT 16     /* transports examined when the oldest are in use */
#define LIVE_IN_ALL (1 << 17) /* entries for all owners; above that the oldest is dropped */

struct live_owner {
    struct list transports; /* oldest first */
    unsigned n;
    struct str tenant, owner, key; /* stored after this struct */
};
struct live {
    struct list of_owner, of_all;
    struct live_owner *owner;
    uint8_t hash[SHA256_BYTES];
};
struct live_transports {
    struct map owners, by_hash;
    struct list all; /* oldest first */
};

static struct str hash_of(const uint8_t hash[SHA256_BYTES])
{
    return str_n((const char *)hash, SHA256_BYTES);
}

struct live_transports *live_new(void)
{
    struct live_transports *l = xcalloc(1, sizeof(*l));

    map_init(&l->owners);
    map_init(&l->by_hash);
    list_init(&l->all);
    return l;
}

static void drop(struct live_transports *l, struct live *one)
{
    struct live_owner *o = one->owner;

    map_remove(&l->by_hash, hash_of(one->hash));
    list_remove(&one->of_owner);
    list_remove(&one->of_all);
    free(one);
    if (--o->n)
        return;
    map_remove(&l->owners, o->key);
    free(o);
}

void live_free(struct live_transports *l)
{
    while (!list_empty(&l->all))
        drop(l, list_entry(list_first(&l->all), struct live, of_all));
    map_release(&l->owners);
    map_release(&l->by_hash);
    free(l);
}

static struct live_owner *owner_of(struct live_transports *l, const struct transport *t)
{
    size_t n = t->tenant.n + 1 + t->owner.n;
    struct live_owner *o = xcalloc(1, sizeof(*o) + n);
    char *at = (char *)(o + 1);

    memcpy(at, t->tenant.p, t->tenant.n);
    memcpy(at + t->tenant.n + 1, t->owner.p, t->owner.n);
    o->key = str_n(at, n);
    struct live_owner *known = map_get(&l->owners, o->key);
    if (known) {
        free(o);
        return known;
    }
    o->tenant = str_n(at, t->tenant.n);
    o->owner = str_n(at + t->tenant.n + 1, t->owner.n);
    list_init(&o->transports);
    map_put(&l->owners, o->key, o);
    return o;
}

/* Ends the oldest unused transport among the first LIVE_LOOKED_AT. */
static void end_oldest(struct sessions *home, struct live_owner *o)
{
    unsigned looked_at = 0;

    list_each(&o->transports, it)
    {
        struct live *one = list_entry(it, struct live, of_owner);
        struct transport *t = sessions_transport(home, o->tenant, o->owner, one->hash);
        if (++looked_at > LIVE_LOOKED_AT)
            return;
        if (t && (t->refs || t->listener))
            continue;
        transport_write(home, OP_TRANSPORT_END, o->tenant, o->owner, one->hash, clock_life_ms());
        if (t)
            transport_forget(t); /* its memory is freed with the idle transports */
        drop(home->live, one);
        return;
    }
}

void transports_make_room(struct sessions *home, const struct principal *who)
{
    struct arena *mem = arena_new(4096);
    struct live_owner *o =
        map_get(&home->live->owners,
                arena_printf(mem, "%.*s%c%.*s", STR_ARG(who->tenant), '\0', STR_ARG(who->owner)));

    arena_free(mem);
    if (o && o->n >= TRANSPORTS_PER_OWNER)
        end_oldest(home, o);
}

void live_used(struct sessions *home, const struct transport *t)
{
    struct live_transports *l = home->live;
    struct live *one = map_get(&l->by_hash, hash_of(t->id_hash));

    if (one) {
        list_remove(&one->of_owner);
        list_remove(&one->of_all);
    } else {
        one = xcalloc(1, sizeof(*one));
        memcpy(one->hash, t->id_hash, sizeof(one->hash));
        one->owner = owner_of(l, t);
        one->owner->n++;
        map_put(&l->by_hash, hash_of(one->hash), one);
    }
    list_push(&one->owner->transports, &one->of_owner);
    list_push(&l->all, &one->of_all);
    if (one->owner->n > TRANSPORTS_PER_OWNER)
        end_oldest(home, one->owner);
    if (l->by_hash.n > LIVE_IN_ALL)
        drop(l, list_entry(list_first(&l->all), struct live, of_all));
}

void live_ended(struct sessions *home, const uint8_t hash[SHA256_BYTES])
{
    struct live *one = map_get(&home->live->by_hash, hash_of(hash));

    if (one)
        drop(home->live, one);
}
