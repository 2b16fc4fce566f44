/* SPDX-License-Identifier: Apache-2.0 */
/* What is PostgreSQL's own: opening, schemas, lost connections, and nodes that share a database. */
#include "test.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fault.h"
#include "store/migrate.h"
#include "store/postgres_impl.h"

#include "pg_cluster.h"

static const struct principal alice = {STR("acme"), STR("user:alice"), ROLE_MEMBER};

/* A database of its own for every test; dropped with the cluster. */
static void make_database(char ret_url[PG_URL_MAX])
{
    static int number;
    char name[32];
    if (!pg_cluster_url())
        skip_because("no PostgreSQL to start");
    snprintf(name, sizeof(name), "unit_%d_%d", (int)getpid(), number++);
    pg_database_make(name);
    pg_database_url(name, ret_url);
}

static struct store *open_at(const char *url, bool read_only)
{
    struct store *s = NULL;
    struct error err;
    struct store_config config = {.path = str_of(url), .read_only = read_only};
    if (!store_open_postgres(&config, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static enum verdict create(struct store *s, struct session_row *row, int64_t max)
{
    struct error err;
    struct store_op op = {OP_SESSION_CREATE, &alice, {.session = row}, .max_counted = max};
    if (!store_write(s, &op, 1, &err))
        fail_msg("%s", err.text);
    return op.verdict;
}

static struct session_row session_row(const char *id, const char *handle)
{
    return (struct session_row){.id = str_of(id),
                                .handle = str_of(handle),
                                .edge_mcp_id = STR("node-1"),
                                .counted = true,
                                .created_ms = clock_wall_ms(),
                                .last_activity_ms = clock_wall_ms()};
}
#define ID "00000000-0000-7000-8000-00000000000"

TEST(test_postgres_open__refuses_what_is_no_url_without_showing_it)
{
    struct store *s = NULL;
    struct error err;
    struct store_config config = {.path = STR("postgresql://bob:s3cret@[::1/x")};
    assert_false(store_open_postgres(&config, &s, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_null(strstr(err.text, "s3cret"));
    config.path = STR("postgresql://bob:s3cret@/x?host=/nonexistent");
    assert_false(store_open_postgres(&config, &s, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_null(strstr(err.text, "s3cret"));
    assert_non_null(strstr(err.text, "/nonexistent"));
    assert_null(s);
}

TEST(test_postgres_create__repeated_after_a_lost_commit_is_ok)
{
    char url[PG_URL_MAX];
    make_database(url);
    struct store *s = open_at(url, false);
    struct session_row row = session_row(ID "1", "ses_1"), other = row;
    assert_int_equal(create(s, &row, 1), VERDICT_OK);
    assert_int_equal(create(s, &row, 1), VERDICT_OK);
    other.handle = STR("ses_2");
    assert_int_equal(create(s, &other, -1), VERDICT_DUPLICATE);
    other.id = STR(ID "2");
    assert_int_equal(create(s, &other, 1), VERDICT_LIMIT);
    store_close(s);
}

TEST(test_postgres_read_only__cannot_write)
{
    char url[PG_URL_MAX];
    struct session_row *row = NULL;
    struct error err;
    make_database(url);
    struct store *s = open_at(url, true);
    struct arena *mem = arena_new(1 << 20);
    assert_false(store_write(s, NULL, 0, &err));
    assert_true(store_session_by_id(s, &alice, STR("no id"), mem, &row, &err));
    assert_null(row);
    arena_free(mem);
    store_close(s);
}

static struct pg_store *impl(struct store *s)
{
    return pg_of(s);
}

/* The first column of the first row as text; "" for NULL. */
static void ask(const char *url, const char *sql, char ret[256])
{
    PGconn *conn = PQconnectdb(url);
    PGresult *res = PQexec(conn, sql);
    if (PQresultStatus(res) != PGRES_TUPLES_OK && PQresultStatus(res) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    snprintf(ret, 256, "%s", PQntuples(res) ? PQgetvalue(res, 0, 0) : "");
    PQclear(res);
    PQfinish(conn);
}

static void expect(const char *url, const char *sql, const char *answer)
{
    char got[256];
    ask(url, sql, got);
    assert_string_equal(got, answer);
}

TEST(test_postgres_schema__goes_down_to_nothing_and_up_again_and_each_step_may_be_repeated)
{
    char url[PG_URL_MAX];
    struct error err;
    struct migrations known;
    make_database(url);
    struct arena *mem = arena_new(1 << 20);
    struct store *s = open_at(url, false);
    struct migrate_driver driver = pg_migrate_driver(impl(s));
    if (!migrate_load("postgres", NULL, mem, &known, &err) ||
        !migrate_down(&driver, &known, 0, &err))
        fail_msg("%s", err.text);
    expect(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'mcp'", "0");
    if (!migrate_up(&driver, &known, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < known.n; i++)
        if (!driver.begin(driver.arg, &err) || !driver.exec(driver.arg, known.list[i].up, &err) ||
            !driver.commit(driver.arg, &err))
            fail_msg("%s", err.text);
    struct session_row row = session_row(ID "1", "ses_1");
    assert_int_equal(create(s, &row, 1), VERDICT_OK);
    store_close(s);
    arena_free(mem);
}

TEST(test_postgres_schema__a_newer_one_is_refused)
{
    char url[PG_URL_MAX], ignored[256];
    struct store *s = NULL;
    struct error err;
    make_database(url);
    ask(url, "INSERT INTO mcp.schema_migrations (number, name) VALUES (99, 'future')", ignored);
    struct store_config config = {.path = str_of(url)};
    for (int i = 0; i < 2; i++, config.read_only = true) {
        assert_false(store_open_postgres(&config, &s, &err));
        assert_int_equal(err.code, ERR_CONFIG);
    }
}

TEST(test_postgres_schema__the_registrys_role_gets_its_rights_and_no_more)
{
    char url[PG_URL_MAX], ignored[256];
    struct error err;
    struct migrations known;
    make_database(url);
    ask(url, "DO $$ BEGIN CREATE ROLE api_user; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        ignored);
    struct arena *mem = arena_new(1 << 20);
    struct store *s = open_at(url, false);
    struct migrate_driver driver = pg_migrate_driver(impl(s));
    if (!migrate_load("postgres", NULL, mem, &known, &err) ||
        !migrate_down(&driver, &known, 0, &err) || !migrate_up(&driver, &known, &err))
        fail_msg("%s", err.text);
    ask(url,
        "SET ROLE api_user; INSERT INTO mcp.edge_mcp_sessions (id, session_id, tenant_id, "
        "edge_mcp_id, owner, origin, counted, expires_at) VALUES (gen_random_uuid(), 's', "
        "'default', 'e', 'local', 'rest', true, now() - interval '1 hour')",
        ignored);
    expect(url,
           "SET ROLE api_user; SELECT active_sessions || '/' || total_sessions FROM "
           "mcp.session_metrics",
           "0/1");
    expect(url, "SELECT counted_sessions FROM mcp.tenants WHERE id = 'default'", "1");
    expect(url, "SET ROLE api_user; SELECT mcp.cleanup_expired_sessions()", "1");
    expect(url, "SELECT counted_sessions FROM mcp.tenants WHERE id = 'default'", "0");
    expect(url,
           "SELECT status || ' ' || termination_reason || ' ' || (terminated_at = expires_at) "
           "FROM mcp.edge_mcp_sessions",
           "expired expired true");
    expect(url,
           "SELECT has_table_privilege('api_user', 'mcp.edge_mcp_sessions', 'DELETE') OR "
           "has_table_privilege('api_user', 'mcp.session_tool_executions', 'UPDATE') OR "
           "has_table_privilege('api_user', 'mcp.events', 'SELECT') OR "
           "has_table_privilege('api_user', 'mcp.api_keys', 'SELECT')",
           "f");
    store_close(s);
    arena_free(mem);
}

#define SUMS                                                                                       \
    "SELECT string_agg(x::text, ' ' ORDER BY x::text) FROM (SELECT tenant_id, minute, owner, "     \
    "sum(sessions), sum(live), sum(executions), sum(tokens), sum(lived_ms)::bigint FROM (SELECT "  \
    "* FROM mcp.session_sums UNION ALL SELECT * FROM mcp.session_sum_changes) t GROUP BY 1, 2, 3 " \
    "HAVING sum(sessions) <> 0) x"

/* As from several nodes: two connections write, each in transactions that overlap the other's. */
TEST(test_postgres_sums__of_nodes_that_write_at_once_wait_for_none_and_add_up)
{
    char url[PG_URL_MAX], before[256], merged[256];
    struct error err;
    struct reaped reaped;
    make_database(url);
    struct store *s = open_at(url, false);
    PGconn *nodes[2];
    for (int i = 0; i < 2; i++) {
        nodes[i] = PQconnectdb(url);
        PQclear(PQexec(nodes[i], "SET lock_timeout = '5s'"));
    }
    static const char *const sql[] = {
        "BEGIN",
        "INSERT INTO mcp.edge_mcp_sessions (session_id, tenant_id, edge_mcp_id, owner, counted, "
        "created_at, last_activity_at) SELECT pg_backend_pid() || '-' || i, 'default', 'e', "
        "'o', false, 'epoch', timestamptz 'epoch' + i * interval '20 s' FROM "
        "generate_series(1, 9) i",
        "UPDATE mcp.edge_mcp_sessions SET last_activity_at = last_activity_at + interval '1 min', "
        "tool_execution_count = 2, total_tokens_used = 5 WHERE session_id LIKE pg_backend_pid() "
        "|| '-%' AND last_activity_at < timestamptz 'epoch' + interval '1 min'",
        "UPDATE mcp.edge_mcp_sessions SET status = 'terminated', terminated_at = now() WHERE "
        "session_id = pg_backend_pid() || '-9'",
        "COMMIT"};
    for (size_t step = 0; step < countof(sql); step++)
        for (int i = 0; i < 2; i++) {
            PGresult *res = PQexec(nodes[i], sql[step]);
            if (PQresultStatus(res) != PGRES_COMMAND_OK)
                fail_msg("%s: %s", sql[step], PQerrorMessage(nodes[i]));
            PQclear(res);
        }
    for (int i = 0; i < 2; i++)
        PQfinish(nodes[i]);
    expect(url, "SELECT count(*) FROM mcp.session_sums", "0");
    ask(url, SUMS, before);
    assert_non_null(strstr(before, "(default,1,o,10,10,8,20,"));
    assert_null(strstr(before, "(default,0,o"));
    struct reap_request what = {.now_ms = clock_wall_ms(),
                                .batch = 10,
                                .writer = 1,
                                .lease_until_ms = clock_wall_ms() + 60000};
    if (!store_reap(s, &what, &reaped, &err))
        fail_msg("%s", err.text);
    assert_false(reaped.is_elsewhere || reaped.left);
    ask(url, SUMS, merged);
    assert_string_equal(merged, before);
    expect(url, "SELECT count(*) FROM mcp.session_sum_changes", "0");
    expect(url, "SELECT count(*) FROM mcp.session_sums WHERE sessions = 0", "0");
    expect(url, "SELECT sum(sessions) || '/' || sum(live) FROM mcp.session_sums", "18/16");
    store_close(s);
}

TEST(test_postgres_sums__are_merged_in_batches_until_none_is_left)
{
    char url[PG_URL_MAX], ignored[256];
    struct error err;
    struct reaped reaped;
    int rounds = 0;
    make_database(url);
    struct store *s = open_at(url, false);
    ask(url,
        "INSERT INTO mcp.session_sum_changes SELECT 'default', i % 7, 'o', 1, 1, 1, 1, 1 FROM "
        "generate_series(1, 25000) i",
        ignored);
    struct reap_request what = {.now_ms = clock_wall_ms(),
                                .batch = 10,
                                .writer = 1,
                                .lease_until_ms = clock_wall_ms() + 60000};
    do {
        if (!store_reap(s, &what, &reaped, &err))
            fail_msg("%s", err.text);
        rounds++;
    } while (reaped.left);
    assert_int_equal(rounds, 3);
    expect(url, "SELECT count(*) || '/' || sum(sessions) FROM mcp.session_sums", "7/25000");
    store_close(s);
}

TEST(test_postgres_sums__are_of_the_sessions_of_before_too)
{
    char url[PG_URL_MAX], before[256], after[256];
    struct error err;
    struct migrations known;
    make_database(url);
    struct arena *mem = arena_new(1 << 20);
    struct store *s = open_at(url, false);
    struct migrate_driver driver = pg_migrate_driver(impl(s));
    for (int i = 1; i <= 3; i++) {
        char id[64];
        snprintf(id, sizeof(id), ID "%d", i);
        struct session_row row = session_row(id, id);
        row.last_activity_ms += 60000 * i;
        row.tokens_used = 1000 * i;
        assert_int_equal(create(s, &row, -1), VERDICT_OK);
    }
    ask(url, SUMS, before);
    if (!migrate_load("postgres", NULL, mem, &known, &err) ||
        !migrate_down(&driver, &known, 12, &err) || !migrate_up(&driver, &known, &err))
        fail_msg("%s", err.text);
    ask(url, SUMS, after);
    assert_true(strlen(before) > 60);
    assert_string_equal(after, before);
    store_close(s);
    arena_free(mem);
}

static struct event_row record(int64_t id, const char *session, const char *body)
{
    struct event_row e = {.id = id,
                          .tenant = STR("acme"),
                          .seq = id & EVENT_COUNT_MASK,
                          .at_ms = clock_wall_ms(),
                          .kind = EVENT_RECORD,
                          .exec = id,
                          .session_id = str_of(session),
                          .tool = STR("read"),
                          .outcome = STR("ok"),
                          .duration_us = 1500,
                          .body_len = (int64_t)strlen(body),
                          .body = str_of(body)};
    memcpy(e.mac, &id, sizeof(id));
    return e;
}

static bool write_events(struct store *s, struct event_row *events, size_t n, struct error *err)
{
    struct store_op ops[8] = {0};
    for (size_t i = 0; i < n; i++)
        ops[i] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &events[i]}};
    return store_write(s, ops, n, err);
}

TEST(test_postgres_fold__json_is_kept_as_jsonb_where_it_converts_and_as_bytes_always)
{
    char url[PG_URL_MAX];
    struct error err;
    struct execution_row *rows = NULL;
    size_t n = 0;
    bool left = true;
    make_database(url);
    struct arena *mem = arena_new(1 << 20);
    struct store *s = open_at(url, false);
    struct session_row row = session_row(ID "1", "ses_1");
    assert_int_equal(create(s, &row, -1), VERDICT_OK);
    struct event_row events[] = {
        record(INT64_C(1) << 40 | 1, ID "1", "{\"arguments\":{\"b\":1,\"a\":2},\"result\":[1]}"),
        record(INT64_C(1) << 40 | 2, ID "1", "{\"arguments\":\"a\\u0000b\",\"result\":true}"),
        record(INT64_C(1) << 40 | 3, ID "1", "{\"arguments\":\"\\ud800\"}"),
    };
    events[2].tool = STR("\xff\0tool");
    if (!write_events(s, events, 3, &err) || !store_fold(s, 10, &left, &err))
        fail_msg("%s", err.text);
    expect(url,
           "SELECT string_agg(coalesce(arguments->>'a', '-') || coalesce(result::text, '-'), "
           "' ' ORDER BY id) FROM mcp.session_tool_executions",
           "2[1] -true --");
    expect(url, "SELECT string_agg(tool_name, ' ' ORDER BY id) FROM mcp.session_tool_executions",
           "read read ??tool");
    if (!store_executions_page(s, &alice, STR(ID "1"), 0, true, 10, mem, &rows, &n, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n, 3);
    assert_str(rows[2].arguments, "{\"b\":1,\"a\":2}");
    assert_str(rows[1].arguments, "\"a\\u0000b\"");
    assert_true(str_eq(rows[0].tool_name, STR("\xff\0tool")));
    store_close(s);
    arena_free(mem);
}

TEST(test_postgres_write__a_text_that_cannot_be_kept_is_the_ops_fault)
{
    char url[PG_URL_MAX];
    struct error err;
    make_database(url);
    struct store *s = open_at(url, false);
    struct session_row rows[] = {session_row(ID "1", "ses_1"), session_row(ID "2", "ses_2"),
                                 session_row("no uuid", "ses_3")};
    rows[1].client_name = STR("a\0b");
    for (int bad = 1; bad <= 2; bad++) {
        struct store_op ops[] = {
            {OP_SESSION_CREATE, &alice, {.session = &rows[0]}, .max_counted = -1},
            {OP_SESSION_CREATE, &alice, {.session = &rows[bad]}, .max_counted = -1}};
        assert_false(store_write(s, ops, 2, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
    }
    expect(url, "SELECT count(*) FROM mcp.edge_mcp_sessions", "0");
    assert_int_equal(create(s, &rows[0], -1), VERDICT_OK);
    store_close(s);
}

TEST(test_postgres_connection__one_that_was_cut_while_idle_is_made_again_unseen)
{
    char url[PG_URL_MAX];
    make_database(url);
    struct store *s = open_at(url, false);
    struct session_row row = session_row(ID "1", "ses_1");
    expect(url,
           "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast' "
           "AND datname = current_database()",
           "1");
    expect(url,
           "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
           "WHERE application_name = 'holdfast' AND datname = current_database()",
           "t");
    assert_int_equal(create(s, &row, -1), VERDICT_OK);
    store_close(s);
}

TEST(test_postgres_connection__while_away_everything_fails_at_once_and_then_works_again)
{
    char url[PG_URL_MAX], sql[256], name[256];
    struct error err;
    make_database(url);
    struct store *s = open_at(url, false);
    struct session_row row = session_row(ID "1", "ses_1");
    struct store_op op = {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = -1};
    ask(url, "SELECT current_database()", name);
    snprintf(sql, sizeof(sql), "ALTER DATABASE %s ALLOW_CONNECTIONS false", name);
    pg_cluster_sql(sql);
    snprintf(sql, sizeof(sql),
             "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
             "WHERE datname = '%s'",
             name);
    expect(pg_cluster_url(), sql, "t");
    assert_false(store_write(s, &op, 1, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_int_equal(op.verdict, VERDICT_FAILED);
    impl(s)->retry_us = INT64_MAX; /* not yet: no connection is even tried */
    int64_t began_us = pg_now_us();
    for (int i = 0; i < 1000; i++)
        assert_false(store_write(s, NULL, 0, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_true(pg_now_us() - began_us < 1000000);
    snprintf(sql, sizeof(sql), "ALTER DATABASE %s ALLOW_CONNECTIONS true", name);
    pg_cluster_sql(sql);
    impl(s)->retry_us = 0;
    if (!store_write(s, &op, 1, &err))
        fail_msg("%s", err.text);
    assert_int_equal(op.verdict, VERDICT_OK);
    store_close(s);
}

TEST(test_postgres_connection__the_wait_between_attempts_doubles_up_to_five_seconds)
{
    char url[PG_URL_MAX];
    struct error err;
    make_database(url);
    struct store *s = open_at(url, false);
    pg_disconnect(impl(s), "for a test", &err);
    for (unsigned i = 0; i < 12; i++) {
        int64_t most_ms = i < 6 ? 100 << i : 5000;
        int64_t now_us = pg_now_us();
        fault_load("store.connect:1");
        impl(s)->retry_us = 0;
        assert_false(store_write(s, NULL, 0, &err));
        int64_t wait_us = impl(s)->retry_us - now_us;
        assert_in_range(wait_us, most_ms * 500, most_ms * 1000 + 100000);
    }
    fault_load("");
    impl(s)->retry_us = 0;
    assert_true(store_write(s, NULL, 0, &err));
    store_close(s);
}

TEST(test_postgres_write__a_batch_whose_commit_went_unheard_may_be_repeated)
{
    char url[PG_URL_MAX];
    struct error err;
    make_database(url);
    struct store *s = open_at(url, false);
    struct session_row row = session_row(ID "1", "ses_1");
    struct event_row events[] = {record(INT64_C(1) << 40 | 1, ID "1", "{}"),
                                 record(INT64_C(1) << 40 | 2, ID "1", "{}")};
    struct store_op ops[] = {
        {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = 1, .required = true},
        {OP_EVENT_APPEND, NULL, {.event = &events[0]}},
        {OP_EVENT_APPEND, NULL, {.event = &events[1]}}};
    fault_load("store.committed:1");
    assert_false(store_write(s, ops, 3, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    fault_load("");
    if (!store_write(s, ops, 3, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ops[i].verdict, VERDICT_OK);
    expect(url, "SELECT count(*) || '/' || sum(n) FROM mcp.events", "1/2");
    expect(url, "SELECT counted_sessions FROM mcp.tenants WHERE id = 'acme'", "1");
    store_close(s);
}

TEST(test_postgres_write__does_not_wait_past_its_deadline_for_anothers_lock)
{
    char url[PG_URL_MAX];
    struct store *s = NULL;
    struct error err;
    make_database(url);
    struct store_config config = {.path = str_of(url), .deadline_ms = 400};
    if (!store_open_postgres(&config, &s, &err))
        fail_msg("%s", err.text);
    struct session_row row = session_row(ID "1", "ses_1");
    struct store_op op = {OP_SESSION_CREATE, &alice, {.session = &row}, .max_counted = 5};
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "INSERT INTO mcp.tenants (id, created_at) VALUES ('acme', now())"));
    PQclear(PQexec(other, "BEGIN; SELECT 1 FROM mcp.tenants WHERE id = 'acme' FOR UPDATE"));
    int64_t began_us = pg_now_us();
    assert_false(store_write(s, &op, 1, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_in_range(pg_now_us() - began_us, 300000, 3000000);
    PQclear(PQexec(other, "ROLLBACK"));
    if (!store_write(s, &op, 1, &err))
        fail_msg("%s", err.text);
    assert_int_equal(op.verdict, VERDICT_OK);
    PQfinish(other);
    store_close(s);
}

TEST(test_postgres_page__that_takes_too_long_is_a_timeout_of_its_own)
{
    char url[PG_URL_MAX];
    struct error err;
    struct session_row *rows = NULL;
    size_t n = 0;
    make_database(url);
    struct arena *mem = arena_new(1 << 20);
    struct store *s = open_at(url, true);
    const struct session_filter all = {0};
    assert_true(store_sessions_page(s, &alice, &all, 10, mem, &rows, &n, &err));
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; LOCK mcp.edge_mcp_sessions IN ACCESS EXCLUSIVE MODE"));
    assert_false(store_sessions_page(s, &alice, &all, 10, mem, &rows, &n, &err));
    assert_int_equal(err.code, ERR_TIMEOUT);
    PQclear(PQexec(other, "ROLLBACK"));
    assert_true(store_sessions_page(s, &alice, &all, 10, mem, &rows, &n, &err));
    PQfinish(other);
    arena_free(mem);
    store_close(s);
}

/* Somebody listens and never answers. */
TEST(test_postgres_open__does_not_wait_past_its_deadline_for_a_server_that_hangs)
{
    char dir[] = "/tmp/holdfast-hung-XXXXXX", url[PG_URL_MAX];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct store *s = NULL;
    struct error err;
    assert_non_null(mkdtemp(dir));
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/.s.PGSQL.5432", dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 4), 0);
    snprintf(url, sizeof(url), "postgresql://x:s3cret@/x?host=%s", dir);
    struct store_config config = {.path = str_of(url), .deadline_ms = 200};
    int64_t began_us = pg_now_us();
    assert_false(store_open_postgres(&config, &s, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_null(strstr(err.text, "s3cret"));
    assert_in_range(pg_now_us() - began_us, 190000, 3000000);
    close(fd);
    unlink(at.sun_path);
    rmdir(dir);
}
