/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the numbered migrations of sql/DIALECT, packed into the binary or read from a directory.
 *
 * Each migration runs in one transaction that holds the database's write lock and that ends with
 * the migration's record in schema_migrations.  Two processes that start at once apply it once, and
 * a crash in between leaves the schema unchanged.  The backend's driver implements lock and
 * transaction. */
#ifndef HOLDFAST_STORE_MIGRATE_H
#define HOLDFAST_STORE_MIGRATE_H

#include "base/arena.h"
#include "base/error.h"

struct migration {
    int number; /* from 1, without gaps */
    struct str name;
    struct str up, down; /* NUL-terminated texts */
};
struct migrations {
    struct migration *list; /* list[i].number == i + 1 */
    size_t n;
};

/* The calls for one migration.  Up calls exec before record; down calls record before exec. */
struct migrate_driver {
    void *arg;
    /* Opens a transaction and holds the lock until its end. */
    bool (*begin)(void *arg, struct error *err);
    bool (*version)(void *arg, int *ret_number, struct error *err); /* 0 for an empty database */
    bool (*exec)(void *arg, struct str sql, struct error *err);
    /* Inserts the record of `m`, or deletes it. */
    bool (*record)(void *arg, const struct migration *m, bool applied, struct error *err);
    bool (*commit)(void *arg, struct error *err);
    void (*rollback)(void *arg);
};

/* Every migration of `dialect` ("sqlite"), allocated in `mem`.  `sql_dir` NULL: the migrations in
 * the binary. */
must_check bool migrate_load(const char *dialect, const char *sql_dir, struct arena *mem,
                             struct migrations *ret, struct error *err);
/* Migrates up to the newest known schema.  Refuses a newer schema with ERR_CONFIG. */
must_check bool migrate_up(const struct migrate_driver *d, const struct migrations *known,
                           struct error *err);
/* Undoes every migration above `number`, newest first. */
must_check bool migrate_down(const struct migrate_driver *d, const struct migrations *known,
                             int number, struct error *err);
/* ERR_CONFIG unless `number` is the newest known.  For stores that must not migrate. */
must_check bool migrate_check(const struct migrations *known, int number, struct error *err);

#endif
