/* SPDX-License-Identifier: Apache-2.0 */
/* Migrations apply once, whole or not at all, and a schema from the future is left alone. */
#include "store_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/sqlite_impl.h"

static const char tables[] = "SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'";
/* What a late migration brings. */
#define LATE 14
static const char late_table[] = "SELECT count(*) FROM sqlite_master "
                                 "WHERE name = 'secrets'";
static const char versions[] = "SELECT count(*) FROM schema_migrations";

/* How many migrations this program has. */
static int64_t known_count(void)
{
    struct migrations known;
    struct error err;
    struct arena *mem = arena_new(1 << 20);
    assert_true(migrate_load("sqlite", NULL, mem, &known, &err));
    arena_free(mem);
    return (int64_t)known.n;
}

TEST(test_migrate__a_second_open_changes_nothing)
{
    struct files f;
    files_init(&f);
    store_close(files_open(&f, false));
    int64_t before = files_ask(&f, tables);
    assert_true(before > 10);
    store_close(files_open(&f, false));
    assert_int_equal(files_ask(&f, tables), before);
    assert_int_equal(files_ask(&f, versions), known_count());
    assert_int_equal(files_ask(&f, "SELECT count(*) FROM tenants WHERE id = 'default'"), 1);
    files_release(&f);
}

TEST(test_migrate__a_newer_schema_is_refused_and_left_alone)
{
    struct files f;
    struct store *s = NULL;
    struct error err;
    files_init(&f);
    store_close(files_open(&f, false));
    files_exec(&f, "INSERT INTO schema_migrations VALUES (99, 'future', 0)");
    for (int read_only = 0; read_only < 2; read_only++) {
        struct store_config config = {.path = str_of(f.db), .read_only = read_only};
        assert_false(store_open_sqlite(&config, &s, &err));
        assert_int_equal(err.code, ERR_CONFIG);
        assert_non_null(strstr(err.text, "newer"));
    }
    assert_int_equal(files_ask(&f, versions), known_count() + 1);
    files_release(&f);
}

