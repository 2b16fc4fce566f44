/* SPDX-License-Identifier: Apache-2.0 */
/* The storage of the gateway: the database with its three connections, the writer with its lease,
 * the chain, the spool, and the cache in front of the first two connections.  The gateway opens it
 * before all other services and closes it after them.
 *
 * On SQLite there is one node: the data directory is locked.  On PostgreSQL there may be several,
 * so a writer counts as gone only when its lease has lapsed.  Then one node closes the intents that
 * the writer left open. */
#ifndef HOLDFAST_STORAGE_H
#define HOLDFAST_STORAGE_H

#include "audit/chain.h"
#include "store/cached.h"
#include "store/database.h"
#include "store/lanes.h"
#include "store/spool.h"

#define STORAGE_NO_PATIENCE (-1)

struct storage_config {
    struct database database;
    struct str data_dir;
    /* How long to wait for PostgreSQL to start; 0: 30 s; STORAGE_NO_PATIENCE: the first error is
     * returned as it is. */
    int64_t patience_ms;
    /* The Redis that caches sessions; NULL: no cache.  Must outlive the storage. */
    const struct redis_target *redis;
    struct str cache_prefix;
    int64_t cache_ttl_ms;
};

struct storage;
/* Blocking.  ERR_CONFIG: the database or the key may not be used.  ERR_UNREACHABLE: the database
 * did not start in time. */
must_check bool storage_open(const struct storage_config *config, struct storage **ret,
                             struct error *err);
/* Passes the connections to the lanes and starts to renew the lease. */
struct lanes *storage_run(struct storage *s, struct loop *loop) must_check;
/* Stops renewing the lease.  Call it before lanes_free(). */
void storage_stop(struct storage *s);
/* Records the end of the writer.  Call it after lanes_free() and audit_free().  NULL is fine. */
void storage_close(struct storage *s);

/* The channel on which nodes notify each other (store/redis_listen.h); absent: none. */
struct str storage_channel(const struct storage *s);
/* The message of this process on that channel. */
struct str storage_events_text(const struct storage *s);
bool storage_is_shared(const struct storage *s);
const struct database *storage_database(const struct storage *s);
const struct writer_row *storage_writer(const struct storage *s);
struct chain *storage_chain(struct storage *s);
struct spool *storage_spool(struct storage *s);       /* NULL: no spool */
struct store *storage_write_store(struct storage *s); /* before storage_run() */

#endif
