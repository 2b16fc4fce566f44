/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a database as its operator sees it: what was applied, what this program knows, and
 * the way from one to the other.  Stores bring their schema up by themselves when they are opened;
 * this is for those who want to look first, or to go back.  Blocking. */
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
    struct schema_applied *applied; /* by number; may hold newer ones than are known */
    size_t n_applied;
    int number; /* of the newest applied; 0: none */
    struct migrations known;
};

struct schema;
/* One table per backend. */
struct schema_ops {
    const char *dialect; /* the directory under sql/ */
    struct migrate_driver (*driver)(struct schema *s);
    bool (*applied)(struct schema *s, struct arena *mem, struct schema_applied **ret, size_t *ret_n,
                    struct error *err);
    /* Nodes that use the database now, for people; absent: none.  NULL: a lock keeps others out. */
    bool (*users)(struct schema *s, struct arena *mem, struct str *ret, struct error *err);
    /* What is done at the end of every migration that was asked for; NULL: nothing. */
    bool (*migrated)(struct schema *s, struct error *err);
    void (*close)(struct schema *s);
};
struct schema {
    const struct schema_ops *ops;
    const char *sql_dir; /* borrowed; NULL: migrations compiled into the binary */
};

/* read_only promises that nothing is changed, a missing SQLite file is ERR_NOT_FOUND; else one is
 * made.  Who changes a SQLite schema owns the data directory. */
must_check bool schema_open(const struct database *d, bool read_only, const char *sql_dir,
                            struct schema **ret, struct error *err);
must_check bool schema_open_sqlite(const struct store_config *config, struct schema **ret,
                                   struct error *err);
must_check bool schema_open_postgres(const struct store_config *config, struct schema **ret,
                                     struct error *err);
void schema_close(struct schema *s); /* NULL is fine */

/* Tells of a schema that is newer than the program, too; *ret is allocated in mem. */
must_check bool schema_status(struct schema *s, struct arena *mem, struct schema_status *ret,
                              struct error *err);
/* ERR_CONFIG when the schema is newer than what the program knows. */
must_check bool schema_status_check(const struct schema_status *status, struct error *err);
/* Applies what is missing, one transaction each, under a lock; ERR_CONFIG when newer. */
must_check bool schema_migrate(struct schema *s, struct error *err);
/* Undoes everything above `number`, newest first, with all data that only those tables held.
 * ERR_CONFLICT while other nodes use the database. */
must_check bool schema_rollback(struct schema *s, int number, struct error *err);

#endif