TEST(test_migrate__readers_do_not_migrate)
{
    struct files f;
    struct store *s = NULL;
    struct error err;
    files_init(&f);
    struct store_config config = {.path = str_of(f.db), .read_only = true};
    assert_false(store_open_sqlite(&config, &s, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    files_exec(&f, "CREATE TABLE other (x)");
    assert_false(store_open_sqlite(&config, &s, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_int_equal(files_ask(&f, tables), 1);
    files_release(&f);
}

/* A driver that dies at a chosen step, counted from 1 over the whole migration. */
struct deadly {
    struct migrate_driver inner;
    int steps_left;
};

static void step(struct deadly *d)
{
    if (--d->steps_left == 0)
        raise(SIGKILL);
}

static bool deadly_begin(void *arg, struct error *err)
{
    struct deadly *d = arg;
    step(d);
    return d->inner.begin(d->inner.arg, err);
}

static bool deadly_version(void *arg, int *ret, struct error *err)
{
    struct deadly *d = arg;
    step(d);
    return d->inner.version(d->inner.arg, ret, err);
}

static bool deadly_exec(void *arg, struct str sql, struct error *err)
{
    struct deadly *d = arg;
    step(d);
    return d->inner.exec(d->inner.arg, sql, err);
}

static bool deadly_record(void *arg, const struct migration *m, bool applied, struct error *err)
{
    struct deadly *d = arg;
    step(d);
    return d->inner.record(d->inner.arg, m, applied, err);
}

static bool deadly_commit(void *arg, struct error *err)
{
    struct deadly *d = arg;
    step(d);
    return d->inner.commit(d->inner.arg, err);
}

static void deadly_rollback(void *arg)
{
    struct deadly *d = arg;
    d->inner.rollback(d->inner.arg);
}

/* In a child that dies before step n; exits with 0 when there were fewer steps. */
static void migrate_and_die(const struct files *f, int n)
{
    sqlite3 *db = NULL;
    struct error err;
    struct migrations known;
    struct arena *mem = arena_new(1 << 20);
    struct deadly d = {.steps_left = n};
    struct migrate_driver driver = {.arg = &d,
                                    .begin = deadly_begin,
                                    .version = deadly_version,
                                    .exec = deadly_exec,
                                    .record = deadly_record,
                                    .commit = deadly_commit,
                                    .rollback = deadly_rollback};
    bool ok =
        sqlite3_open(f->db, &db) == SQLITE_OK && migrate_load("sqlite", NULL, mem, &known, &err);
    d.inner = sq_migrate_driver(&db);
    _exit(ok && migrate_up(&driver, &known, &err) ? 0 : 1);
}

TEST(test_migrate__death_at_any_step_leaves_all_or_nothing)
{
    bool finished = false;
    for (int n = 1; !finished; n++) {
        struct files f;
        int status = 0;
        files_init(&f);
        pid_t child = fork();
        if (child == 0)
            migrate_and_die(&f, n);
        assert_int_equal(waitpid(child, &status, 0), child);
        finished = WIFEXITED(status);
        assert_true(finished ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
        int64_t n_tables = files_ask(&f, tables);
        if (n_tables) { /* whole migrations only: each is there with its record */
            int64_t applied = files_ask(&f, versions);
            assert_in_range(applied, 1, known_count());
            assert_int_equal(files_ask(&f, late_table), applied >= LATE);
        }
        store_close(files_open(&f, false));
        assert_int_equal(files_ask(&f, versions), known_count());
        assert_true(n < 10 * (known_count() + 1));
        files_release(&f);
    }
}

TEST(test_migrate__processes_that_start_at_once_migrate_once)
{
    struct files f;
    pid_t children[4];
    files_init(&f);
    for (size_t i = 0; i < countof(children); i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct store *s = NULL;
            struct error err;
            struct store_config config = {.path = str_of(f.db)};
            _exit(store_open_sqlite(&config, &s, &err) ? 0 : 1);
        }
    }
    for (size_t i = 0; i < countof(children); i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(files_ask(&f, versions), known_count());
    files_release(&f);
}

TEST(test_migrate_down__takes_everything_away_and_up_brings_it_back)
{
    struct files f;
    struct error err;
    struct migrations known;
    sqlite3 *db = NULL;
    struct arena *mem = arena_new(1 << 20);
    files_init(&f);
    store_close(files_open(&f, false));
    int64_t before = files_ask(&f, tables);
    assert_int_equal(sqlite3_open(f.db, &db), SQLITE_OK);
    struct migrate_driver driver = sq_migrate_driver(&db);
    assert_true(migrate_load("sqlite", NULL, mem, &known, &err));
    assert_true(migrate_down(&driver, &known, 0, &err));
    assert_int_equal(files_ask(&f, tables), 0);
    assert_true(migrate_up(&driver, &known, &err));
    sqlite3_close(db);
    assert_int_equal(files_ask(&f, tables), before);
    arena_free(mem);
    files_release(&f);
}

static void put(const struct files *f, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/sqlite", f->dir);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/sqlite/%s", f->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void take(const struct files *f, const char *name)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/sqlite/%s", f->dir, name);
    unlink(path);
}

static bool load(const struct files *f, struct error *err)
{
    struct migrations known;
    struct arena *mem = arena_new(1 << 20);
    bool ok = migrate_load("sqlite", f->dir, mem, &known, err);
    arena_free(mem);
    return ok;
}

TEST(test_migrate_load__refuses_gaps_and_halves)
{
    char path[160];
    struct files f;
    struct error err;
    files_init(&f);
    assert_false(load(&f, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    put(&f, "0001_a.up.sql", "SELECT 1;");
    assert_false(load(&f, &err));
    put(&f, "0001_a.down.sql", "SELECT 1;");
    put(&f, "README", "not a migration");
    assert_true(load(&f, &err));
    put(&f, "0003_c.up.sql", "SELECT 1;");
    put(&f, "0003_c.down.sql", "SELECT 1;");
    assert_false(load(&f, &err));
    take(&f, "0003_c.up.sql");
    take(&f, "0003_c.down.sql");
    put(&f, "12_c.up.sql", "SELECT 1;");
    assert_false(load(&f, &err));
    take(&f, "12_c.up.sql");
    take(&f, "0001_a.up.sql");
    take(&f, "0001_a.down.sql");
    take(&f, "README");
    snprintf(path, sizeof(path), "%s/sqlite", f.dir);
    rmdir(path);
    files_release(&f);
}

TEST(test_migrate__a_broken_migration_leaves_the_one_before)
{
    char path[160];
    struct files f;
    struct error err;
    struct migrations known;
    sqlite3 *db = NULL;
    struct arena *mem = arena_new(1 << 20);
    files_init(&f);
    put(&f, "0001_a.up.sql",
        "CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT, applied_at "
        "INTEGER);");
    put(&f, "0001_a.down.sql", "DROP TABLE schema_migrations;");
    put(&f, "0002_b.up.sql", "CREATE TABLE half (x); CREATE TABLE half (x);");
    put(&f, "0002_b.down.sql", "DROP TABLE half;");
    assert_int_equal(sqlite3_open(f.db, &db), SQLITE_OK);
    struct migrate_driver driver = sq_migrate_driver(&db);
    assert_true(migrate_load("sqlite", f.dir, mem, &known, &err));
    assert_false(migrate_up(&driver, &known, &err));
    assert_non_null(strstr(err.text, "migration 0002"));
    sqlite3_close(db);
    assert_int_equal(files_ask(&f, tables), 1);
    assert_int_equal(files_ask(&f, versions), 1);
    take(&f, "0001_a.up.sql");
    take(&f, "0001_a.down.sql");
    take(&f, "0002_b.up.sql");
    take(&f, "0002_b.down.sql");
    snprintf(path, sizeof(path), "%s/sqlite", f.dir);
    rmdir(path);
    arena_free(mem);
    files_release(&f);
}
