/* SPDX-License-Identifier: Apache-2.0 */
/* Names the database: the SQLite file in the data directory, or the PostgreSQL database of a URL.
 * The URL may hold a password, so only the backend gets it; all other code shows `shown`. */
#ifndef HOLDFAST_STORE_DATABASE_H
#define HOLDFAST_STORE_DATABASE_H

#include "store/store.h"

struct database {
    bool is_postgres; /* other processes may share the database */
    struct str path;  /* the SQLite file, or the URL */
    struct str shown; /* printable: the file, or the URL without secrets */
};

/* `url` absent or empty: DATA/holdfast.db.  ERR_CONFIG when the URL is not a PostgreSQL URL.  All
 * texts are NUL-terminated, in `mem`. */
must_check bool database_choose(struct str url, struct str data_dir, struct arena *mem,
                                struct database *ret, struct error *err);
/* Opens a new connection; `how` gives all settings but the path. */
must_check bool database_open(const struct database *d, struct store_config how, struct store **ret,
                              struct error *err);

/* The writer of an SQLite database sets this gauge after each commit.  From SQ_WAL_BOUND on the WAL
 * counts as large. */
#define SQ_WAL_METRIC "holdfast_store_wal_bytes"
#define SQ_WAL_HELP "Bytes in the WAL of the SQLite database that are in use."
#define SQ_WAL_BOUND (INT64_C(64) << 20)

#endif
