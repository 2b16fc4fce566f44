/* SPDX-License-Identifier: Apache-2.0 */
/* Caches sessions in Redis, in front of any store.  The store stays authoritative.  Losing Redis or
 * its data only makes reads slower: no call fails, and no ended session is seen again.
 *
 *   entry   PREFIX + 32 hex digits, an HMAC of tenant and id, so that no name reaches Redis
 *     R…    the row as bytes under a MAC, for at most the ttl and the session's remaining life
 *     L…    a lease: one reader is reading the store
 *     T     a tombstone: a writer is writing the row
 *   PREFIXepoch   entries count only if they name this epoch; deleting it voids all of them
 *
 * On a miss the reader leaves a lease, reads the store, and fills in the row only if its lease is
 * still there.  A writer replaces the entry with a tombstone, which voids every earlier lease, and
 * deletes the tombstone after the commit.  The tombstone of an ended session stays.  If Redis did
 * not confirm a tombstone, this process uses no entry until it has deleted the epoch after the
 * commit.  Each new connection first deletes the epoch: writes may have been missed meanwhile, or
 * Redis may have lost a tombstone.
 *
 * The write lane does not wait for Redis.  It hands the tombstone to the Redis lane before the
 * commit and the rest after it.  Until Redis has confirmed a tombstone, this process reads that
 * session from the store.  Other nodes may use the old entry for this time, as they may before they
 * receive the message about a change.
 *
 * Every hit is checked for tenant, owner, status and end.  If the cached row has ended, the store
 * is asked.  The decision is docs/decisions/0022. */
#ifndef HOLDFAST_STORE_CACHED_H
#define HOLDFAST_STORE_CACHED_H

#include "store/redis_conn.h"
#include "store/store.h"

/* Longer than a commit can take before it fails. */
#define CACHE_TOMBSTONE_MS 15000
#define CACHE_LEASE_MS 3000
#define CACHE_PREFIX_MAX 128
/* Longer rows are not cached. */
#define CACHE_ROW_BYTES_MAX ((size_t)64 << 10)

struct cache_config {
    const struct redis_target *target; /* must outlive the cache */
    const char *ca_file;               /* as in struct redis_config */
    struct str prefix;                 /* at most CACHE_PREFIX_MAX bytes */
    int64_t ttl_ms;
    int64_t deadline_ms; /* of one exchange with Redis; 0: REDIS_DEADLINE_MS */
    bool tells_events;   /* other nodes are told of committed events (cache_events_text()) */
    uint8_t key[32];     /* for MACs and entry names; one key per database */
};
/* The part of the cache that all stores of one process share. */
struct cache;
must_check bool cache_new(const struct cache_config *config, struct cache **ret, struct error *err);
void cache_free(struct cache *c); /* call after closing the stores; NULL is fine */
/* Takes the inner store.  Each store has its own connection, so each may run on its own thread. */
must_check bool store_cached(struct cache *c, struct store *inner, struct store **ret,
                             struct error *err);
/* As store_cached(), for the write lane: a thread of its own tells Redis of each write, so that no
 * commit waits for Redis. */
must_check bool store_cached_with_lane(struct cache *c, struct store *inner, struct store **ret,
                                       struct error *err);

/* The channel on which a message follows each commit that store_changes() reports.  The message
 * says only that there are changes to ask for (store/redis_listen.h). */
struct str cache_channel(const struct cache *c);
/* The message by which this process says that it committed events. */
struct str cache_events_text(const struct cache *c);

#endif
