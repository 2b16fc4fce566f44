/* SPDX-License-Identifier: Apache-2.0 */
/* The schema as its operator sees it: told, brought up, taken back; never touched by looking. */
#include "store_files.h"

#include "base/clock.h"
#include "store/schema.h"

struct world {
    struct files files;
    struct arena *mem;
    struct database database;
    struct schema_status status;
};

static void world_init(struct world *w)
{
    files_init(&w->files);
    w->mem = arena_new(64 << 20);
    w->database = (struct database){.path = str_of(w->files.db), .shown = str_of(w->files.db)};
}

static void world_release(struct world *w)
{
    arena_free(w->mem);
    files_release(&w->files);
}

static struct schema *open_schema(struct world *w, bool read_only)
{
    struct schema *s = NULL;
    struct error err;
    if (!schema_open(&w->database, read_only, NULL, &s, &err) ||
        !schema_status(s, w->mem, &w->status, &err))
        fail_msg("%s", err.text);
    return s;
}

TEST(test_schema__looking_at_a_missing_file_makes_none)
{
    struct world w;
    struct schema *s;
    struct error err;
    world_init(&w);
    assert_false(schema_open(&w.database, true, NULL, &s, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_not_equal(access(w.files.db, F_OK), 0);
    world_release(&w);
}

TEST(test_schema__migrate_applies_all_and_status_tells_when)
{
    struct world w;
    struct error err;
    world_init(&w);
    struct schema *s = open_schema(&w, false);
    assert_int_equal(w.status.number, 0);
    assert_int_equal(w.status.n_applied, 0);
    assert_true(w.status.known.n >= 2);
    clock_set_fake(1763197323456, 0);
    assert_true(schema_migrate(s, &err));
    clock_set_real();
    assert_true(schema_status(s, w.mem, &w.status, &err));
    assert_int_equal(w.status.n_applied, w.status.known.n);
    assert_int_equal(w.status.number, w.status.known.n);
    assert_str(w.status.applied[0].name, "start");
    assert_int_equal(w.status.applied[0].applied_ms, 1763197323456);
    assert_true(schema_migrate(s, &err)); /* and again: nothing */
    assert_true(schema_status_check(&w.status, &err));
    schema_close(s);
    store_close(files_open(&w.files, false));
    world_release(&w);
}

TEST(test_schema__rollback_goes_to_the_number_and_migrate_comes_back)
{
    struct world w;
    struct error err;
    world_init(&w);
    struct schema *s = open_schema(&w, false);
    assert_true(schema_migrate(s, &err));
    for (int to = (int)w.status.known.n - 1; to >= 0; to--) {
        if (!schema_rollback(s, to, &err))
            fail_msg("to %d: %s", to, err.text);
        assert_true(schema_status(s, w.mem, &w.status, &err));
        assert_int_equal(w.status.number, to);
    }
    assert_int_equal(files_ask(&w.files, "SELECT count(*) FROM sqlite_master WHERE name NOT LIKE "
                                         "'sqlite_%'"),
                     0);
    assert_true(schema_migrate(s, &err));
    assert_true(schema_rollback(s, 0, &err)); /* all in one go */
    assert_true(schema_migrate(s, &err));
    schema_close(s);
    store_close(files_open(&w.files, false));
    world_release(&w);
}

TEST(test_schema__a_newer_one_is_told_of_and_left_alone)
{
    struct world w;
    struct error err;
    world_init(&w);
    store_close(files_open(&w.files, false));
    files_exec(&w.files, "INSERT INTO schema_migrations VALUES (99, 'future', 5)");
    struct schema *s = open_schema(&w, false);
    assert_int_equal(w.status.number, 99);
    assert_str(w.status.applied[w.status.n_applied - 1].name, "future");
    assert_false(schema_status_check(&w.status, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_false(schema_migrate(s, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_false(schema_rollback(s, 1, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    schema_close(s);
    assert_int_equal(files_ask(&w.files, "SELECT max(number) FROM schema_migrations"), 99);
    world_release(&w);
}

TEST(test_schema__read_only_changes_nothing)
{
    struct world w;
    struct error err;
    world_init(&w);
    files_exec(&w.files, "CREATE TABLE other (x)");
    struct schema *s = open_schema(&w, true);
    assert_int_equal(w.status.number, 0);
    assert_false(schema_migrate(s, &err));
    schema_close(s);
    assert_int_equal(files_ask(&w.files, "SELECT count(*) FROM sqlite_master"), 1);
    world_release(&w);
}

TEST(test_schema__sessions_of_before_are_added_up)
{
    static const char differ[] =
        "SELECT count(*) FROM (SELECT tenant_id, minute, owner, sessions, live, executions, "
        "tokens_high, tokens_low, lived_ms FROM session_sums EXCEPT SELECT tenant_id, "
        "max(created_at, last_activity_at) / 60000, owner, count(*), sum(status IN ('active', "
        "'idle')), sum(tool_execution_count), sum(total_tokens_used >> 32), "
        "sum(total_tokens_used & 4294967295), sum(coalesce(terminated_at, last_activity_at) "
        "- created_at) FROM edge_mcp_sessions GROUP BY 1, 2, 3)";
    struct world w;
    struct error err;
    world_init(&w);
    struct schema *s = open_schema(&w, false);
    assert_true(schema_migrate(s, &err));
    assert_true(schema_rollback(s, 12, &err));
    files_exec(
        &w.files,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) "
        "INSERT INTO edge_mcp_sessions (id, session_id, tenant_id, owner, edge_mcp_id, "
        "status, origin, created_at, last_activity_at, tool_execution_count, "
        "total_tokens_used) SELECT 'id-' || i, 's' || i, 'default', 'o' || i % 3, 'e', "
        "iif(i % 4, 'active', 'terminated'), 'rest', i * 1000, i * 20000, i, i << 33 FROM n");
    if (!schema_migrate(s, &err))
        fail_msg("%s", err.text);
    assert_int_equal(files_ask(&w.files, "SELECT sum(sessions) FROM session_sums"), 50);
    assert_int_equal(files_ask(&w.files, differ), 0);
    files_exec(&w.files, "UPDATE edge_mcp_sessions SET last_activity_at = last_activity_at + 90000 "
                         "WHERE rowid % 2; DELETE FROM edge_mcp_sessions WHERE rowid % 5 = 0");
    assert_int_equal(files_ask(&w.files, "SELECT sum(sessions) FROM session_sums"), 40);
    assert_int_equal(files_ask(&w.files, differ), 0);
    schema_close(s);
    world_release(&w);
}
