/* SPDX-License-Identifier: Apache-2.0 */
/* The probe against scripted HTTP servers: which lists it asks for, and what becomes of each. */
#include "remote_world.h"

#define ALL_CAPABILITIES                                                                           \
    "{\"tools\":{\"listChanged\":true},\"prompts\":{},\"resources\":{\"subscribe\":true}}"

static void can_lists(struct world *w)
{
    world_can(w, (struct canned){"tools/list", 200, "result", "{\"tools\":[{\"name\":\"t\"}]}"});
    world_can(w,
              (struct canned){"prompts/list", 200, "result", "{\"prompts\":[{\"name\":\"p\"}]}"});
    world_can(w, (struct canned){"resources/list", 200, "result",
                                 "{\"resources\":[{\"uri\":\"r:1\",\"name\":\"r\"}]}"});
    world_can(w, (struct canned){"resources/templates/list", 200, "result",
                                 "{\"resourceTemplates\":[{\"uriTemplate\":\"r:{x}\"}]}"});
}

TEST(test_probe__fills_every_list_that_is_offered)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, ALL_CAPABILITIES);
    can_lists(&w);
    struct catalog *c = world_catalog(&w);
    assert_non_null(catalog_tool(c, STR("t")));
    assert_non_null(catalog_find(c, CATALOG_PROMPTS, STR("p")));
    assert_non_null(catalog_find(c, CATALOG_RESOURCES, STR("r:1")));
    assert_non_null(catalog_find(c, CATALOG_TEMPLATES, STR("r:{x}")));
    assert_true(catalog_subscribes(c));
    world_close(&w);
}

TEST(test_probe__asks_for_no_list_that_is_not_offered)
{
    struct world w;
    world_open(&w, "");
    world_modern(&w, "{\"prompts\":{}}");
    can_lists(&w);
    struct catalog *c = world_catalog(&w);
    assert_int_equal(c->era, MCP_MODERN);
    assert_int_equal(world_heard(&w, "prompts/list"), 1);
    assert_int_equal(world_heard(&w, "tools/list"), 0);
    assert_int_equal(world_heard(&w, "resources/list"), 0);
    assert_int_equal(world_heard(&w, "resources/templates/list"), 0);
    world_close(&w);
}

TEST(test_probe__a_list_that_fails_is_empty_and_the_rest_stands)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, ALL_CAPABILITIES);
    can_lists(&w);
    world_can(&w, (struct canned){"prompts/list", 200, "error", "{\"code\":-32603}"});
    world_can(&w, (struct canned){"resources/list", 500, NULL, "oops"});
    world_can(&w, (struct canned){"resources/templates/list", 200, "error", "{\"code\":-32601}"});
    struct catalog *c = world_catalog(&w);
    assert_non_null(c);
    assert_non_null(catalog_tool(c, STR("t")));
    assert_int_equal(c->lists[CATALOG_PROMPTS].n, 0);
    assert_int_equal(c->lists[CATALOG_RESOURCES].n, 0);
    assert_int_equal(c->lists[CATALOG_TEMPLATES].n, 0);
    world_close(&w);
}

TEST(test_probe__tools_that_are_refused_leave_a_catalog_with_the_servers_words)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, ALL_CAPABILITIES);
    can_lists(&w);
    world_can(&w, (struct canned){"tools/list", 200, "error",
                                  "{\"code\":-32603,\"message\":\"fetch \\u001bfailed\"}"});
    struct catalog *c = world_catalog(&w);
    assert_non_null(c);
    assert_int_equal(c->lists[CATALOG_TOOLS].n, 0);
    assert_non_null(catalog_find(c, CATALOG_PROMPTS, STR("p")));
    assert_non_null(strstr(c->tools_fault.p, " refused tools/list: fetch "));
    assert_null(strchr(c->tools_fault.p, 0x1b));
    world_close(&w);
}

TEST(test_probe__tools_that_break_the_connection_fail_it)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, ALL_CAPABILITIES);
    can_lists(&w);
    world_can(&w, (struct canned){"tools/list", 500, NULL, "oops"});
    assert_null(world_catalog(&w));
    world_close(&w);
}

/* Serves `pages` pages of one prompt each. */
static void serve_pages(struct world *w, unsigned pages)
{
    char json[256];
    for (unsigned page = 1; page <= pages; page++) {
        struct http_request *r = world_take(w, "prompts/list");
        if (page > 1)
            assert_non_null(memmem(r->body.p, r->body.n, "\"cursor\":\"c\\u0031\"", 17));
        int n = snprintf(json, sizeof(json), "{\"prompts\":[{\"name\":\"p%u\"}]%s}", page,
                         page < pages ? ",\"nextCursor\":\"c\\u0031\"" : "");
        assert_true((size_t)n < sizeof(json));
        answer(r, 200, "result", json);
    }
    world_until(w, &w->is_done);
}

TEST(test_probe__reads_a_hundred_pages)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"prompts\":{}}");
    world_want(&w);
    serve_pages(&w, 100);
    assert_int_equal(w.catalog->lists[CATALOG_PROMPTS].n, 100);
    world_close(&w);
}

TEST(test_probe__more_pages_than_a_hundred_are_none)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"prompts\":{}}");
    world_want(&w);
    for (unsigned page = 1; page <= 100; page++)
        answer(world_take(&w, "prompts/list"), 200, "result",
               "{\"prompts\":[],\"nextCursor\":\"x\"}");
    world_until(&w, &w.is_done);
    assert_int_equal(world_heard(&w, "prompts/list"), 100);
    assert_int_equal(w.catalog->lists[CATALOG_PROMPTS].n, 0);
    world_close(&w);
}

