/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the migration files and applies each in one transaction.  Files are named NNNN_name.up.sql
 * and NNNN_name.down.sql.  Numbers start at 1 and have no gaps.  migrate_load() checks this, so
 * other functions may index by number. */
#include "store/migrate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/packed.h"

#define MAX_MIGRATIONS 200
#define MAX_SQL_BYTES (1 << 20)

/* Adds one file to the list; ignores files that are not migrations. */
static bool add_file(struct migrations *ms, struct str file, struct str sql, struct arena *mem,
                     struct error *err)
{
    uint64_t number = 0;
    struct str rest = file;
    struct str digits = str_split(&rest, '_');
    struct str name = rest.p ? str_split(&rest, '.') : STR_NONE;
    bool up = rest.p && str_eq(rest, STR("up.sql"));
    bool down = rest.p && str_eq(rest, STR("down.sql"));
    if (!up && !down)
        return true;
    if (digits.n != 4 || !str_to_u64(digits, MAX_MIGRATIONS, &number) || number == 0)
        return error_set(err, ERR_CONFIG,
                         "The migration file %.*s has no number from 0001 to %04d; rename it.",
                         STR_ARG(file), MAX_MIGRATIONS);
    struct migration *m = &ms->list[number - 1];
    m->number = (int)number;
    m->name = arena_dup(mem, name);
    *(up ? &m->up : &m->down) = sql;
    if (number > ms->n)
        ms->n = number;
    return true;
}

static bool load_packed(const char *dialect, struct migrations *ms, struct arena *mem,
                        struct error *err)
{
    size_t n = strlen(dialect);
    for (const struct packed_file *f = packed_sql; f->path; f++) {
        if (strncmp(f->path, dialect, n) != 0 || f->path[n] != '/')
            continue;
        if (!add_file(ms, str_of(f->path + n + 1), str_n((const char *)f->data, f->n), mem, err))
            return false;
    }
    return true;
}

static bool read_sql(int dir, const char *file, struct arena *mem, struct str *ret,
                     struct error *err)
{
    struct stat st;
    bool ok = false;
    int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        error_sys(err, ERR_CONFIG, errno, "The migration file %s cannot be read", file);
        goto out;
    }
    if (st.st_size < 0 || st.st_size > MAX_SQL_BYTES) {
        error_set(err, ERR_CONFIG, "The migration file %s is larger than 1 MiB; split it.", file);
        goto out;
    }
    char *text = arena_zalloc(mem, (size_t)st.st_size + 1);
    if (read(fd, text, (size_t)st.st_size) != st.st_size) {
        error_sys(err, ERR_CONFIG, errno, "The migration file %s cannot be read whole", file);
        goto out;
    }
    *ret = str_n(text, (size_t)st.st_size);
    ok = true;
out:
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool load_dir(const char *dialect, const char *sql_dir, struct migrations *ms,
                     struct arena *mem, struct error *err)
{
    struct str path = arena_printf(mem, "%s/%s", sql_dir, dialect);
    DIR *dir = opendir(path.p);
    if (!dir)
        return error_sys(err, ERR_CONFIG, errno, "The migrations in %s cannot be read", path.p);
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(dir));) {
        struct str sql = STR_NONE;
        if (e->d_name[0] == '.')
            continue;
        ok = read_sql(dirfd(dir), e->d_name, mem, &sql, err) &&
             add_file(ms, str_of(e->d_name), sql, mem, err);
    }
    closedir(dir);
    return ok;
}

bool migrate_load(const char *dialect, const char *sql_dir, struct arena *mem,
                  struct migrations *ret, struct error *err)
{
    struct migrations ms = {.list = arena_zalloc(mem, MAX_MIGRATIONS * sizeof(struct migration))};
    if (!(sql_dir ? load_dir(dialect, sql_dir, &ms, mem, err)
                  : load_packed(dialect, &ms, mem, err)))
        return false;
    for (size_t i = 0; i < ms.n; i++)
        if (!ms.list[i].up.p || !ms.list[i].down.p)
            return error_set(err, ERR_CONFIG,
                             "Migration %04zu for %s lacks its up or down file; restore it.", i + 1,
                             dialect);
    if (ms.n == 0)
        return error_set(err, ERR_CONFIG,
                         "There are no migrations for %s; the build is incomplete.", dialect);
    *ret = ms;
    return true;
}

static bool refuse_newer(const struct migrations *known, int number, struct error *err)
{
    return error_set(
        err, ERR_CONFIG,
        "The database has schema %d, newer than the %zu this program knows; use the newer "
        "holdfast or another data directory.",
        number, known->n);
}

bool migrate_check(const struct migrations *known, int number, struct error *err)
{
    if (number > (int)known->n)
        return refuse_newer(known, number, err);
    if (number < (int)known->n)
        return error_set(err, ERR_CONFIG,
                         "The database has schema %d, older than the %zu this program needs; run "
                         "`holdfast up` or `holdfast db migrate` once.",
                         number, known->n);
    return true;
}

/* Inside the transaction: applies the next migration, if any. */
static bool step_up(const struct migrate_driver *d, const struct migrations *known, bool *ret_more,
                    struct error *err)
{
    int at = 0;
    if (!d->version(d->arg, &at, err))
        return false;
    if (at > (int)known->n)
        return refuse_newer(known, at, err);
    bool more = at < (int)known->n;
    if (more) {
        const struct migration *m = &known->list[at];
        if (!d->exec(d->arg, m->up, err) || !d->record(d->arg, m, true, err))
            return error_wrap(err, "migration %04d", m->number);
    }
    *ret_more = more;
    return true;
}

static bool step_down(const struct migrate_driver *d, const struct migrations *known, int number,
                      bool *ret_more, struct error *err)
{
    int at = 0;
    if (!d->version(d->arg, &at, err))
        return false;
    if (at > (int)known->n)
        return refuse_newer(known, at, err);
    bool more = at > number;
    if (more) {
        const struct migration *m = &known->list[at - 1];
        /* Delete the record first: the last step down drops the table of records. */
        if (!d->record(d->arg, m, false, err) || !d->exec(d->arg, m->down, err))
            return error_wrap(err, "undoing migration %04d", m->number);
    }
    *ret_more = more;
    return true;
}

/* number < 0: up to the newest known. */
static bool run(const struct migrate_driver *d, const struct migrations *known, int number,
                struct error *err)
{
    for (bool more = true; more;) {
        if (!d->begin(d->arg, err))
            return false;
        bool ok =
            number < 0 ? step_up(d, known, &more, err) : step_down(d, known, number, &more, err);
        if (!ok || !d->commit(d->arg, err)) {
            d->rollback(d->arg);
            return false;
        }
    }
    return true;
}

bool migrate_up(const struct migrate_driver *d, const struct migrations *known, struct error *err)
{
    return run(d, known, -1, err);
}

bool migrate_down(const struct migrate_driver *d, const struct migrations *known, int number,
                  struct error *err)
{
    return run(d, known, number < 0 ? 0 : number, err);
}
