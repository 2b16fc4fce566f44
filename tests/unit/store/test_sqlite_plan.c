/* SPDX-License-Identifier: Apache-2.0 */
/* No statement goes through all sessions: what SQLite makes of each text is looked at, so that a
 * new index cannot lead an old statement astray. */
#include "store_files.h"

#include "base/arena.h"
#include "base/clock.h"
#include "store/sqlite_impl.h"

static void assert_plan(sqlite3 *db, const char *text)
{
    char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", text);
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(st, 3);
        /* Every live session has one of two statuses: alone they find nothing. */
        if (strncmp(step, "SCAN edge_mcp_sessions", 22) == 0 || strstr(step, "used (status=?)"))
            fail_msg("%s\n%s", step, text);
    }
    sqlite3_finalize(st);
    sqlite3_free(sql);
}

TEST(test_sqlite__no_statement_goes_through_all_sessions)
{
    struct files f;
    sqlite3 *db = NULL;
    files_init(&f);
    store_close(files_open(&f, false));
    assert_int_equal(sqlite3_open(f.db, &db), SQLITE_OK);
    for (unsigned i = 0; i < SQ_ALL; i++) {
        char *text = sq_statement_text(i);
        assert_true(text || i >= SQ_COUNT); /* a verb has few of its possible variants */
        if (text)
            assert_plan(db, text);
        free(text);
    }
    sqlite3_close(db);
    files_release(&f);
}

static void create(struct store *s, int from, int upto)
{
    struct principal who = {STR("t"), STR("o"), ROLE_MEMBER};
    for (int i = from; i < upto; i++) {
        char id[16];
        struct error err;
        snprintf(id, sizeof(id), "id-%06d", i);
        struct session_row row = {.id = str_of(id),
                                  .handle = str_of(id),
                                  .edge_mcp_id = STR("n"),
                                  .counted = i % 2,
                                  .origin = i % 3 ? ORIGIN_TRANSPORT : ORIGIN_REST,
                                  .created_ms = 60000,
                                  .last_activity_ms = clock_life_ms(),
                                  .expires_ms = INT64_MAX,
                                  .status = SESSION_ACTIVE};
        struct store_op op = {OP_SESSION_CREATE, &who, {.session = &row}, .max_counted = -1};
        assert_true(store_write(s, &op, 1, &err));
    }
}

/* What the totals, the counts and the tenants of /metrics cost. */
static int64_t steps(struct store *s)
{
    struct principal wide = {STR("t"), STR("o"), ROLE_ADMIN, .tenant_wide = true};
    struct principal own = {STR("t"), STR("o"), ROLE_MEMBER};
    struct arena *mem = arena_new(1 << 20);
    struct session_totals t;
    struct store_counts c;
    struct tenant_row *tenants;
    struct error err;
    size_t n;
    int64_t total = 0;
    assert_true(store_session_totals(s, &wide, clock_life_ms(), 0, &t, &err));
    assert_true(store_session_totals(s, &own, clock_life_ms(), 0, &t, &err));
    assert_true(store_counts(s, &c, &err));
    assert_true(store_tenants_page(s, STR_NONE, 10, mem, &tenants, &n, &err));
    for (sqlite3_stmt *st = NULL; (st = sqlite3_next_stmt(sq_of(s)->db, st));)
        total += sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 1);
    arena_free(mem);
    return total;
}

TEST(test_sqlite__numbers_of_sessions_cost_the_same_however_many_there_are)
{
    struct files f;
    files_init(&f);
    clock_set_fake(INT64_C(1800000000000), 1000);
    struct store *writer = files_open(&f, false);
    create(writer, 0, 10);
    struct store *s = files_open(&f, true);
    steps(s); /* prepares them */
    int64_t few = steps(s);
    create(writer, 10, 500);
    int64_t many = steps(s);
    assert_true(few > 0);
    assert_int_equal(many, few);
    store_close(s);
    store_close(writer);
    clock_set_real();
    files_release(&f);
}

static void append(struct store *s, int64_t id, int64_t exec)
{
    struct error err;
    struct event_row e = {.id = id,
                          .tenant = STR("t"),
                          .seq = id,
                          .kind = exec == id ? EVENT_INTENT : EVENT_OUTCOME,
                          .exec = exec,
                          .outcome = exec == id ? STR_NONE : STR("ok"),
                          .body_len = -1};
    struct store_op op = {OP_EVENT_APPEND, NULL, {.event = &e}};
    memcpy(e.mac, &id, sizeof(id));
    assert_true(store_write(s, &op, 1, &err));
}

static void fold(struct store *s)
{
    struct error err;
    for (bool left = true; left;)
        assert_true(store_fold(s, 1000, &left, &err));
}

static int64_t steps_to_open(struct store *s)
{
    struct event_filter filter = {.kind = -1, .open = true, .newest_first = true};
    struct arena *mem = arena_new(1 << 20);
    struct event_row *rows;
    struct error err;
    size_t n;
    int64_t total = 0;
    assert_true(store_events_page(s, &filter, 200, mem, &rows, &n, &err));
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].id, 1);
    for (sqlite3_stmt *st = NULL; (st = sqlite3_next_stmt(sq_of(s)->db, st));)
        total += sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 1);
    arena_free(mem);
    return total;
}

TEST(test_sqlite__open_executions_cost_the_same_however_many_events_there_are)
{
    struct files f;
    files_init(&f);
    struct store *writer = files_open(&f, false);
    append(writer, 1, 1);
    for (int64_t id = 2; id < 20; id += 2) {
        append(writer, id, id);
        append(writer, id + 1, id);
    }
    fold(writer);
    struct store *s = files_open(&f, true);
    steps_to_open(s); /* prepares them */
    int64_t few = steps_to_open(s);
    for (int64_t id = 20; id < 1000; id += 2) {
        append(writer, id, id);
        append(writer, id + 1, id);
    }
    fold(writer);
    assert_true(few > 0);
    assert_int_equal(steps_to_open(s), few);
    store_close(s);
    store_close(writer);
    files_release(&f);
}
