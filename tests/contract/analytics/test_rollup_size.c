/* SPDX-License-Identifier: Apache-2.0 */
/* The room that a year of hourly rollups takes, from some days of generated calls. */
#include "../store_contract.h"

#include <math.h>

#include "analytics/store/family.h"
#include "analytics/store/impl.h"
#include "store/postgres_impl.h"
#include "store/sqlite_impl.h"

#define TOOLS 100
#define HOURS 48
#define YEAR_HOURS (365 * 24)
#define MOST (200.0 * 1024 * 1024)

/* How busy a tool is. */
struct traffic {
    const char *name;
    unsigned calls, sessions; /* of a tool in an hour */
    double spread;            /* of the logarithm of durations */
    unsigned failed;          /* every n-th call */
};

static unsigned pick(uint64_t *state, unsigned n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33) % n;
}

/* About normal, around 0 with a deviation of 1. */
static double normal(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)pick(state, 10000) / 10000;
    return sum - 6;
}

static void make_labels(struct counted_labels *labels, struct arena *mem)
{
    for (int i = 0; i < TOOLS; i++)
        labels[i] = (struct counted_labels){
            .tenant = STR("default"),
            .server = arena_printf(mem, "server-%d", i / 20),
            .tool = arena_printf(mem, "tool_number_%d", i),
            .client = STR("Editor"),
            .owner = STR("user:01932c5e-7d1a-7b7e-9a52-3f1f6a0c2b41"),
            .era = STR("2026-07-28>2025-11-25"),
            .carrier = STR("transport"),
        };
}

static size_t make_hour(const struct traffic *t, const struct counted_labels *labels, int hour,
                        uint64_t *state, struct arena *mem, struct counted_call *calls)
{
    size_t n = 0;
    for (unsigned tool = 0; tool < TOOLS; tool++)
        for (unsigned i = 0; i < t->calls; i++)
            calls[n++] = (struct counted_call){
                .labels = &labels[tool],
                .session_id = arena_printf(mem, "session %d of %d", pick(state, t->sessions), hour),
                .at_ms = NOW + hour * HOUR + pick(state, 3600000),
                .duration_us = (int64_t)exp(10 + t->spread * normal(state) + tool % 7),
                .request_bytes = pick(state, 2000),
                .response_bytes = pick(state, 20000),
                .outcome = i % t->failed == 0 ? COUNTED_TOOL_ERROR : COUNTED_OK,
            };
    return n;
}

static void count_hours(const struct traffic *t,
                        bool (*count)(struct store *s, const struct counted_call *calls, size_t n),
                        struct store *store)
{
    struct counted_labels labels[TOOLS];
    struct arena *names = arena_new(1 << 20);
    struct counted_call *calls = xcalloc(TOOLS * t->calls, sizeof(*calls));
    uint64_t state = 11;
    make_labels(labels, names);
    for (int hour = 0; hour < HOURS; hour++) {
        struct arena *mem = arena_new(64 << 20);
        assert_true(count(store, calls, make_hour(t, labels, hour, &state, mem, calls)));
        arena_free(mem);
    }
    arena_free(names);
    free(calls);
}

static bool count_sqlite(struct store *s, const struct counted_call *calls, size_t n)
{
    struct error err;
    return sq_begin(sq_of(s), &err) && analytics_sqlite.count(sq_of(s), calls, n, &err) &&
           sq_commit(sq_of(s), &err);
}

static bool count_postgres(struct store *s, const struct counted_call *calls, size_t n)
{
    struct arena *mem = arena_new(64 << 20);
    struct error err;
    bool ok = pg_ready(pg_of(s), &err) && pg_exec_text(pg_of(s), "BEGIN", "", NULL, &err) &&
              analytics_postgres.count(pg_of(s), 1, calls, n, mem, &err) &&
              pg_exec_text(pg_of(s), "COMMIT", "", NULL, &err);
    arena_free(mem);
    return ok;
}

