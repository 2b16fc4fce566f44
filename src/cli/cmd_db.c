/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast db migrate|status|rollback|compact: the schema of the database that --data, --database-url or
 * DATABASE_URL names.  Only the owner of the data directory changes a SQLite file, so migrate and
 * rollback are refused while a daemon runs; status and --dry-run only read.  PostgreSQL has a lock
 * of its own, so several nodes may run migrate at once. */
#include "cli/cli.h"

#include "base/clock.h"
#include "config/datadir.h"
#include "config/config.h"
#include "json/write.h"
#include "store/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct db_cmd {
    struct cli *cli;
    bool json;
    struct str data_dir;
    struct database database;
    struct datadir *owned; /* while a SQLite schema is changed */
    struct schema *schema; /* NULL: there is no database yet */
    struct schema_status status;
    struct buf out;
};

struct db_verb {
    const char *name;
    bool changes;         /* unless --dry-run */
    const char *flags[6]; /* allowed; a flag of another verb is refused, as it could cost data */
    bool (*run)(struct db_cmd *c, struct error *err);
};

/* A missing SQLite database is not an error: all migrations are still to be applied. */
static bool open_to_read(struct db_cmd *c, struct error *err)
{
    if (schema_open(&c->database, true, NULL, &c->schema, err))
        return schema_status(c->schema, c->cli->mem, &c->status, err);
    return err->code == ERR_NOT_FOUND &&
           migrate_load("sqlite", NULL, c->cli->mem, &c->status.known, err);
}

static bool open_schema(struct db_cmd *c, bool changes, struct error *err)
{
    struct str url = str_of(cli_flag(c->cli, "--database-url"));
    if (!url.p)
        url = str_of(getenv("DATABASE_URL"));
    if (!config_data_dir(str_of(cli_flag(c->cli, "--data")), c->cli->mem, &c->data_dir, err) ||
        !database_choose(url, c->data_dir, c->cli->mem, &c->database, err))
        return false;
    bool exists;
    if (!c->database.is_postgres && !datadir_check_readable(c->data_dir, &exists, err))
        return false;
    if (!changes)
        return open_to_read(c, err);
    return (c->database.is_postgres || datadir_own(c->data_dir, &c->owned, err)) &&
           schema_open(&c->database, false, NULL, &c->schema, err) &&
           schema_status(c->schema, c->cli->mem, &c->status, err) &&
           schema_status_check(&c->status, err);
}

static const char *backend(const struct db_cmd *c)
{
    return c->database.is_postgres ? "postgresql" : "sqlite";
}

/* status */

static const struct schema_applied *applied_as(const struct db_cmd *c, int number)
{
    for (size_t i = 0; i < c->status.n_applied; i++)
        if (c->status.applied[i].number == number)
            return &c->status.applied[i];
    return NULL;
}

struct shown_migration {
    int number;
    struct str name;
    const struct schema_applied *applied; /* NULL: not yet */
};

/* The i-th migration: first the known ones, then those that a newer program applied; false past the
 * last. */
static bool migration_at(const struct db_cmd *c, size_t i, struct shown_migration *ret)
{
    const struct schema_status *s = &c->status;
    if (i < s->known.n) {
        const struct migration *m = &s->known.list[i];
        *ret = (struct shown_migration){m->number, m->name, applied_as(c, m->number)};
        return true;
    }
    i -= s->known.n;
    for (size_t k = 0; k < s->n_applied; k++) {
        const struct schema_applied *a = &s->applied[k];
        if (a->number <= (int)s->known.n || i-- > 0)
            continue;
        *ret = (struct shown_migration){a->number, a->name, a};
        return true;
    }
    return false;
}

static void add_status_json(struct db_cmd *c)
{
    struct js_writer w;
    struct shown_migration m;
    char time[CLOCK_TEXT];
    js_begin(&w, &c->out);
    js_object(&w);
    js_kv_string(&w, "backend", str_of(backend(c)));
    js_kv_string(&w, "database", c->database.shown);
    js_kv_int(&w, "schema", c->status.number);
    js_kv_int(&w, "known", (int64_t)c->status.known.n);
    js_key(&w, STR("migrations"));
    js_array(&w);
    for (size_t i = 0; migration_at(c, i, &m); i++) {
        if (m.applied)
            clock_format(m.applied->applied_ms, time);
        js_object(&w);
        js_kv_int(&w, "number", m.number);
        js_kv_string(&w, "name", m.name);
        js_kv_bool(&w, "known", i < c->status.known.n);
        js_kv_string(&w, "applied_at", m.applied ? str_of(time) : STR_NONE);
        js_object_end(&w);
    }
    js_array_end(&w);
    js_object_end(&w);
}

