/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a name or a uri is, on the endpoint of all servers. */
#include "test.h"

#include "profile/plan.h"

struct offer {
    const char *resources, *templates; /* result objects; NULL: the server has no resources */
};

static struct catalog *catalog_of(const struct offer *offer)
{
    struct catalog *c = catalog_new(MCP_LEGACY);
    struct arena *mem = arena_new(1 << 20);
    struct str cursor;
    struct error err;
    struct js_doc doc;

    assert_true(js_parse(
        offer->resources
            ? STR("{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"resources\":{}}}")
            : STR("{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}}}"),
        &js_limits_upstream, mem, &doc, NULL));
    assert_true(catalog_take_server(c, &doc, js_root(&doc), &err));
    if (offer->resources) {
        assert_true(js_parse(str_of(offer->resources), &js_limits_upstream, mem, &doc, NULL));
        assert_true(catalog_take_page(c, CATALOG_RESOURCES, &doc, js_root(&doc), &cursor, &err));
        assert_true(js_parse(str_of(offer->templates), &js_limits_upstream, mem, &doc, NULL));
        assert_true(catalog_take_page(c, CATALOG_TEMPLATES, &doc, js_root(&doc), &cursor, &err));
    }
    arena_free(mem);
    return c;
}

/* The position of the server that `uri` belongs to among the offers, or -1. */
static int owner_of(const struct offer *offers, size_t n, const char *uri)
{
    struct plan_part parts[4] = {0};
    struct plan p = {.parts = parts, .n = n};
    struct plan_part *found;

    for (size_t i = 0; i < n; i++)
        parts[i].catalog =
            offers[i].resources || offers[i].templates ? catalog_of(&offers[i]) : NULL;
    found = plan_find_uri(&p, str_of(uri));
    for (size_t i = 0; i < n; i++)
        catalog_unref(parts[i].catalog);
    return found ? (int)(found - parts) : -1;
}

#define NOTHING "{\"resources\":[]}", "{\"resourceTemplates\":[]}"

TEST(test_route_split__takes_the_first_separator)
{
    static const struct {
        const char *full, *server, *name;
    } rows[] = {
        {"files__read", "files", "read"},
        {"files__a__b", "files", "a__b"},
        {"files___x", "files", "_x"},
        {"a__\xc3\xa9", "a", "\xc3\xa9"},
        {"files_read", NULL, NULL},
        {"", NULL, NULL},
        {"__read", NULL, NULL},
        {"files__", NULL, NULL},
        {"__", NULL, NULL},
        {"_", NULL, NULL},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct str server = STR("untouched"), name = STR("untouched");
        bool split = route_split(str_of(rows[i].full), &server, &name);
        assert_int_equal(split, rows[i].server != NULL);
        assert_true(str_eq(server, str_of(split ? rows[i].server : "untouched")));
        assert_true(str_eq(name, str_of(split ? rows[i].name : "untouched")));
    }
}

TEST(test_plan__a_uri_belongs_to_the_first_that_lists_it)
{
    static const struct offer offers[] = {
        {NULL, "tools only"},
        {"{\"resources\":[{\"uri\":\"doc://a\",\"name\":\"a\"}]}", "{\"resourceTemplates\":[]}"},
        {"{\"resources\":[{\"uri\":\"doc://a\",\"name\":\"a\"},{\"uri\":\"doc://"
         "b\",\"name\":\"b\"}]}",
         "{\"resourceTemplates\":[]}"},
    };

    assert_int_equal(owner_of(offers, countof(offers), "doc://a"), 1);
    assert_int_equal(owner_of(offers, countof(offers), "doc://b"), 2);
    assert_int_equal(owner_of(offers, countof(offers), "doc://c"), -1);
}

TEST(test_plan__what_nobody_lists_belongs_to_a_template)
{
    static const struct offer offers[] = {
        {"{\"resources\":[]}", "{\"resourceTemplates\":[{\"uriTemplate\":\"one://{x}\"}]}"},
        {"{\"resources\":[{\"uri\":\"one://listed\",\"name\":\"l\"}]}",
         "{\"resourceTemplates\":[{\"uriTemplate\":\"two://{+x}\"}]}"},
    };

    assert_int_equal(owner_of(offers, 2, "one://x"), 0);
    assert_int_equal(owner_of(offers, 2, "one://listed"), 1); /* a list says more than a template */
    assert_int_equal(owner_of(offers, 2, "two://a/b"), 1);
    assert_int_equal(owner_of(offers, 2, "three://x"), -1);
}

TEST(test_plan__the_only_server_with_resources_may_know_more_than_it_lists)
{
    static const struct offer offers[] = {{NULL, "tools only"}, {NOTHING}, {NULL, NULL}};

    assert_int_equal(owner_of(offers, 3, "any://thing"), 1);
    static const struct offer two[] = {{NOTHING}, {NOTHING}};
    assert_int_equal(owner_of(two, 2, "any://thing"), -1);
}
