/* SPDX-License-Identifier: Apache-2.0 */
/* TOML as JSON: every kind of value, tables, and what is refused where. */
#include "test.h"

#include "config/toml.h"

static struct error err;

static bool convert(const char *text, struct buf *out)
{
    struct arena *mem = arena_new(SIZE_MAX);
    bool ok;

    buf_init(out, SIZE_MAX);
    ok = toml_to_json(str_of(text), mem, out, &err);
    arena_free(mem);
    return ok;
}

TEST(test_toml__values_and_tables_become_json)
{
    static const struct {
        const char *toml, *json;
    } cases[] = {
        {"", "{}"},
        {"# c\n\n", "{}"},
        {"\xef\xbb\xbf"
         "a = 1",
         "{\"a\":1}"},
        {"a = \"x\\t\\u00e9\\\"\" # c\r\nb = 'C:\\x'\r\n",
         "{\"a\":\"x\\t\xc3\xa9\\\"\",\"b\":\"C:\\\\x\"}"},
        {"a = \"\"\"\nx \\\n   y\n\"z\"\"\"\"", "{\"a\":\"x y\\n\\\"z\\\"\"}"},
        {"a = '''\nx\\n'y'''", "{\"a\":\"x\\\\n'y\"}"},
        {"a = 1_000\nb = -3\nc = +4\nd = 0xff\ne = 0o17\nf = 0b11",
         "{\"a\":1000,\"b\":-3,\"c\":4,\"d\":255,\"e\":15,\"f\":3}"},
        {"a = 1.5\nb = 1e3\nc = true\nd = false", "{\"a\":1.5,\"b\":1e3,\"c\":true,\"d\":false}"},
        {"a = 2026-01-02T03:04:05Z\nb = 2026-01-02 03:04:05\nc = 03:04:05",
         "{\"a\":\"2026-01-02T03:04:05Z\",\"b\":\"2026-01-02 03:04:05\",\"c\":\"03:04:05\"}"},
        {"a = [ 1, # c\n  \"x\",\n]\nb = []", "{\"a\":[1,\"x\"],\"b\":[]}"},
        {"a = { b = 1, c.d = \"e\" }\nf = {}", "{\"a\":{\"b\":1,\"c\":{\"d\":\"e\"}},\"f\":{}}"},
        {"a.b.\"c d\" = 1\na.e = 2", "{\"a\":{\"b\":{\"c d\":1},\"e\":2}}"},
        {"[mcp_servers.\"a b\"]\ncommand = \"x\"\n[mcp_servers.\"a b\".env]\nK = \"v\"\n",
         "{\"mcp_servers\":{\"a b\":{\"command\":\"x\",\"env\":{\"K\":\"v\"}}}}"},
        {"[a.b]\n[a]\nx = 1", "{\"a\":{\"b\":{},\"x\":1}}"},
        {"[[a]]\nx = 1\n[[a]]\nx = 2\n[a.b]\ny = 3",
         "{\"a\":[{\"x\":1},{\"x\":2,\"b\":{\"y\":3}}]}"},
    };
    struct buf out;

    for (size_t i = 0; i < countof(cases); i++) {
        if (!convert(cases[i].toml, &out))
            fail_msg("%s: %s", cases[i].toml, err.text);
        assert_string_equal(out.p, cases[i].json);
        buf_release(&out);
    }
}

TEST(test_toml__mistakes_are_named_with_their_place)
{
    static const struct {
        const char *toml, *words;
    } cases[] = {
        {"a = 1\na = 2", "line 2, column 1: this key occurs twice"},
        {"[a]\n[a]", "line 2, column 1: this table occurs twice"},
        {"a.b = 1\n[a]", "line 2, column 1"},
        {"a = {b = 1}\na.c = 2", "line 2, column 1: this key has a value already"},
        {"a = {b = 1}\n[a.c]", "line 2, column 1: this key has a value already"},
        {"a = 1\n[[a]]", "line 2, column 1"},
        {"a = \"x\ny\"", "line 1, column 7: a string ends on its line"},
        {"a = \"\\q\"", "column 7: this escape sequence"},
        {"a = \"\\ud800\"", "not a Unicode character"},
        {"a = \"\xff\"", "not UTF-8"},
        {"a = \"\x01\"", "control bytes"},
        {"a = 1 b = 2", "line 1, column 7: a new line"},
        {"a = ", "the text ends too early"},
        {"a = nope", "column 5: a value is expected"},
        {"a = 01", "column 5: a value is expected"},
        {"a = 1__0", "column 5: a value is expected"},
        {"a = inf", "inf and nan"},
        {"a = 0xffffffffffffffffff", "not a number"},
        {"a = [1 2]", "column 8: a comma or ]"},
        {"a = {b = 1,}", "a key is expected"},
        {"= 1", "line 1, column 1: a key is expected"},
        {"a\n", "an = is expected"},
        {"[a\n", "] is expected"},
        {"{\"mcpServers\": {}}", "line 1, column 1: a key is expected"},
    };
    struct buf out;

    for (size_t i = 0; i < countof(cases); i++) {
        if (convert(cases[i].toml, &out))
            fail_msg("%s was accepted as %s", cases[i].toml, out.p);
        if (!strstr(err.text, cases[i].words))
            fail_msg("%s: %s", cases[i].toml, err.text);
        assert_int_equal(err.code, ERR_CONFIG);
        assert_int_equal(out.n, 0);
        buf_release(&out);
    }
}

/* a = [[[…]]] with this many brackets */
static bool nested(int depth)
{
    struct buf text, out;
    bool ok;

    buf_init(&text, SIZE_MAX);
    buf_addz(&text, "a = ");
    for (int i = 0; i < depth; i++)
        buf_addc(&text, '[');
    for (int i = 0; i < depth; i++)
        buf_addc(&text, ']');
    ok = convert(text.p, &out);
    buf_release(&text);
    buf_release(&out);
    return ok;
}

TEST(test_toml__depth_is_limited)
{
    assert_true(nested(32));
    assert_false(nested(33));
    assert_non_null(strstr(err.text, "nested too deeply"));
}
