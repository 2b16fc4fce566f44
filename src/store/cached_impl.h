/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the cache.  cached_read.c reads through the cache, cached.c writes,
 * cached_news.c announces writes, cached_lane.c does so on its own thread,
 * cached_redis.c sends the Redis commands, cached_row.c packs a row into bytes. */
#ifndef HOLDFAST_STORE_CACHED_IMPL_H
#define HOLDFAST_STORE_CACHED_IMPL_H

#include <stdatomic.h>

#include "base/metric.h"
#include "crypto/hash.h"
#include "store/cached.h"
#include "store/redis_listen.h"
#include "store/store_impl.h"

#define ENTRY_DIGITS 32
#define EPOCH_BYTES 16
#define MAC_BYTES 16
#define FORGET_MAX 4096
#define NEWS_SLOTS 4096

struct cache {
    struct cache_config config;
    char prefix[CACHE_PREFIX_MAX], channel[CACHE_PREFIX_MAX + 8], events_text[32];
    struct hmac_key *key;
    struct metric_cell *hits, *misses, *errors;
    /* Number of the newest write, fold or reap that this process began; from 1. */
    _Atomic uint64_t began;
    /* The newest of them that was not announced; 0: none.  Until the epoch is deleted after it,
     * this process uses no entry. */
    _Atomic uint64_t distrusted;
    /* Announcements on their way to Redis: all entries, and entries by their slot.  Meanwhile this
     * process does not use these entries. */
    atomic_uint all_on_the_way, on_the_way[NEWS_SLOTS];
    _Atomic int64_t warned_ms; /* clock_mono_ms(); 0: never */
};

struct entry_name {
    char digits[ENTRY_DIGITS];
};

struct cached_store {
    struct store base;
    struct store *inner;
    struct cache *cache;
    struct redis *redis;
    uint64_t connects;               /* connection count at the last deletion of the epoch */
    struct arena *mem;               /* memory of one exchange */
    char tombstone[1 + EPOCH_BYTES]; /* of this batch */
    struct cache_lane *lane;         /* makes the announcements; NULL: the caller's thread does */
    /* Sessions with unfolded events; the fold will change their rows. */
    struct entry_name *unfolded;
    size_t n_unfolded;
    bool overflowed; /* there are more than FORGET_MAX such sessions */
};

static inline struct cached_store *cached_of(struct store *s)
{
    return container_of(s, struct cached_store, base);
}

/* cached_news.c: what Redis must learn of one write, fold or reap. */
struct cache_message {
    struct cache_message *next;
    uint64_t number; /* of the write, fold or reap */
    enum cache_message_kind {
        NEWS_BEGUN,   /* before the commit: a tombstone in place of each entry */
        NEWS_WRITTEN, /* after it: deletes the tombstones, but keeps those of ended sessions */
        NEWS_CHANGED, /* the rows changed without a tombstone: deletes the entries */
    } kind;
    char tombstone[1 + EPOCH_BYTES];
    bool forgets_all; /* NEWS_CHANGED: all entries, not those named */
    bool publishes;   /* NEWS_WRITTEN: other nodes must ask for changes */
    size_t n_ended;   /* the first of the names */
    size_t n;
    struct entry_name names[];
};
struct cache_message *cache_message_new(struct cached_store *s, enum cache_message_kind kind,
                                        size_t max_names);
/* Takes the news, and has Redis learn it: on the lane, or at once on this thread. */
void cache_message_send(struct cached_store *s, struct cache_message *message);
/* Has Redis learn it through the store's connection. */
void cache_message_publish(struct cached_store *s, const struct cache_message *message);
/* For news that Redis never learned. */
void cache_message_lost(struct cache *c, const struct cache_message *message);
/* This process uses no entry until the epoch is deleted after the write with this number. */
void cache_distrust(struct cache *c, uint64_t number);
/* False while the entry must not be used. */
bool cache_may_use(struct cache *c, const struct entry_name *name);

/* cached_lane.c: a thread with a connection of its own. */
must_check bool cache_lane_new(struct cache *c, struct cache_lane **ret, struct error *err);
/* Sends what is queued; NULL is fine. */
void cache_lane_free(struct cache_lane *lane);
/* False when the queue is full. */
must_check bool cache_lane_put(struct cache_lane *lane, struct cache_message *message);
/* Events were committed: other nodes that have readers of events ask the store for them. */
void cache_lane_tell_events(struct cache_lane *lane);
/* A store without an inner one: a connection to Redis. */
must_check bool cached_store_new(struct cache *c, struct cached_store **ret, struct error *err);
void cached_store_free(struct cached_store *s);

/* cached_read.c: the verbs for sessions. */
bool cached_sessions_find(struct cached_store *s, struct session_find *finds, size_t n,
                          struct error *err);
bool cached_session_find(struct cached_store *s, struct store_call *c, bool by_id,
                         struct error *err);

/* cached_redis.c.  false: Redis did not execute the commands.  Failures are counted, and logged at
 * most every 30 s.  Results are in the store's `mem` until the next exchange. */
struct entry {
    struct entry_name name;
    struct str value;                            /* absent: no entry in this epoch */
    char epoch[EPOCH_BYTES], token[EPOCH_BYTES]; /* the lease */
    bool is_leased;                              /* this reader holds the lease */
};
must_check bool cache_look(struct cached_store *s, struct entry **entries, size_t n);
/* Reads entries of handles.  Such an entry holds a session id and never changes. */
must_check bool cache_get_names(struct cached_store *s, const struct entry_name *names, size_t n,
                                struct str *ret_values);
struct keep {
    const struct entry *entry; /* a row under its lease; NULL: the entry `name` of a handle */
    const struct entry_name *name;
    struct str value;
    int64_t ttl_ms; /* > 0 */
};
void cache_keep(struct cached_store *s, const struct keep *keeps, size_t n);
void cache_new_tombstone(struct cached_store *s);
must_check bool cache_bury(struct cached_store *s, const struct entry_name *names, size_t n,
                           int64_t ttl_ms);
/* Deletes the entries, except for tombstones of other writers. */
must_check bool cache_lift(struct cached_store *s, const struct entry_name *names, size_t n);
/* Deletes the entries.  For rows that changed without a tombstone. */
must_check bool cache_drop(struct cached_store *s, const struct entry_name *names, size_t n);
must_check bool cache_forget_all(struct cached_store *s);
/* Tells the other nodes to ask the store for changes or for events (REDIS_SAYS_…).  If the message
 * is lost, they ask by themselves later. */
void cache_publish(struct cached_store *s, struct str what);
/* cached_row.c */
/* Names the entry by the lower-case id: ids are UUIDs, and the stores find them in either case. */
void cache_session_name(const struct cache *c, struct str tenant, struct str id,
                        struct entry_name *ret);
void cache_entry_name(const struct cache *c, char kind, struct str tenant, struct str a,
                      struct str b, struct entry_name *ret);
/* Absent when the row is too long. */
struct str cache_row_pack(const struct cache *c, const struct entry_name *name,
                          const struct session_row *row, struct arena *mem);
/* Texts point into `packed`.  false: `packed` is not a row that was packed under this name. */
must_check bool cache_row_unpack(const struct cache *c, const struct entry_name *name,
                                 struct str packed, struct session_row *ret);

#endif
