/* SPDX-License-Identifier: Apache-2.0 */
/* The storage of the gateway: the database with its three connections, the writer with its lease,
 * the chain, the spool, and the cache in front of the first two connections.  The gateway opens it
 * before everything else and closes it after everything else.
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

struct storage_config {
    struct database database;
    struct str data_dir;
    int64_t patience_ms;              /* for a PostgreSQL that is not there yet; 0: 30 s */
    const struct redis_target *redis; /* where sessions are cached; NULL: nowhere.  Lasts as long */
    struct str cache_prefix;
    int64_t cache_ttl_ms;
};

struct storage;
/* Blocking.  ERR_CONFIG: the database or the key is not one we may use.  ERR_UNREACHABLE: not there
 * in time. */
must_check bool storage_open(const struct storage_config *config, struct storage **ret,
                             struct error *err);
/* Hands the connections to the lanes, and renews the lease from now on. */
struct lanes *storage_run(struct storage *s, struct loop *loop) must_check;
/* Before lanes_free(). */
void storage_stop(struct storage *s);
/* After lanes_free() and audit_free(): records that the writer has ended.  NULL is fine. */
void storage_close(struct storage *s);

/* Where nodes are told of each other's changes (store/redis_listen.h); absent: nowhere. */
struct str storage_channel(const struct storage *s);
bool storage_is_shared(const struct storage *s);
const struct database *storage_database(const struct storage *s);
const struct writer_row *storage_writer(const struct storage *s);
struct chain *storage_chain(struct storage *s);
struct spool *storage_spool(struct storage *s);       /* NULL: none */
struct store *storage_write_store(struct storage *s); /* before storage_run() */

#endif
