/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in Redis, in front of any store, which stays the truth.  Losing Redis, or what is in it,
 * only slows: no call fails by it, and nothing that ended is seen again.
 *
 *   entry   PREFIX + 32 hex digits, an HMAC of tenant and id, so that no name reaches Redis
 *     R…    the row as bytes under a MAC, for at most the ttl and the session's remaining life
 *     L…    a lease: one reader is on its way to the store
 *     T     a tombstone: somebody is writing the row
 *   PREFIXepoch   what entries must name to be seen; whoever deletes it forgets all of them
 *
 * A reader that finds nothing leaves a lease, reads the store, and fills in the row only where its
 * lease still stands.  A writer puts a tombstone in its place before the commit, so every lease of
 * before is void, and takes it away after it; one for what ended stays.  Where Redis did not
 * confirm a tombstone, this process uses no entry until it has deleted the epoch after the commit.
 * The first thing on every new connection is to delete the epoch: what was written meanwhile, or
 * lost by Redis with a tombstone, is not known.
 *
 * Tenant, owner, status and end are checked on every hit; a row that reads as ended is asked of the
 * store.  The decision is docs/decisions/0022. */
#ifndef HOLDFAST_STORE_CACHED_H
#define HOLDFAST_STORE_CACHED_H

#include "store/redis_conn.h"
#include "store/store.h"

/* Longer than a commit takes before it has failed. */
#define CACHE_TOMBSTONE_MS 15000
#define CACHE_LEASE_MS 3000
#define CACHE_PREFIX_MAX 128
/* Longer rows are not kept. */
#define CACHE_ROW_BYTES_MAX ((size_t)64 << 10)

struct cache_config {
    const struct redis_target *target; /* lasts as long as the cache */
    const char *ca_file;               /* as in struct redis_config */
    struct str prefix;                 /* at most CACHE_PREFIX_MAX bytes */
    int64_t ttl_ms;
    int64_t deadline_ms; /* of one exchange with Redis; 0: REDIS_DEADLINE_MS */
    uint8_t key[32];     /* of MACs and names: one per database */
};
/* What the stores of one process share. */
struct cache;
must_check bool cache_new(const struct cache_config *config, struct cache **ret, struct error *err);
void cache_free(struct cache *c); /* after the stores; NULL is fine */
/* Takes the inner store.  Each has its own connection, so each may be on a thread of its own. */
must_check bool store_cached(struct cache *c, struct store *inner, struct store **ret,
                             struct error *err);

/* Where it is told, after each commit that store_changes() knows of, that there is something to ask
 * for, and nothing else (store/redis_listen.h). */
struct str cache_channel(const struct cache *c);

#endif
