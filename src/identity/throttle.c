/* SPDX-License-Identifier: Apache-2.0 */
/* A token bucket for each address.  It holds the failures still allowed, in thousandths, and
 * refills with time. */
#include "identity/throttle.h"

#include "base/list.h"
#include "base/map.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define FULL ((int64_t)THROTTLE_AT_ONCE * 1000)
#define ADDRESS_MAX 64 /* bytes of the text form */

struct bucket {
    struct list lru;
    size_t n_name;
    char name[ADDRESS_MAX];
    int64_t left;  /* thousandths of a failure */
    int64_t at_ms; /* time of that level */
};

struct throttle {
    struct map buckets;
    struct list lru; /* least recently used first */
    size_t n;
};

struct throttle *throttle_new(void)
{
    struct throttle *t = xcalloc(1, sizeof(*t));

    map_init(&t->buckets);
    list_init(&t->lru);
    return t;
}

void throttle_free(struct throttle *t)
{
    struct list *first;

    if (!t)
        return;
    while ((first = list_pop(&t->lru)))
        free(list_entry(first, struct bucket, lru));
    map_release(&t->buckets);
    free(t);
}

/* The address, or the network of an IPv6 address, written to `room` of ADDRESS_MAX bytes. */
static struct str name_of(struct str address, char *room)
{
    struct in6_addr six;
    size_t n = address.n < ADDRESS_MAX - 1 ? address.n : ADDRESS_MAX - 1;

    memcpy(room, address.p, n);
    room[n] = '\0';
    if (inet_pton(AF_INET6, room, &six) != 1)
        return str_n(room, n);
    memcpy(room, "6/", 2);
    memcpy(room + 2, six.s6_addr, 8);
    return str_n(room, 10);
}

static void fill(struct bucket *b, int64_t now_ms)
{
    if (now_ms > b->at_ms) {
        int64_t more = now_ms - b->at_ms < FULL ? (now_ms - b->at_ms) * THROTTLE_PER_S : FULL;
        b->left = b->left + more < FULL ? b->left + more : FULL;
    }
    b->at_ms = now_ms;
}

bool throttle_allows(struct throttle *t, struct str address, int64_t now_ms)
{
    char room[ADDRESS_MAX];
    struct bucket *b = address.n ? map_get(&t->buckets, name_of(address, room)) : NULL;

    if (likely(!b))
        return true;
    fill(b, now_ms);
    return b->left >= 1000;
}

static struct bucket *bucket_new(struct throttle *t, struct str name, int64_t now_ms)
{
    struct bucket *b = xcalloc(1, sizeof(*b));

    if (t->n >= THROTTLE_ADDRESSES) {
        struct bucket *oldest = list_entry(list_pop(&t->lru), struct bucket, lru);
        map_remove(&t->buckets, str_n(oldest->name, oldest->n_name));
        free(oldest);
        t->n--;
    }
    memcpy(b->name, name.p, name.n);
    b->n_name = name.n;
    b->left = FULL;
    b->at_ms = now_ms;
    list_init(&b->lru);
    map_put(&t->buckets, str_n(b->name, b->n_name), b);
    t->n++;
    return b;
}

void throttle_failed(struct throttle *t, struct str address, int64_t now_ms)
{
    char room[ADDRESS_MAX];

    if (!address.n)
        return;
    struct str name = name_of(address, room);
    struct bucket *b = map_get(&t->buckets, name);
    if (!b)
        b = bucket_new(t, name, now_ms);
    fill(b, now_ms);
    b->left = b->left > 1000 ? b->left - 1000 : 0;
    list_remove(&b->lru);
    list_push(&t->lru, &b->lru);
}
