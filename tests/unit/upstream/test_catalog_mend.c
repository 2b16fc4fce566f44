/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that break the specification's schema, and what is shown of them instead. */
#include "test.h"

#include "upstream/catalog.h"

static const char *mended(enum catalog_kind kind, const char *raw, struct arena *mem)
{
    struct js_doc doc;
    struct buf out;
    const char *text;

    buf_init(&out, 1 << 20);
    assert_true(js_parse(str_of(raw), &js_limits_upstream, mem, &doc, NULL));
    text = catalog_mend(kind, &doc, js_root(&doc), &out) ? arena_dup(mem, buf_str(&out)).p : NULL;
    buf_release(&out);
    return text;
}

TEST(test_catalog_mend__leaves_good_entries_alone)
{
    static const struct {
        enum catalog_kind kind;
        const char *raw;
    } rows[] = {
        {CATALOG_TOOLS, "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}"},
        {CATALOG_TOOLS, "{\"name\":\"a\",\"x\":null,\"inputSchema\":{\"type\":\"\\u006fbject\","
                        "\"properties\":{\"p\":{}},\"required\":[\"p\"],\"additionalProperties\":"
                        "false},\"annotations\":{\"readOnlyHint\":true},\"_meta\":{}}"},
        {CATALOG_PROMPTS, "{\"name\":\"a\",\"arguments\":[{\"name\":\"x\",\"required\":true}]}"},
        {CATALOG_RESOURCES, "{\"uri\":\"a:\",\"name\":\"n\",\"size\":3,\"annotations\":{"
                            "\"audience\":[\"user\"],\"priority\":0.5}}"},
        {CATALOG_TEMPLATES, "{\"uriTemplate\":\"a:{x}\",\"name\":\"n\"}"},
    };
    struct arena *mem = arena_new(1 << 20);

    for (size_t i = 0; i < countof(rows); i++)
        assert_null(mended(rows[i].kind, rows[i].raw, mem));
    arena_free(mem);
}

TEST(test_catalog_mend__fills_in_what_is_required_and_takes_out_what_is_wrong)
{
    static const struct {
        enum catalog_kind kind;
        const char *raw, *mended;
    } rows[] = {
        {CATALOG_TOOLS, "{\"name\":\"a\"}",
         "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}"},
        {CATALOG_TOOLS, "{\"name\":\"a\",\"inputSchema\":{}}",
         "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}"},
        {CATALOG_TOOLS, "{\"name\":\"a\",\"inputSchema\":7,\"z\": [1.50 ]}",
         "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"},\"z\":[1.50 ]}"},
        {CATALOG_TOOLS,
         "{\"name\":\"a\",\"inputSchema\":{\"type\":\"string\",\"properties\":[],\"$schema\":1}}",
         "{\"name\":\"a\",\"inputSchema\":{\"properties\":{},\"type\":\"object\"}}"},
        {CATALOG_TOOLS,
         "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":{}}",
         "{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}"},
        {CATALOG_PROMPTS,
         "{\"name\":\"a\",\"arguments\":[{},{\"name\":\"x\",\"required\":1},{"
         "\"name\":\"y\"}]}",
         "{\"name\":\"a\",\"arguments\":[{\"name\":\"x\"},{\"name\":\"y\"}]}"},
        {CATALOG_RESOURCES, "{\"uri\":\"a:\\u0062\",\"size\":null}",
         "{\"uri\":\"a:\\u0062\",\"name\":\"a:\\u0062\"}"},
        {CATALOG_TEMPLATES, "{\"uriTemplate\":\"a:{x}\",\"name\":false,\"title\":\"t\"}",
         "{\"uriTemplate\":\"a:{x}\",\"title\":\"t\",\"name\":\"a:{x}\"}"},
    };
    struct arena *mem = arena_new(1 << 20);

    for (size_t i = 0; i < countof(rows); i++) {
        const char *found = mended(rows[i].kind, rows[i].raw, mem);
        assert_non_null(found);
        assert_string_equal(found, rows[i].mended);
        assert_null(mended(rows[i].kind, found, mem)); /* once is enough */
    }
    arena_free(mem);
}
