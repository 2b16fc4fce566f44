/* SPDX-License-Identifier: Apache-2.0 */
/* What the gateway stands on: the database with its three connections, the writer with its lease,
 * the chain and the spool, and the cache in front of the first two connections.  Opened before
 * anything else runs, closed after everything else.
 *
 * On SQLite we are alone: the data directory is locked.  On PostgreSQL other nodes may be at work,
 * so a writer counts as gone only when its lease has lapsed, and then one of us closes what it left
 * open. */
#ifndef HOLDFAST_GROUND_H
#define HOLDFAST_GROUND_H

#include "audit/chain.h"
#include "store/cached.h"
#include "store/database.h"
#include "store/lanes.h"
#include "store/spool.h"

struct ground_config {
    struct database database;
    struct str data_dir;
    int64_t patience_ms;              /* for a PostgreSQL that is not there yet; 0: 30 s */
    const struct redis_target *redis; /* where sessions are cached; NULL: nowhere.  Lasts as long */
    struct str cache_prefix;
    int64_t cache_ttl_ms;
};

struct ground;
/* Blocking.  ERR_CONFIG: the database or the key is not one we may use.  ERR_UNREACHABLE: not there
 * in time. */
must_check bool ground_open(const struct ground_config *config, struct ground **ret,
                            struct error *err);
/* The lanes take the connections; the lease is renewed from now on. */
struct lanes *ground_run(struct ground *g, struct loop *loop) must_check;
/* Before lanes_free(). */
void ground_stop(struct ground *g);
/* After lanes_free() and audit_free(): says that the writer has ended.  NULL is fine. */
void ground_close(struct ground *g);

/* Where nodes are told of each other's changes (store/redis_listen.h); absent: nowhere. */
struct str ground_channel(const struct ground *g);
bool ground_is_shared(const struct ground *g);
const struct database *ground_database(const struct ground *g);
const struct writer_row *ground_writer(const struct ground *g);
struct chain *ground_chain(struct ground *g);
struct spool *ground_spool(struct ground *g);       /* NULL: none */
struct store *ground_write_store(struct ground *g); /* before ground_run() */

#endif
