/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about the tools of servers. */
#include "store_contract.h"

static struct tool_row tool(const char *server, const char *name, int is, int64_t at_ms)
{
    struct tool_row row = {.server = str_of(server),
                           .name = str_of(name),
                           .definition = is == 'a' ? STR("{\"a\":1}") : STR("{\"b\":2}"),
                           .first_seen_ms = at_ms,
                           .changed_ms = at_ms};
    memset(row.digest, is, sizeof(row.digest));
    return row;
}

static enum verdict seen(struct fixture *f, struct tool_row row)
{
    return write_one(f, (struct store_op){.kind = OP_TOOL_SEEN, .tool = &row});
}

static enum verdict approve(struct fixture *f, const char *server, const char *name, int is)
{
    struct tool_row row = tool(server, name, is, 0);
    row.approved_ms = NOW + 9;
    return write_one(f, (struct store_op){.kind = OP_TOOL_APPROVE, .tool = &row});
}

static struct tool_row tool_of(struct fixture *f, const char *server, const char *name)
{
    struct tool_filter filter = {
        .server = str_of(server), .name = str_of(name), .with_definitions = true};
    struct tool_row *rows = NULL;
    size_t n = 0;
    check(f, store_tools_page(f->store, &filter, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    return rows[0];
}

static void seen_twice(struct fixture *f)
{
    struct tool_row first = tool("files", "read", 'a', NOW);
    memcpy(first.approved, first.digest, sizeof(first.approved));
    first.approved_ms = NOW;
    assert_int_equal(seen(f, first), VERDICT_OK);
    struct tool_row row = tool_of(f, "files", "read");
    assert_str(row.server, "files");
    assert_str(row.name, "read");
    assert_str(row.definition, "{\"a\":1}");
    assert_str(row.approved_definition, "{\"a\":1}");
    assert_memory_equal(row.approved, first.digest, 32);
    assert_int_equal(row.first_seen_ms, NOW);
    assert_int_equal(row.gone_ms, 0);

    struct tool_row same = tool("files", "read", 'a', NOW + 1);
    same.gone_ms = NOW + 1;
    same.definition = STR_NONE;
    assert_int_equal(seen(f, same), VERDICT_OK);
    row = tool_of(f, "files", "read");
    assert_int_equal(row.changed_ms, NOW);
    assert_int_equal(row.gone_ms, NOW + 1);
    assert_str(row.definition, "{\"a\":1}");

    assert_int_equal(seen(f, tool("files", "read", 'b', NOW + 2)), VERDICT_OK);
    row = tool_of(f, "files", "read");
    assert_int_equal(row.first_seen_ms, NOW);
    assert_int_equal(row.changed_ms, NOW + 2);
    assert_int_equal(row.gone_ms, 0);
    assert_int_equal(row.digest[0], 'b');
    assert_str(row.definition, "{\"b\":2}");
    assert_memory_equal(row.approved, first.digest, 32);
    assert_str(row.approved_definition, "{\"a\":1}");
    assert_int_equal(row.approved_ms, NOW);
}
TEST(test_tool_seen__keeps_what_is_approved_and_when_it_was_first_seen)
{
    on_every_store(seen_twice);
}

static void approved(struct fixture *f)
{
    static const uint8_t none[32];
    assert_int_equal(seen(f, tool("files", "read", 'b', NOW)), VERDICT_OK);
    struct tool_row row = tool_of(f, "files", "read");
    assert_memory_equal(row.approved, none, 32);
    assert_null(row.approved_definition.p);
    assert_int_equal(approve(f, "files", "write", 'b'), VERDICT_MISSING);
    assert_int_equal(approve(f, "notes", "read", 'b'), VERDICT_MISSING);
    assert_int_equal(approve(f, "files", "read", 'a'), VERDICT_STALE);
    assert_int_equal(approve(f, "files", "read", 'b'), VERDICT_OK);
    row = tool_of(f, "files", "read");
    assert_memory_equal(row.approved, row.digest, 32);
    assert_str(row.approved_definition, "{\"b\":2}");
    assert_int_equal(row.approved_ms, NOW + 9);
}
TEST(test_tool_approve__takes_only_what_was_last_seen)
{
    on_every_store(approved);
}

static void pages(struct fixture *f)
{
    struct tool_filter filter = {.server = STR_NONE};
    struct tool_row *rows = NULL;
    size_t n = 0;
    assert_int_equal(seen(f, tool("notes", "a", 'a', NOW)), VERDICT_OK);
    assert_int_equal(seen(f, tool("files", "b", 'a', NOW)), VERDICT_OK);
    assert_int_equal(seen(f, tool("files", "\xd0\xb0", 'a', NOW)), VERDICT_OK);
    assert_int_equal(seen(f, tool("files", "A", 'a', NOW)), VERDICT_OK);
    check(f, store_tools_page(f->store, &filter, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].name, "A");
    assert_str(rows[1].name, "b");
    assert_null(rows[0].definition.p);
    filter.after_server = rows[1].server;
    filter.after = rows[1].name;
    check(f, store_tools_page(f->store, &filter, 200, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].name, "\xd0\xb0");
    assert_str(rows[1].server, "notes");
    filter.server = STR("files");
    check(f, store_tools_page(f->store, &filter, 200, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    filter.server = STR("none");
    check(f, store_tools_page(f->store, &filter, 200, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 0);
    assert_false(
        store_tools_page(f->store, &filter, STORE_PAGE_MAX + 1, f->mem, &rows, &n, &f->err));
    assert_int_equal(f->err.code, ERR_BAD_INPUT);
}
TEST(test_tools_page__goes_by_server_and_name)
{
    on_every_store(pages);
}

static enum verdict tell(struct fixture *f, const char *name, int64_t calls, int64_t ok_ms,
                         int64_t failed_ms, const char *error)
{
    struct server_row row = {.name = str_of(name),
                             .calls = calls,
                             .failures = failed_ms != 0,
                             .last_ok_ms = ok_ms,
                             .last_failed_ms = failed_ms,
                             .last_error = error ? str_of(error) : STR_NONE};
    return write_one(f, (struct store_op){.kind = OP_SERVER_COUNT, .server = &row});
}

static void counts_add_up(struct fixture *f)
{
    struct server_row *rows = NULL;
    size_t n = 0;
    assert_int_equal(tell(f, "files", 5, NOW, 0, NULL), VERDICT_OK);
    assert_int_equal(tell(f, "files", 2, 0, NOW + 5, "it broke"), VERDICT_OK);
    assert_int_equal(tell(f, "files", 1, NOW - 9, NOW + 3, "earlier"), VERDICT_OK);
    assert_int_equal(tell(f, "a", 1, NOW, 0, NULL), VERDICT_OK);
    check(f, store_servers_page(f->store, STR_NONE, 200, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].name, "a");
    assert_int_equal(rows[0].last_failed_ms, 0);
    assert_null(rows[0].last_error.p);
    assert_int_equal(rows[1].calls, 8);
    assert_int_equal(rows[1].failures, 2);
    assert_int_equal(rows[1].last_ok_ms, NOW);
    assert_int_equal(rows[1].last_failed_ms, NOW + 5);
    assert_str(rows[1].last_error, "it broke");
    check(f, store_servers_page(f->store, STR("a"), 1, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_str(rows[0].name, "files");
}
TEST(test_server_tell__adds_to_what_there_is)
{
    on_every_store(counts_add_up);
}
