/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/buf.h"
#include "identity/scopes.h"

TEST(test_scope__star_stands_for_any_run)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        {"files", "files", true},
        {"files", "files2", false},
        {"files", "file", false},
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"files__read*", "files__read", true},
        {"files__read*", "files__read_all", true},
        {"files__read*", "files__rea", false},
        {"*__read", "files__read", true},
        {"*__read", "files__read_all", false},
        {"a*b*c", "aXbYc", true},
        {"a*b*c", "abbc", true},
        {"a*b*c", "acb", false},
        {"**", "x", true},
        {"a?c", "abc", false},
        {"A", "a", false},
    };
    for (size_t i = 0; i < countof(cases); i++)
        if (scope_matches(str_of(cases[i].pattern), str_of(cases[i].name)) != cases[i].matches)
            fail_msg("%s against %s", cases[i].pattern, cases[i].name);
}

TEST(test_scope__a_hostile_pattern_takes_no_long_time)
{
    char pattern[201], name[2001];

    for (size_t i = 0; i < 200; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[199] = 'b';
    memset(name, 'a', 2000);
    assert_false(scope_matches(str_n(pattern, 200), str_n(name, 2000)));
}

static struct principal parse(const char *json, struct arena *mem)
{
    struct principal who = {.tenant = STR("default")};
    struct error err;

    assert_true(scopes_parse(str_of(json), mem, &who.scopes, &err));
    return who;
}

TEST(test_scopes__absent_and_empty_lists_limit_nothing)
{
    struct arena *mem = arena_new(65536);
    struct principal who = parse(NULL, mem);

    assert_null(who.scopes);
    assert_true(principal_may_use_server(&who, STR("x")));
    who = parse("{\"servers\":[],\"tools\":[]}", mem);
    assert_true(principal_may_use_server(&who, STR("x")));
    assert_true(principal_may_use_tool(&who, STR("x"), STR("y")));
    assert_true(principal_may_use_folder(&who, STR("x")));
    assert_false(who.scopes->review);
    /* The same lists with one name each do limit. */
    who = parse("{\"servers\":[\"z\"],\"tools\":[\"z__y\"]}", mem);
    assert_false(principal_may_use_server(&who, STR("x")));
    assert_false(principal_may_use_tool(&who, STR("z"), STR("x")));
    assert_true(principal_may_use_tool(&who, STR("z"), STR("y")));
    who = parse("{\"folders\":[\"z\"]}", mem);
    assert_false(principal_may_use_folder(&who, STR("x")));
    arena_free(mem);
}

TEST(test_scopes__hide_what_they_do_not_name)
{
    struct arena *mem = arena_new(65536);
    struct principal who =
        parse("{\"servers\":[\"files\",\"git*\"],\"tools\":[\"files__read*\",\"x__y\"]}", mem);

    assert_true(principal_may_use_server(&who, STR("files")));
    assert_true(principal_may_use_server(&who, STR("github")));
    assert_false(principal_may_use_server(&who, STR("mail")));
    assert_true(principal_may_use_tool(&who, STR("files"), STR("read_file")));
    assert_false(principal_may_use_tool(&who, STR("files"), STR("write")));
    assert_false(principal_may_use_tool(&who, STR("github"), STR("read_file")));
    assert_false(principal_may_use_tool(&who, STR("x"), STR("y"))); /* the server is hidden */
    arena_free(mem);
}

TEST(test_scopes__a_name_too_long_for_any_pattern_is_hidden)
{
    struct arena *mem = arena_new(65536);
    struct principal who = parse("{\"tools\":[\"*\"]}", mem);
    char tool[600];

    memset(tool, 'a', sizeof(tool));
    assert_true(principal_may_use_tool(&who, STR("s"), str_n(tool, 512 - 3)));
    assert_false(principal_may_use_tool(&who, STR("s"), str_n(tool, 512 - 2)));
    arena_free(mem);
}

TEST(test_scopes__what_is_not_scopes_is_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "null",
        "{\"servers\":\"a\"}",
        "{\"servers\":[1]}",
        "{\"servers\":[\"\"]}",
        "{\"server\":[\"a\"]}",
        "{\"review\":1}",
        "{\"tools\":[\"a\"],\"tools\":[\"b\"]}",
    };
    struct arena *mem = arena_new(65536);
    const struct scopes *s;
    struct error err;

    for (size_t i = 0; i < countof(bad); i++)
        if (scopes_parse(str_of(bad[i]), mem, &s, &err))
            fail_msg("taken: %s", bad[i]);
    arena_free(mem);
}