static void add_status(struct db_cmd *c)
{
    struct shown_migration m;
    char time[CLOCK_TEXT];
    int waiting = (int)c->status.known.n - c->status.number;
    buf_addf(&c->out, "%s %.*s\n", backend(c), STR_ARG(c->database.shown));
    for (size_t i = 0; migration_at(c, i, &m); i++) {
        if (m.applied)
            clock_format(m.applied->applied_ms, time);
        buf_addf(&c->out, "  %04d  %-16.*s  %s%s\n", m.number, STR_ARG(m.name),
                 m.applied ? "applied " : "not applied", m.applied ? time : "");
    }
    if (waiting > 0)
        buf_addf(&c->out,
                 "%d migration%s to apply: run `holdfast db migrate`, or start `holdfast up`\n",
                 waiting, waiting == 1 ? "" : "s");
    else if (waiting == 0)
        buf_addz(&c->out, "up to date\n");
}

static bool run_status(struct db_cmd *c, struct error *err)
{
    if (c->json)
        add_status_json(c);
    else
        add_status(c);
    return schema_status_check(&c->status, err);
}

/* migrate, rollback */

/* Adds the statement that records the step, so that a step which is run by hand is recorded too. */
static void add_record(struct db_cmd *c, const struct migration *m, bool up)
{
    const char *table = c->database.is_postgres ? "mcp.schema_migrations" : "schema_migrations";
    if (!up)
        buf_addf(&c->out, "DELETE FROM %s WHERE number = %d;\n", table, m->number);
    else if (c->database.is_postgres)
        buf_addf(&c->out, "INSERT INTO %s (number, name) VALUES (%d, '%.*s');\n", table, m->number,
                 STR_ARG(m->name));
    else
        buf_addf(&c->out,
                 "INSERT INTO %s (number, name, applied_at) "
                 "VALUES (%d, '%.*s', strftime('%%s') * 1000);\n",
                 table, m->number, STR_ARG(m->name));
}

static void add_sql(struct db_cmd *c, const struct migration *m, bool up)
{
    struct str sql = up ? m->up : m->down;
    buf_addf(&c->out, "-- %s %04d %.*s\nBEGIN;\n", up ? "apply" : "undo", m->number,
             STR_ARG(m->name));
    if (!up)
        add_record(c, m, up);
    buf_addstr(&c->out, sql);
    if (sql.n && sql.p[sql.n - 1] != '\n')
        buf_addc(&c->out, '\n');
    if (up)
        add_record(c, m, up);
    buf_addz(&c->out, "COMMIT;\n");
}

/* Adds one line for each migration between the two numbers, upwards or downwards; with --dry-run,
 * its SQL. */
static void add_steps(struct db_cmd *c, int from, int to)
{
    bool dry = cli_flag(c->cli, "--dry-run") != NULL, up = to > from;
    for (int i = up ? from : from - 1; up ? i < to : i >= to; i += up ? 1 : -1) {
        const struct migration *m = &c->status.known.list[i];
        if (dry)
            add_sql(c, m, up);
        else if (!c->json)
            buf_addf(&c->out, "%s %04d %.*s\n", up ? "applied" : "undone", m->number,
                     STR_ARG(m->name));
    }
    if (from == to && !c->json)
        fprintf(stderr, "nothing to do: %.*s has schema %d\n", STR_ARG(c->database.shown), to);
    else if (dry)
        fprintf(stderr, "nothing was changed; without --dry-run this runs on %.*s\n",
                STR_ARG(c->database.shown));
}

static void add_result_json(struct db_cmd *c, int from, int to)
{
    struct js_writer w;
    js_begin(&w, &c->out);
    js_object(&w);
    js_kv_string(&w, "backend", str_of(backend(c)));
    js_kv_string(&w, "database", c->database.shown);
    js_kv_int(&w, "from", from);
    js_kv_int(&w, "schema", to);
    js_object_end(&w);
}

static void print_steps(struct db_cmd *c, int to)
{
    add_steps(c, c->status.number, to);
    if (c->json && !cli_flag(c->cli, "--dry-run"))
        add_result_json(c, c->status.number, to);
}

