/* SPDX-License-Identifier: Apache-2.0 */
/* Catalogs: what is kept of a server's lists, and that it is written back byte for byte. */
#include "test.h"

#include "upstream/catalog.h"

/* Parses `text` and hands the root to a take function; the catalog copies, so the rest may go. */
static bool take_page(struct catalog *c, enum catalog_kind kind, struct str text,
                      struct str *ret_cursor, struct error *err)
{
    struct arena *mem = arena_new(1u << 30);
    struct js_doc doc;
    assert_true(js_parse(text, &js_limits_upstream, mem, &doc, NULL));
    bool taken = catalog_take_page(c, kind, &doc, js_root(&doc), ret_cursor, err);
    arena_free(mem);
    return taken;
}

static void take_server(struct catalog *c, struct str text)
{
    struct arena *mem = arena_new(1u << 20);
    struct js_doc doc;
    struct error err;
    assert_true(js_parse(text, &js_limits_upstream, mem, &doc, NULL));
    assert_true(catalog_take_server(c, &doc, js_root(&doc), &err));
    arena_free(mem);
}

/* A page of n entries with distinct names. */
static void write_page(struct buf *out, enum catalog_kind kind, unsigned first, unsigned n)
{
    buf_addf(out, "{\"%.*s\":[", STR_ARG(catalog_kinds[kind].array_key));
    for (unsigned i = 0; i < n; i++)
        buf_addf(out, "%s{\"%.*s\":\"n%u\"}", i ? "," : "", STR_ARG(catalog_kinds[kind].name_key),
                 first + i);
    buf_addz(out, "]}");
}

static void check_written(const struct catalog *c, enum catalog_kind kind, struct catalog_writing w,
                          const char *expected, size_t count)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(catalog_write_items(c, kind, &w, &out), count);
    assert_string_equal(buf_str(&out).p, expected);
    buf_release(&out);
}

TEST(test_catalog__every_list_keeps_its_bytes)
{
    static const char *const pages[] = {
        [CATALOG_TOOLS] = "{\"tools\":[{ \"name\":\"a\" ,\"z\":1e400}]}",
        [CATALOG_PROMPTS] = "{\"prompts\":[{\"name\":\"a\\u0062\",\"x\":[ ]}]}",
        [CATALOG_RESOURCES] = "{\"resources\":[{\"uri\":\"f:\\/\\/x\",\"name\":\"n\"}]}",
        [CATALOG_TEMPLATES] = "{\"resourceTemplates\":[{\"uriTemplate\":\"f:{x}\"}]}",
    };
    static const char *const names[] = {"a", "ab", "f://x", "f:{x}"};
    struct catalog *c = catalog_new(MCP_LEGACY);
    struct error err;
    struct str cursor;

    for (unsigned k = 0; k < CATALOG_KINDS; k++) {
        assert_true(take_page(c, k, str_of(pages[k]), &cursor, &err));
        assert_null(cursor.p);
        const struct catalog_item *item = catalog_find(c, k, str_of(names[k]));
        assert_non_null(item);
        assert_non_null(memmem(pages[k], strlen(pages[k]), item->raw.p, item->raw.n));
        assert_int_equal(item->raw.p[item->raw.n - 1], '}');
        check_written(c, k, (struct catalog_writing){.max = SIZE_MAX}, item->raw.p, 1);
        for (unsigned other = k + 1; other < CATALOG_KINDS; other++)
            assert_null(catalog_find(c, other, str_of(names[k])));
    }
    catalog_unref(c);
}

TEST(test_catalog__a_prefix_changes_only_the_name)
{
    struct catalog *c = catalog_new(MCP_LEGACY);
    struct error err;
    struct str cursor;
    struct catalog_writing w = {.prefix = STR("files__"), .max = SIZE_MAX};

    assert_true(take_page(c, CATALOG_TOOLS,
                          STR("{\"tools\":[{\"title\":\"name\", \"name\" : \"r\\u0065ad\"}]}"),
                          &cursor, &err));
    assert_true(take_page(c, CATALOG_RESOURCES,
                          STR("{\"resources\":[{\"uri\":\"f:x\",\"name\":\"n\"}]}"), &cursor,
                          &err));
    check_written(c, CATALOG_TOOLS, w, "{\"title\":\"name\", \"name\" : \"files__r\\u0065ad\"}", 1);
    check_written(c, CATALOG_RESOURCES, w, "{\"uri\":\"f:x\",\"name\":\"n\"}", 1);
    catalog_unref(c);
}

TEST(test_catalog__pages_are_cut_where_asked)
{
    struct catalog *c = catalog_new(MCP_LEGACY);
    struct error err;
    struct str cursor;
    struct buf page;

    buf_init(&page, 1 << 20);
    write_page(&page, CATALOG_PROMPTS, 0, 3);
    assert_true(take_page(c, CATALOG_PROMPTS, buf_str(&page), &cursor, &err));
    check_written(c, CATALOG_PROMPTS, (struct catalog_writing){.from = 1, .max = 1},
                  "{\"name\":\"n1\"}", 1);
    check_written(c, CATALOG_PROMPTS, (struct catalog_writing){.from = 2, .max = SIZE_MAX},
                  "{\"name\":\"n2\"}", 1);
    check_written(c, CATALOG_PROMPTS, (struct catalog_writing){.from = 3, .max = 10}, "", 0);
    buf_release(&page);
    catalog_unref(c);
}