static int64_t sqlite_number(struct store *s, const char *sql)
{
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_prepare_v2(sq_of(s)->db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

/* Only the hourly rows are left, packed as after a while. */
static double sqlite_bytes(struct store *s)
{
    assert_int_equal(sqlite3_exec(sq_of(s)->db,
                                  "DELETE FROM analytics_rollups WHERE step <> 1; VACUUM", NULL,
                                  NULL, NULL),
                     SQLITE_OK);
    int64_t with =
        sqlite_number(s, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
    assert_int_equal(
        sqlite3_exec(sq_of(s)->db, "DELETE FROM analytics_rollups; VACUUM", NULL, NULL, NULL),
        SQLITE_OK);
    return (
        double)(with -
                sqlite_number(
                    s, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"));
}

/* VACUUM FULL leaves rows that a transaction, such as that of autovacuum, may still see. */
static void wait_for_others(struct store *s)
{
    struct error err;
    int64_t others = 1;
    for (int tries = 0; others > 0; tries++) {
        assert_true(tries < 3000);
        assert_true(pg_exec_text(pg_of(s),
                                 "SELECT count(*) FROM pg_sleep(0.01), pg_stat_activity "
                                 "WHERE datname = current_database() AND pid <> pg_backend_pid() "
                                 "AND backend_xmin IS NOT NULL",
                                 "", &others, &err));
    }
}

static double postgres_bytes(struct store *s)
{
    struct error err;
    int64_t bytes = 0;
    assert_true(pg_exec_text(pg_of(s), "DELETE FROM mcp.analytics_rollups WHERE step <> 1", "",
                             NULL, &err));
    wait_for_others(s);
    assert_true(pg_exec_text(pg_of(s), "VACUUM FULL mcp.analytics_rollups", "", NULL, &err));
    assert_true(pg_exec_text(pg_of(s), "SELECT pg_total_relation_size('mcp.analytics_rollups')", "",
                             &bytes, &err));
    return (double)bytes;
}

/* As the hours of past days are. */
static void pack_all(struct store *s)
{
    struct error err;
    for (bool more = true; more;)
        assert_true(store_rollups_pack(s, STR("default"), INT32_MAX / 288 * 288, 20, &more, &err));
}

static void report(const struct traffic *t, const char *store, double bytes)
{
    double year = bytes / HOURS * YEAR_HOURS;
    print_message("           %s, %s: %.0f bytes a row, %.0f MiB a year of %d tools\n", store,
                  t->name, bytes / (TOOLS * HOURS), year / 1024 / 1024, TOOLS);
    assert_true(year < MOST);
}

static const struct traffic all[] = {
    {"a call every 12 minutes in 2 sessions", 5, 2, 0.5, 40},
    {"20 calls an hour in 4 sessions", 20, 4, 0.8, 30},
    {"100 calls an hour in 15 sessions", 100, 15, 0.6, 1000},
    {"200 calls an hour in 60 sessions", 200, 60, 0.5, 1000},
};

TEST(test_rollup_size__a_year_of_hours_for_100_tools_stays_under_200_mib_in_sqlite)
{
    store_family_add(&analytics_store);
    for (size_t i = 0; i < countof(all); i++) {
        char dir[] = "/tmp/holdfast-store-XXXXXX";
        assert_non_null(mkdtemp(dir));
        struct store *s = open_sqlite(dir);
        count_hours(&all[i], count_sqlite, s);
        pack_all(s);
        report(&all[i], "SQLite", sqlite_bytes(s));
        store_close(s);
        remove_dir(dir);
    }
}

TEST(test_rollup_size__a_year_of_hours_for_100_tools_stays_under_200_mib_in_postgres)
{
    store_family_add(&analytics_store);
    for (size_t i = 0; i < countof(all); i++) {
        struct store *s = open_postgres(NULL);
        if (!s)
            skip_because("no PostgreSQL to start");
        count_hours(&all[i], count_postgres, s);
        pack_all(s);
        report(&all[i], "PostgreSQL", postgres_bytes(s));
        store_close(s);
        pg_database_drop(contract_database(false));
    }
}
