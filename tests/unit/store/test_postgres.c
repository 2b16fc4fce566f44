/* SPDX-License-Identifier: Apache-2.0 */
/* What is PostgreSQL's own: opening, schemas, lost connections, and nodes that share a database. */
#include "test.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
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
        skip();
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
