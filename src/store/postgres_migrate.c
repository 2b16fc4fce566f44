/* SPDX-License-Identifier: Apache-2.0 */
/* The migration driver of PostgreSQL.  An advisory lock that ends with the transaction serialises
 * nodes that start at once; the second node finds no migration left to apply. */
#include "store/postgres_impl.h"

#include <stdio.h>

/* A migration may rewrite a large table, so this deadline is longer than all others. */
#define MIGRATE_MS (10 * 60 * 1000)
/* "holdfast" as a number. */
#define LOCK "7525352680829580148"

/* Reads the catalog tables: to_regclass() may use what this connection cached before it waited for
 * the lock. */
#define HAS_TABLE                                                                                  \
    "SELECT count(*)::int FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "          \
    "WHERE n.nspname = 'mcp' AND c.relname = 'schema_migrations'"

static bool on_begin(void *arg, struct error *err)
{
    struct pg_store *s = arg;
    if (!pg_ready(s, err))
        return false;
    pg_deadline(s, MIGRATE_MS);
    s->migrating = true;
    return pg_exec_text(s,
                        "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;"
                        "SET LOCAL client_min_messages = warning;"
                        "SELECT pg_advisory_xact_lock(" LOCK ")",
                        "locking the schema", NULL, err);
}

static bool on_version(void *arg, int *ret_number, struct error *err)
{
    struct pg_store *s = arg;
    int64_t has_table = 0, number = 0;
    /* Inside a migration: no reconnect, because a new connection would not hold the lock. */
    if ((!s->migrating && !pg_ready(s, err)) ||
        !pg_exec_text(s, HAS_TABLE, "reading the schema's number", &has_table, err))
        return false;
    if (has_table && !pg_exec_text(s, "SELECT coalesce(max(number), 0) FROM mcp.schema_migrations",
                                   "reading the schema's number", &number, err))
        return false;
    *ret_number = (int)number;
    return true;
}

static bool on_exec(void *arg, struct str sql, struct error *err)
{
    struct pg_store *s = arg;
    pg_deadline(s, MIGRATE_MS);
    return pg_exec_text(s, sql.p, "changing the schema", NULL, err);
}

static bool on_record(void *arg, const struct migration *m, bool applied, struct error *err)
{
    char sql[256];
    /* Names come from the files we packed: letters, digits and underscores. */
    if (applied)
        snprintf(sql, sizeof(sql),
                 "INSERT INTO mcp.schema_migrations (number, name) VALUES (%d, '%.*s')", m->number,
                 STR_ARG(m->name));
    else
        snprintf(sql, sizeof(sql), "DELETE FROM mcp.schema_migrations WHERE number = %d",
                 m->number);
    return pg_exec_text(arg, sql, "recording a migration", NULL, err);
}

static bool on_commit(void *arg, struct error *err)
{
    struct pg_store *s = arg;
    pg_deadline(s, MIGRATE_MS);
    s->migrating = false;
    return pg_exec_text(s, "COMMIT", "committing a migration", NULL, err);
}

static void on_rollback(void *arg)
{
    struct pg_store *s = arg;
    s->migrating = false;
    pg_rollback(s);
}

struct migrate_driver pg_migrate_driver(struct pg_store *s)
{
    return (struct migrate_driver){
        .arg = s,
        .begin = on_begin,
        .version = on_version,
        .exec = on_exec,
        .record = on_record,
        .commit = on_commit,
        .rollback = on_rollback,
    };
}