TEST(test_probe__a_change_of_one_list_reads_only_that_list)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, ALL_CAPABILITIES);
    can_lists(&w);
    world_catalog(&w);
    world_can(&w,
              (struct canned){"prompts/list", 200, "result", "{\"prompts\":[{\"name\":\"q\"}]}"});
    upstream_changed(w.up, CATALOG_PROMPTS);
    assert_int_equal(w.changed[CATALOG_PROMPTS], 1);
    struct catalog *c = world_catalog(&w);
    assert_non_null(catalog_find(c, CATALOG_PROMPTS, STR("q")));
    assert_null(catalog_find(c, CATALOG_PROMPTS, STR("p")));
    assert_non_null(catalog_tool(c, STR("t")));
    assert_non_null(catalog_find(c, CATALOG_TEMPLATES, STR("r:{x}")));
    assert_int_equal(world_heard(&w, "prompts/list"), 2);
    assert_int_equal(world_heard(&w, "tools/list"), 1);
    assert_int_equal(world_heard(&w, "resources/list"), 1);
    world_close(&w);
}

TEST(test_probe__a_change_of_resources_reads_their_templates_too)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, ALL_CAPABILITIES);
    can_lists(&w);
    world_catalog(&w);
    upstream_changed(w.up, CATALOG_RESOURCES);
    world_catalog(&w);
    assert_int_equal(world_heard(&w, "resources/list"), 2);
    assert_int_equal(world_heard(&w, "resources/templates/list"), 2);
    assert_int_equal(world_heard(&w, "tools/list"), 1);
    world_close(&w);
}

static void stream_tools(struct world *w, const char *name, bool announce)
{
    struct http_request *r = world_take(w, "tools/list");
    struct buf out;
    char json[256];

    buf_init(&out, 4096);
    snprintf(json, sizeof(json),
             "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"tools\":[{\"name\":\"%s\"}]}}",
             request_id(r), name);
    if (announce)
        sse_write(&out, STR_NONE, STR_NONE,
                  STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"));
    sse_write(&out, STR_NONE, STR_NONE, str_of(json));
    http_stream_begin(r, 200, "text/event-stream", STR_NONE, 1 << 20);
    assert_true(http_stream_write(r, buf_str(&out)));
    http_stream_end(r);
    buf_release(&out);
}

TEST(test_probe__a_list_that_changes_meanwhile_is_read_again_and_told_to_nobody)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"tools\":{\"listChanged\":true}}");
    world_want(&w);
    stream_tools(&w, "old", true);
    stream_tools(&w, "new", false);
    world_until(&w, &w.is_done);
    assert_non_null(catalog_tool(w.catalog, STR("new")));
    assert_null(catalog_tool(w.catalog, STR("old")));
    assert_int_equal(w.changed[CATALOG_TOOLS], 0);
    assert_int_equal(w.said.n, 0);
    world_close(&w);
}

TEST(test_probe__a_list_that_always_changes_is_read_three_times)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"tools\":{\"listChanged\":true}}");
    world_want(&w);
    for (int i = 0; i < 3; i++)
        stream_tools(&w, "t", true);
    world_until(&w, &w.is_done);
    assert_non_null(catalog_tool(w.catalog, STR("t")));
    assert_int_equal(world_heard(&w, "tools/list"), 3);
    world_close(&w);
}

#define MIRRORED(name, type)                                                                       \
    "{\"name\":\"" name "\",\"inputSchema\":{\"properties\":{\"a\":{\"type\":\"" type              \
    "\",\"x-mcp-header\":\"A\"}}}}"
#define MIRRORING_TOOLS                                                                            \
    "{\"tools\":[" MIRRORED("bad", "number") "," MIRRORED("good", "string") ",{\"name\":\"t\"}]}"

TEST(test_probe__tools_with_invalid_mirrors_are_left_out_of_a_modern_list)
{
    struct world w;
    world_open(&w, "");
    world_modern(&w, "{\"tools\":{}}");
    world_can(&w, (struct canned){"tools/list", 200, "result", MIRRORING_TOOLS});
    struct catalog *c = world_catalog(&w);
    assert_null(catalog_tool(c, STR("bad")));
    assert_str(catalog_tool(c, STR("good"))->name, "good");
    assert_str(catalog_tool(c, STR("t"))->name, "t");
    assert_int_equal(c->lists[CATALOG_TOOLS].n, 2);
    world_close(&w);
}

TEST(test_probe__mirrors_mean_nothing_to_a_legacy_server)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{\"tools\":{}}");
    world_can(&w, (struct canned){"tools/list", 200, "result", MIRRORING_TOOLS});
    assert_non_null(catalog_tool(world_catalog(&w), STR("bad")));
    world_close(&w);
}

TEST(test_probe__a_version_that_the_server_names_is_asked_for_again)
{
    struct world w;
    world_open(&w, "");
    world_modern(&w, "{}");
    world_can(&w, (struct canned){"server/discover", 400, "error",
                                  "{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":["
                                  "\"2026-07-28\"]}}",
                                  .once = true});
    assert_int_equal(world_catalog(&w)->era, MCP_MODERN);
    assert_int_equal(world_heard(&w, "server/discover"), 2);
    assert_int_equal(world_heard(&w, "initialize"), 0);
    world_close(&w);
}

TEST(test_probe__a_server_that_names_only_other_versions_is_legacy)
{
    struct world w;
    world_open(&w, "");
    world_legacy(&w, "{}");
    world_can(&w, (struct canned){"server/discover", 400, "error",
                                  "{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":["
                                  "\"2025-11-25\"]}}"});
    assert_int_equal(world_catalog(&w)->era, MCP_LEGACY);
    assert_int_equal(world_heard(&w, "server/discover"), 1);
    world_close(&w);
}