TEST(test_scopes__64_items_of_256_bytes_are_the_limit)
{
    struct arena *mem = arena_new(1024 * 1024);
    struct str items[SCOPES_MAX_ITEMS + 1];
    char name[SCOPES_MAX_NAME + 1];
    struct scopes s = {.tools = items, .n_tools = SCOPES_MAX_ITEMS};
    const struct scopes *back;
    struct error err;

    memset(name, 'n', sizeof(name));
    for (size_t i = 0; i < countof(items); i++)
        items[i] = str_n(name, SCOPES_MAX_NAME);
    assert_true(scopes_check(&s, &err));
    assert_true(scopes_parse(scopes_write(&s, mem), mem, &back, &err));
    assert_int_equal(back->n_tools, SCOPES_MAX_ITEMS);
    s.n_tools++;
    assert_false(scopes_check(&s, &err));
    assert_false(scopes_parse(scopes_write(&s, mem), mem, &back, &err));
    s.n_tools = 1;
    items[0].n = SCOPES_MAX_NAME + 1;
    assert_false(scopes_check(&s, &err));
    arena_free(mem);
}

TEST(test_scopes__come_back_as_they_were_written)
{
    struct arena *mem = arena_new(65536);
    struct str servers[] = {STR("a\"b")}, folders[] = {STR("Lens")};
    struct scopes s = {
        .servers = servers, .n_servers = 1, .folders = folders, .n_folders = 1, .review = true};
    const struct scopes *back;
    struct error err;

    assert_true(scopes_parse(scopes_write(&s, mem), mem, &back, &err));
    assert_str(back->servers[0], "a\"b");
    assert_str(back->folders[0], "Lens");
    assert_true(back->review);
    assert_false(back->read_only);
    arena_free(mem);
}

TEST(test_principal__a_copy_shares_nothing)
{
    struct arena *one = arena_new(65536), *two = arena_new(65536);
    struct principal who = parse("{\"servers\":[\"files\"],\"review\":true}", one), copy;

    who.owner = arena_dup(one, STR("key:abc"));
    copy = principal_dup(&who, two);
    arena_free(one);
    assert_str(copy.owner, "key:abc");
    assert_str(copy.scopes->servers[0], "files");
    assert_true(copy.scopes->review);
    assert_null(copy.user_id.p);
    arena_free(two);
}

TEST(test_scopes__tools_alone_reach_their_servers_and_no_others)
{
    struct arena *mem = arena_new(1 << 20);
    struct principal who = parse("{\"tools\":[\"files__read*\",\"git*\",\"x__y\",\"a_*\"]}", mem);

    assert_true(principal_may_use_server(&who, STR("files")));
    assert_true(principal_may_use_server(&who, STR("git")));
    assert_true(principal_may_use_server(&who, STR("github")));
    assert_true(principal_may_use_server(&who, STR("x")));
    assert_true(principal_may_use_server(&who, STR("a")));
    assert_true(principal_may_use_server(&who, STR("a_b")));
    assert_false(principal_may_use_server(&who, STR("file")));
    assert_false(principal_may_use_server(&who, STR("files2")));
    assert_false(principal_may_use_server(&who, STR("xy")));
    assert_false(principal_may_use_server(&who, STR("sample")));
    who = parse("{\"tools\":[\"*__read\"]}", mem);
    assert_true(principal_may_use_server(&who, STR("anything")));
    arena_free(mem);
}
