/* SPDX-License-Identifier: Apache-2.0 */
/* Which database: the SQLite file of the data directory, or the PostgreSQL that a URL names.
 * The URL may hold a password, so it goes to the backend alone; everybody else shows `shown`. */
#ifndef HOLDFAST_STORE_DATABASE_H
#define HOLDFAST_STORE_DATABASE_H

#include "store/store.h"

struct database {
    bool is_postgres; /* then other processes may share it */
    struct str path;  /* the SQLite file, or the URL */
    struct str shown; /* what people may read: the file, or the URL without its secrets */
};

/* `url` absent or empty: DATA/holdfast.db.  ERR_CONFIG for a URL that is not PostgreSQL's.  All
 * texts are NUL-terminated, in mem. */
must_check bool database_choose(struct str url, struct str data_dir, struct arena *mem,
                                struct database *ret, struct error *err);
/* A connection of its own; `how` gives all but the path. */
must_check bool database_open(const struct database *d, struct store_config how, struct store **ret,
                              struct error *err);

/* A gauge that the writer of an SQLite database sets after each commit, and the size from which its
 * WAL is called large. */
#define SQ_WAL_METRIC "holdfast_store_wal_bytes"
#define SQ_WAL_HELP "Bytes in the WAL of the SQLite database that are in use."
#define SQ_WAL_BOUND (INT64_C(64) << 20)

#endif
