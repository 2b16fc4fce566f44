/* SPDX-License-Identifier: Apache-2.0 */
/* The part of schema handling that all backends share: loading the known migrations and running
 * them. */
#include "store/schema.h"

bool schema_open(const struct database *d, bool read_only, const char *sql_dir, struct schema **ret,
                 struct error *err)
{
    struct store_config config = {.path = d->path, .read_only = read_only, .sql_dir = sql_dir};
    struct schema *s;
    if (!(d->is_postgres ? schema_open_postgres(&config, &s, err)
                         : schema_open_sqlite(&config, &s, err)))
        return false;
    s->sql_dir = sql_dir;
    *ret = s;
    return true;
}

void schema_close(struct schema *s)
{
    if (s)
        s->ops->close(s);
}

bool schema_status(struct schema *s, struct arena *mem, struct schema_status *ret,
                   struct error *err)
{
    struct schema_status status = {0};
    if (!migrate_load(s->ops->dialect, s->sql_dir, mem, &status.known, err) ||
        !s->ops->applied(s, mem, &status.applied, &status.n_applied, err))
        return false;
    if (status.n_applied > 0)
        status.number = status.applied[status.n_applied - 1].number;
    *ret = status;
    return true;
}

bool schema_status_check(const struct schema_status *status, struct error *err)
{
    return status->number <= (int)status->known.n ||
           migrate_check(&status->known, status->number, err);
}

/* number < 0: migrate up. */
static bool run(struct schema *s, int number, struct error *err)
{
    struct arena *mem = arena_new(16 << 20);
    struct migrations known;
    struct migrate_driver driver = s->ops->driver(s);
    bool ok = migrate_load(s->ops->dialect, s->sql_dir, mem, &known, err) &&
              (number < 0 ? migrate_up(&driver, &known, err)
                          : migrate_down(&driver, &known, number, err));
    arena_free(mem);
    return ok;
}

bool schema_migrate(struct schema *s, struct error *err)
{
    return run(s, -1, err) && (!s->ops->migrated || s->ops->migrated(s, err));
}

static bool refuse_used(struct schema *s, struct error *err)
{
    struct arena *mem = arena_new(1 << 20);
    struct str users = STR_NONE;
    bool ok = !s->ops->users || s->ops->users(s, mem, &users, err);
    if (ok && users.p)
        ok = error_set(err, ERR_CONFLICT,
                       "the database is in use by %.*s; stop every node that uses it, then try "
                       "again (a node that was killed counts for up to 15 seconds)",
                       (int)(users.n < 200 ? users.n : 200), users.p);
    arena_free(mem);
    return ok;
}

bool schema_rollback(struct schema *s, int number, struct error *err)
{
    return refuse_used(s, err) && run(s, number < 0 ? 0 : number, err);
}

bool schema_compact(struct schema *s, struct error *err)
{
    if (!s->ops->compact)
        return error_set(
            err, ERR_USAGE,
            "db compact is for SQLite; PostgreSQL returns space to the disk with VACUUM "
            "FULL mcp.events");
    return s->ops->compact(s, err);
}
