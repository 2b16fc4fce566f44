/* SPDX-License-Identifier: Apache-2.0 */
/* Which declarations of mirrored arguments are valid. */
#include "test.h"

#include "base/buf.h"
#include "mcp/mirror.h"

static bool is_valid(struct str schema)
{
    struct arena *mem = arena_new(1u << 20);
    struct js_doc doc;
    assert_true(js_parse(schema, &js_limits_upstream, mem, &doc, NULL));
    bool valid = mcp_mirror_fault(&doc, js_root(&doc), mem) == NULL;
    arena_free(mem);
    return valid;
}

#define PROPERTY(text) "{\"properties\":{\"a\":" text "}}"
#define REGION "{\"type\":\"string\",\"x-mcp-header\":\"Region\"}"

TEST(test_mirror__declarations_are_judged_as_the_specification_says)
{
    static const struct {
        bool valid;
        const char *schema;
    } rows[] = {
        {true, "{}"},
        {true, PROPERTY(REGION)},
        {true, PROPERTY("{\"type\":\"integer\",\"x-mcp-header\":\"n-1_x.y\"}")},
        {true, PROPERTY("{\"type\":\"boolean\",\"x-mcp-header\":\"B\"}")},
        {true, PROPERTY("{\"type\":\"object\",\"properties\":{\"b\":" REGION "}}")},
        {true, PROPERTY("{\"enum\":[{\"x-mcp-header\":\"data, no keyword\"}]}")},
        {true, "{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}"},
        {false, PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"\"}")},
        {false, PROPERTY("{\"type\":\"string\",\"x-mcp-header\":7}")},
        {false, PROPERTY("{\"type\":\"number\",\"x-mcp-header\":\"A\"}")},
        {false, PROPERTY("{\"type\":\"object\",\"x-mcp-header\":\"A\"}")},
        {false, PROPERTY("{\"type\":\"array\",\"x-mcp-header\":\"A\"}")},
        {false, PROPERTY("{\"type\":\"null\",\"x-mcp-header\":\"A\"}")},
        {false, PROPERTY("{\"x-mcp-header\":\"A\"}")},
        {false, PROPERTY("{\"type\":[\"string\"],\"x-mcp-header\":\"A\"}")},
        {false, PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"A B\"}")},
        {false, PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"A:B\"}")},
        {false, PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"R\xc3\xa9gion\"}")},
        {false, PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"A\\t1\"}")},
        {false, PROPERTY("{\"type\":\"string\",\"x-mcp-header\":\"A\\u0000\"}")},
        {false, "{\"properties\":{\"a\":" REGION ",\"b\":" REGION "}}"},
        {false, "{\"properties\":{\"a\":" REGION
                ",\"b\":{\"type\":\"string\",\"x-mcp-header\":\"rEGION\"}}}"},
        {false, "{\"type\":\"string\",\"x-mcp-header\":\"Root\"}"},
        {false, "{\"items\":" REGION "}"},
        {false, "{\"oneOf\":[{},{\"properties\":{\"a\":" REGION "}}]}"},
        {false, "{\"$defs\":{\"d\":" REGION "}}"},
        {false, PROPERTY("{\"additionalProperties\":" REGION "}")},
        {false, PROPERTY("{\"not\":{\"if\":" REGION "}}")},
    };
    for (size_t i = 0; i < countof(rows); i++)
        if (is_valid(str_of(rows[i].schema)) != rows[i].valid)
            fail_msg("%s", rows[i].schema);
}

static void write_schema(struct buf *out, unsigned declarations)
{
    buf_addz(out, "{\"properties\":{");
    for (unsigned i = 0; i < declarations; i++)
        buf_addf(out, "%s\"p%u\":{\"type\":\"string\",\"x-mcp-header\":\"H%u\"}", i ? "," : "", i,
                 i);
    buf_addz(out, "}}");
}

TEST(test_mirror__as_many_declarations_as_are_mirrored_and_no_more)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    write_schema(&text, MCP_MIRROR_MAX);
    assert_true(is_valid(buf_str(&text)));
    buf_reset(&text);
    write_schema(&text, MCP_MIRROR_MAX + 1);
    assert_false(is_valid(buf_str(&text)));
    buf_release(&text);
}

TEST(test_mirror__names_are_bounded)
{
    char name[MCP_MIRROR_NAME_MAX + 1];
    memset(name, 'n', sizeof(name));
    assert_true(mcp_mirror_is_name(str_n(name, MCP_MIRROR_NAME_MAX)));
    assert_false(mcp_mirror_is_name(str_n(name, sizeof(name))));
}
