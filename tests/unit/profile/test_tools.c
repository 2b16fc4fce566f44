/* SPDX-License-Identifier: Apache-2.0 */
/* The profile's own tools without an exchange: arguments, the rewritten request of run, and whether
 * a toolset may be enabled. */
#include "test.h"

#include "profile/find.h"
#include "profile/run.h"
#include "profile/toolsets.h"

struct call {
    struct arena *mem;
    struct mcp_message m;
    struct profile_arguments a;
};

/* A tools/call with these arguments. */
static void begin_call(struct call *c, const char *arguments)
{
    struct error err;
    struct str id;
    bool is_batch;
    c->mem = arena_new(1 << 20);
    struct str text = arena_printf(
        c->mem,
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"run\","
        "\"_meta\":{\"k\":1},\"arguments\":%s}}",
        arguments);

    if (!mcp_parse_request(text, c->mem, &c->m, &id, &is_batch, &err))
        fail_msg("%s", err.text);
    c->a.object = mcp_param(&c->m, STR("arguments"));
    c->a.doc = &c->m.doc;
}

static struct config *config;

static const struct profile_config *profile_with(const char *json)
{
    struct error err;
    struct arena *mem = arena_new(1 << 20);
    struct str text = arena_printf(
        mem,
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"holdfast\": {\"profiles\": {\"p\": %s}, "
        "\"toolsets\": {\"read\": {\"tools\": [\"a__get*\"]}, \"write\": {\"tools\": "
        "[\"a__set\"]}}}}",
        json);

    if (!config_parse(text, STR("t.json"), NULL, &config, &err))
        fail_msg("%s", err.text);
    arena_free(mem);
    return config_profile(config, STR("p"));
}

TEST(test_profile_tool__names_the_argument_that_it_does_not_take)
{
    const struct profile_config *p = profile_with("{\"mode\": \"search\"}");
    struct call c;
    begin_call(&c, "{\"tool\":\"a:get\",\"dryrun\":true}");
    const struct profile_tool *run = profile_tool_find(p, STR("run"));

    assert_non_null(run);
    assert_true(str_eq(profile_wrong_argument(run, &c.a, c.mem),
                       STR("run has no \"dryrun\"; it takes tool, parameters and dry_run. What the "
                           "tool itself takes goes into parameters.")));
    assert_null(profile_tool_find(p, STR("enable_toolset")));
    arena_free(c.mem);
    config_unref(config);
}

TEST(test_run__replaces_name_and_arguments_and_no_other_byte)
{
    struct call c;
    begin_call(&c, "{\"tool\":\"a:get\",\"parameters\":{ \"n\":1e2 }}");
    struct run_request r;

    assert_null(run_request_read(&c.a, c.mem, &r));
    assert_true(str_eq(r.server, STR("a")) && str_eq(r.tool, STR("get")) && !r.is_dry);
    assert_true(str_eq(run_rewritten(&r, &c.m, c.mem),
                       STR("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
                           "\"name\":\"get\",\"_meta\":{\"k\":1},\"arguments\":{ \"n\":1e2 }}}")));
    arena_free(c.mem);
}

TEST(test_run__refuses_arguments_of_other_types)
{
    static const char *const refused[] = {"{}", "{\"tool\":\"a:b\",\"parameters\":[]}",
                                          "{\"tool\":\"a:b\",\"dry_run\":\"yes\"}"};
    struct run_request r;

    for (size_t i = 0; i < countof(refused); i++) {
        struct call c;
        begin_call(&c, refused[i]);
        assert_non_null(run_request_read(&c.a, c.mem, &r));
        arena_free(c.mem);
    }
    struct call c;
    begin_call(&c, "{\"tool\":\"nothing\"}");
    assert_null(run_request_read(&c.a, c.mem, &r));
    assert_null(r.server.p);
    assert_true(str_eq(r.tool, STR("nothing")));
    arena_free(c.mem);
}

TEST(test_find__reads_its_arguments_within_their_limits)
{
    struct find_query q;
    struct call c;
    begin_call(&c, "{\"description\":\" send mail \",\"limit\":100,\"page\":2.0}");

    assert_null(find_query_read(&c.a, c.mem, &q));
    assert_true(str_eq(q.words, STR("send mail")));
    assert_true(q.limit == 100 && q.page == 2 && q.depth == 2);
    arena_free(c.mem);
    static const char *const refused[] = {"{\"limit\":101}",
                                          "{\"limit\":0}",
                                          "{\"page\":1.5}",
                                          "{\"depth\":3}",
                                          "{\"confidence_threshold\":1.1}",
                                          "{\"description\":1}"};
    for (size_t i = 0; i < countof(refused); i++) {
        struct call bad;
        begin_call(&bad, refused[i]);
        assert_non_null(find_query_read(&bad.a, bad.mem, &q));
        arena_free(bad.mem);
    }
}

TEST(test_toolset_may_enable__goes_by_policy_then_state_then_limit)
{
    const struct profile_config *p =
        profile_with("{\"mode\": \"dynamic\", \"toolsets\": [\"read\", \"write\"], \"policy\": "
                     "{\"max_active\": 1}}");
    struct profile_view v = {.profile = p, .toolsets = 1, .mem = arena_new(1 << 20)};
    struct str text = STR_NONE;

    assert_int_equal(toolset_may_enable(&v, 0, false, &text), TOOLSET_SAME);
    assert_true(str_eq(text, STR("Toolset 'read' is already enabled.")));
    assert_int_equal(toolset_may_enable(&v, 0, true, &text), TOOLSET_CHANGES);
    assert_int_equal(toolset_may_enable(&v, 1, false, &text), TOOLSET_REFUSED);
    assert_true(str_eq(text, STR("Activation exceeds maxActiveToolsets (1).")));
    v.toolsets = 0;
    assert_int_equal(toolset_may_enable(&v, 1, false, &text), TOOLSET_CHANGES);
    assert_true(str_eq(profile_toolset_with(p, 3, STR("a"), STR("set")), STR("write")));
    assert_null(profile_toolset_with(p, 1, STR("a"), STR("set")).p);
    arena_free(v.mem);
    config_unref(config);
}