TEST(test_catalog__the_next_cursor_is_kept_raw)
{
    struct catalog *c = catalog_new(MCP_LEGACY);
    struct error err;
    struct str cursor = STR_NONE;

    assert_true(
        take_page(c, CATALOG_TOOLS, STR("{\"tools\":[],\"nextCursor\":\"a\\n\"}"), &cursor, &err));
    assert_string_equal(cursor.p, "\"a\\n\"");
    catalog_unref(c);
}

TEST(test_catalog__as_many_entries_as_allowed_and_no_more)
{
    for (unsigned kind = 0; kind < CATALOG_KINDS; kind++) {
        struct catalog *c = catalog_new(MCP_LEGACY);
        struct error err;
        struct str cursor;
        struct buf page;

        buf_init(&page, 4 << 20);
        write_page(&page, kind, 0, CATALOG_MAX_ITEMS);
        assert_true(take_page(c, kind, buf_str(&page), &cursor, &err));
        assert_int_equal(c->lists[kind].n, CATALOG_MAX_ITEMS);
        buf_reset(&page);
        write_page(&page, kind, CATALOG_MAX_ITEMS, 1);
        assert_false(take_page(c, kind, buf_str(&page), &cursor, &err));
        assert_int_equal(err.code, ERR_UPSTREAM);
        catalog_clear_list(c, kind);
        assert_int_equal(c->lists[kind].n, 0);
        assert_null(catalog_find(c, kind, STR("n1")));
        buf_release(&page);
        catalog_unref(c);
    }
}

TEST(test_catalog__the_first_of_two_equal_names_stands)
{
    struct catalog *c = catalog_new(MCP_LEGACY);
    struct error err;
    struct str cursor;

    assert_true(take_page(c, CATALOG_TOOLS,
                          STR("{\"tools\":[{\"name\":\"a\",\"v\":1},{\"name\":\"a\",\"v\":2}]}"),
                          &cursor, &err));
    check_written(c, CATALOG_TOOLS, (struct catalog_writing){.max = SIZE_MAX},
                  "{\"name\":\"a\",\"v\":1}", 1);
    catalog_unref(c);
}

TEST(test_catalog__capabilities_are_read)
{
    struct catalog *c = catalog_new(MCP_LEGACY);
    take_server(c, STR("{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"prompts\":"
                       "{\"listChanged\":true},\"resources\":{\"subscribe\":true},\"logging\":{},"
                       "\"completions\":{}}}"));
    assert_false(catalog_offers(c, "tools"));
    assert_true(catalog_offers(c, "prompts"));
    assert_true(catalog_offers(c, "resources"));
    assert_true(catalog_offers(c, "logging"));
    assert_true(catalog_offers(c, "completions"));
    assert_false(catalog_offers(c, "tasks"));
    assert_true(catalog_announces(c, CATALOG_PROMPTS));
    assert_false(catalog_announces(c, CATALOG_RESOURCES));
    assert_false(catalog_announces(c, CATALOG_TEMPLATES));
    assert_true(catalog_subscribes(c));
    catalog_unref(c);
}

TEST(test_catalog__templates_match_what_they_could_have_made)
{
    static const struct {
        const char *template, *uri;
        bool matches;
    } rows[] = {
        {"file:///x", "file:///x", true},
        {"file:///x", "file:///xy", false},
        {"note://{id}", "note://7", true},
        {"note://{id}", "note://", false},
        {"note://{id}", "note://a/b", false},
        {"note://{id}/body", "note://a/body", true},
        {"note://{id}/body", "note://a/body/x", false},
        {"test://template/{id}/data", "test://template/123/data", true},
        {"a{x}b{y}c", "aXbbYc", true},
        {"a{x}b{y}c", "abc", false},
        {"{a}x{b}x/z", "1x2x3x/z", true},
        {"file://{+path}", "file:///a/b/c", true},
        {"file://{+path}", "file://", true},
        {"file://{+path}.md", "file:///a.md/b.md", true},
        {"file://{+path}.md", "file:///a.md/b.txt", false},
        {"db://t{/id*}", "db://t/1/2", true},
        {"db://t{?q,r}", "db://t?q=1&r=2", true},
        {"db://t{?q}", "db://t", true},
        {"{+a}/{b}.txt", "x/y/z.txt", true},
        {"{+a}/{b}.txt", "x/y/.txt", false},
        {"a{b", "a{b", true},
        {"a{}b", "a{}b", true},
        {"", "", true},
        {"", "x", false},
    };
    for (size_t i = 0; i < countof(rows); i++)
        if (catalog_template_matches(str_of(rows[i].template), str_of(rows[i].uri)) !=
            rows[i].matches)
            fail_msg("%s against %s", rows[i].template, rows[i].uri);
}

TEST(test_catalog__a_hopeless_template_is_given_up)
{
    struct buf template, uri;
    buf_init(&template, 8192);
    buf_init(&uri, 16384);
    for (int i = 0; i < 500; i++)
        buf_addz(&template, "{+a}x");
    buf_addc(&template, 'y');
    for (int i = 0; i < 8192; i++)
        buf_addc(&uri, 'x');
    assert_false(catalog_template_matches(buf_str(&template), buf_str(&uri)));
    assert_true(catalog_template_matches(STR("{+a}"), buf_str(&uri)));
    buf_addc(&uri, 'x');
    assert_false(catalog_template_matches(STR("{+a}"), buf_str(&uri)));
    buf_release(&template);
    buf_release(&uri);
}
