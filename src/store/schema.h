/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a database as its operator sees it: the applied migrations, the migrations that
 * this program knows, and migrating up or down.  Stores migrate by themselves when they are opened;
 * this interface is for inspecting the schema first, or for going back.  Calls block. */
#ifndef HOLDFAST_STORE_SCHEMA_H
#define HOLDFAST_STORE_SCHEMA_H

#include "store/database.h"
#include "store/migrate.h"

struct schema_applied {
    int number;
    struct str name;
    int64_t applied_ms;
};
struct schema_status {
    struct schema_applied *applied; /* by number; may be newer than the known ones */
    size_t n_applied;
    int number; /* number of the newest applied migration; 0: none */
    struct migrations known;
};

struct schema;
/* One table per backend. */
struct schema_ops {
    const char *dialect; /* the directory under sql/ */
    struct migrate_driver (*driver)(struct schema *s);
    bool (*applied)(struct schema *s, struct arena *mem, struct schema_applied **ret, size_t *ret_n,
                    struct error *err);
    /* Names of nodes that use the database now, for people; absent: none.  NULL: a lock excludes
     * other nodes. */
    bool (*users)(struct schema *s, struct arena *mem, struct str *ret, struct error *err);
    /* Called at the end of every requested migration; NULL: nothing to do. */
    bool (*migrated)(struct schema *s, struct error *err);
    /* NULL: the database has commands of its own for this. */
    bool (*compact)(struct schema *s, struct error *err);
    void (*close)(struct schema *s);
};
struct schema {
    const struct schema_ops *ops;
    const char *sql_dir; /* borrowed; NULL: migrations compiled into the binary */
};

/* With read_only nothing is changed, and a missing SQLite file is ERR_NOT_FOUND.  Otherwise a
 * missing file is made.  A caller that changes an SQLite schema must own the data directory. */
must_check bool schema_open(const struct database *d, bool read_only, const char *sql_dir,
                            struct schema **ret, struct error *err);
must_check bool schema_open_sqlite(const struct store_config *config, struct schema **ret,
                                   struct error *err);
must_check bool schema_open_postgres(const struct store_config *config, struct schema **ret,
                                     struct error *err);
void schema_close(struct schema *s); /* NULL is fine */

/* Also reports a schema that is newer than the program.  *ret is allocated in `mem`. */
must_check bool schema_status(struct schema *s, struct arena *mem, struct schema_status *ret,
                              struct error *err);
/* ERR_CONFIG when the schema is newer than the program knows. */
must_check bool schema_status_check(const struct schema_status *status, struct error *err);
/* Applies the missing migrations, one transaction each, under a lock; ERR_CONFIG when the schema is
 * newer than the program. */
must_check bool schema_migrate(struct schema *s, struct error *err);
/* Writes the database file anew, without unused pages; from then on they can be given back while it is
 * in use (store_file_shrink()).  Needs as much free disk as the file has data. */
must_check bool schema_compact(struct schema *s, struct error *err);
/* Undoes all migrations above `number`, newest first, and deletes all data that only their tables
 * held.  ERR_CONFLICT while other nodes use the database. */
must_check bool schema_rollback(struct schema *s, int number, struct error *err);

#endif
