/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a PostgreSQL database.  The connection is like that of the store, but opening it
 * does not touch the schema mcp. */
#include "store/postgres_impl.h"
#include "store/schema.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_APPLIED 1000 /* more than there can be migrations */
#define GRANT_MS (30 * 1000)

struct postgres_schema {
    struct schema base;
    struct pg_store *store;
};

static struct postgres_schema *of(struct schema *s)
{
    return container_of(s, struct postgres_schema, base);
}

static struct migrate_driver on_driver(struct schema *s)
{
    return pg_migrate_driver(of(s)->store);
}

static bool on_applied(struct schema *s, struct arena *mem, struct schema_applied **ret,
                       size_t *ret_n, struct error *err)
{
    struct migrate_driver driver = on_driver(s);
    PGresult *res = NULL;
    int number = 0, n = 0;
    if (!driver.version(driver.arg, &number, err))
        return false;
    if (number > 0 && !pg_query(of(s)->store, PG_SCHEMA_APPLIED, NULL, &res, err))
        return false;
    n = res ? pq.ntuples(res) : 0;
    n = n < MAX_APPLIED ? n : MAX_APPLIED;
    struct schema_applied *list = arena_zalloc(mem, ((size_t)n + 1) * sizeof(*list));
    for (int i = 0; i < n; i++) {
        struct pg_row row = {.res = res, .mem = mem, .row = i};
        list[i].number = (int)pg_get_int(&row);
        list[i].name = pg_get_bytes(&row);
        list[i].applied_ms = pg_get_time(&row);
    }
    pq.clear(res);
    *ret = list;
    *ret_n = (size_t)n;
    return true;
}

/* Finds running nodes by their leases; a stopped node has given its lease back. */
static bool on_users(struct schema *s, struct arena *mem, struct str *ret, struct error *err)
{
    struct migrate_driver driver = on_driver(s);
    PGresult *res = NULL;
    int number = 0;
    *ret = STR_NONE;
    if (!driver.version(driver.arg, &number, err))
        return false;
    if (number == 0)
        return true;
    if (!pg_query(of(s)->store, PG_SCHEMA_USERS, NULL, &res, err))
        return false;
    struct pg_row row = {.res = res, .mem = mem};
    *ret = pg_get_bytes(&row);
    pq.clear(res);
    return true;
}

/* The role api_user may be created after the schema.  It gets the grants of migration 0001 with the
 * next migration that is requested.  A role that may not grant leaves the grants unchanged. */
static bool on_migrated(struct schema *s, struct error *err)
{
    struct pg_store *store = of(s)->store;
    pg_deadline(store, GRANT_MS);
    return pg_exec_text(
        store,
        "DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'api_user') THEN "
        "GRANT USAGE ON SCHEMA mcp TO api_user;"
        "GRANT SELECT, INSERT, UPDATE ON mcp.edge_mcp_sessions TO api_user;"
        "GRANT SELECT, UPDATE (counted_sessions) ON mcp.tenants TO api_user;"
        "GRANT SELECT, INSERT ON mcp.session_tool_executions TO api_user;"
        "GRANT SELECT ON mcp.session_metrics TO api_user;"
        "GRANT EXECUTE ON FUNCTION mcp.cleanup_expired_sessions() TO api_user;"
        "END IF; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$",
        "granting to api_user", NULL, err);
}

static void on_close(struct schema *s)
{
    struct postgres_schema *schema = of(s);
    store_close(&schema->store->base);
    free(schema);
}

static const struct schema_ops postgres_schema_ops = {
    .dialect = "postgres",
    .driver = on_driver,
    .applied = on_applied,
    .users = on_users,
    .migrated = on_migrated,
    .close = on_close,
};

bool schema_open_postgres(const struct store_config *config, struct schema **ret, struct error *err)
{
    struct pg_store *store;
    if (!pg_open_server(config, &store, err))
        return false;
    struct postgres_schema *s = xcalloc(1, sizeof(*s));
    s->base.ops = &postgres_schema_ops;
    s->store = store;
    *ret = &s->base;
    return true;
}