static bool run_migrate(struct db_cmd *c, struct error *err)
{
    if (!schema_status_check(&c->status, err) ||
        (!cli_flag(c->cli, "--dry-run") && !schema_migrate(c->schema, err)))
        return false;
    print_steps(c, (int)c->status.known.n);
    return true;
}

static bool rollback_target(const struct db_cmd *c, int *ret, struct error *err)
{
    struct str text = str_of(cli_flag(c->cli, "--to"));
    uint64_t to = c->status.number > 0 ? (uint64_t)c->status.number - 1 : 0;
    if (text.p && !str_to_u64(text, (uint64_t)c->status.number, &to))
        return error_set(err, ERR_USAGE, "--to takes a number from 0 to %d, the current schema",
                         c->status.number);
    *ret = (int)to;
    return true;
}

static bool run_rollback(struct db_cmd *c, struct error *err)
{
    bool dry = cli_flag(c->cli, "--dry-run") != NULL;
    int to = 0;
    if (!schema_status_check(&c->status, err) || !rollback_target(c, &to, err))
        return false;
    if (!dry && to < c->status.number && !cli_flag(c->cli, "--yes"))
        return error_set(err, ERR_USAGE,
                         "going back from schema %d to %d deletes the data that the older schema "
                         "cannot store%s; make a backup, then repeat this with --yes",
                         c->status.number, to, to == 0 ? ": all sessions and the whole audit" : "");
    if (!dry && to < c->status.number && !schema_rollback(c->schema, to, err))
        return false;
    print_steps(c, to);
    return true;
}

/* compact */

static int64_t file_bytes(const struct db_cmd *c)
{
    struct stat st;
    return stat(c->database.path.p, &st) == 0 ? (int64_t)st.st_size : 0;
}

static bool run_compact(struct db_cmd *c, struct error *err)
{
    int64_t before = file_bytes(c);
    struct js_writer w;
    if (!c->status.number && !c->database.is_postgres)
        return error_set(err, ERR_NOT_FOUND, "there is no database in %.*s yet",
                         STR_ARG(c->data_dir));
    if (!schema_compact(c->schema, err))
        return false;
    if (c->json) {
        js_begin(&w, &c->out);
        js_object(&w);
        js_kv_string(&w, "database", c->database.shown);
        js_kv_int(&w, "bytes_before", before);
        js_kv_int(&w, "bytes", file_bytes(c));
        js_object_end(&w);
    } else {
        buf_addf(&c->out, "%.*s: %.1f MiB, before %.1f MiB\n", STR_ARG(c->database.shown),
                 (double)file_bytes(c) / 1048576, (double)before / 1048576);
    }
    return true;
}

static const struct db_verb verbs[] = {
    {"compact", true, {"--data", "--database-url", "--json"}, run_compact},
    {"migrate", true, {"--dry-run", "--data", "--database-url", "--json"}, run_migrate},
    {"status", false, {"--data", "--database-url", "--json"}, run_status},
    {"rollback",
     true,
     {"--to", "--yes", "--dry-run", "--data", "--database-url", "--json"},
     run_rollback},
};

static int finish(struct db_cmd *c, bool ok, const struct error *err)
{
    int status = c->out.n ? cli_print(c->cli, &c->out) : 0;
    schema_close(c->schema);
    datadir_release(c->owned);
    buf_release(&c->out);
    return ok ? status : cli_refuse(c->cli, err);
}

int cmd_db(struct cli *cli)
{
    struct db_cmd c = {.cli = cli, .json = cli_flag(cli, "--json") != NULL};
    struct error err;
    size_t i = 0;
    while (i < countof(verbs) && (cli->n_args != 1 || strcmp(cli->args[0], verbs[i].name) != 0))
        i++;
    if (i == countof(verbs)) {
        struct cli_nearest near = cli_nearest_to(str_of(cli->n_args ? cli->args[0] : ""));
        for (size_t k = 0; k < countof(verbs); k++)
            cli_nearest_offer(&near, verbs[k].name);
        return cli_unknown_verb(cli, &near, "db needs migrate, status, rollback or compact");
    }
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "db %s takes no %s", verbs[i].name, flag);
    buf_init(&c.out, SIZE_MAX / 4);
    bool ok = open_schema(&c, verbs[i].changes && !cli_flag(cli, "--dry-run"), &err) &&
              verbs[i].run(&c, &err);
    return finish(&c, ok, &err);
}
