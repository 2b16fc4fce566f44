/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of an SQLite file.  The connection is like that of the store, but opening it does not
 * touch the schema. */
#include "store/schema.h"
#include "store/sqlite_impl.h"

#include <stdlib.h>

#define MAX_APPLIED 1000 /* more than there can be migrations */

struct sqlite_schema {
    struct schema base;
    struct sqlite_store *store;
};

static struct sqlite_schema *of(struct schema *s)
{
    return container_of(s, struct sqlite_schema, base);
}

static struct migrate_driver on_driver(struct schema *s)
{
    return sq_migrate_driver(&of(s)->store->db);
}

static bool on_applied(struct schema *s, struct arena *mem, struct schema_applied **ret,
                       size_t *ret_n, struct error *err)
{
    struct migrate_driver driver = on_driver(s);
    struct schema_applied *list = arena_zalloc(mem, MAX_APPLIED * sizeof(*list));
    sqlite3_stmt *st = NULL;
    size_t n = 0;
    int number = 0, rc;
    if (!driver.version(driver.arg, &number, err))
        return false;
    if (number > 0) { /* else the table may not exist */
        sqlite3_prepare_v2(of(s)->store->db,
                           "SELECT number, name, applied_at FROM schema_migrations ORDER BY number",
                           -1, &st, NULL);
        struct sq_row row = {.st = st, .mem = mem};
        while ((rc = sqlite3_step(st)) == SQLITE_ROW && n < MAX_APPLIED) {
            row.at = 0;
            list[n].number = (int)sq_get_int(&row);
            list[n].name = sq_get_bytes(&row);
            list[n++].applied_ms = sq_get_int(&row);
        }
        sqlite3_finalize(st);
        if (rc != SQLITE_DONE && rc != SQLITE_ROW)
            return sq_error(of(s)->store, err, "reading the schema's history");
    }
    *ret = list;
    *ret_n = n;
    return true;
}

static void on_close(struct schema *s)
{
    struct sqlite_schema *schema = of(s);
    store_close(&schema->store->base);
    free(schema);
}

static bool on_compact(struct schema *s, struct error *err)
{
    struct sqlite_store *store = of(s)->store;
    if (sqlite3_exec(store->db,
                     "PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)",
                     NULL, NULL, NULL) != SQLITE_OK)
        return sq_error(store, err, "writing the file anew");
    return true;
}

static const struct schema_ops sqlite_schema_ops = {
    .dialect = "sqlite",
    .driver = on_driver,
    .applied = on_applied,
    .compact = on_compact,
    .close = on_close,
};

bool schema_open_sqlite(const struct store_config *config, struct schema **ret, struct error *err)
{
    struct sqlite_store *store;
    if (!sq_open_file(config, &store, err))
        return false;
    struct sqlite_schema *s = xcalloc(1, sizeof(*s));
    s->base.ops = &sqlite_schema_ops;
    s->store = store;
    *ret = &s->base;
    return true;
}
