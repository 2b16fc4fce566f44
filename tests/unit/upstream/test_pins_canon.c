/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "upstream/pins_canon.h"

static bool is_canon(const char *definition, const char *expected)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    bool same = tool_canon(str_of(definition), &out) && str_eq(buf_str(&out), str_of(expected));
    if (!same)
        print_message("%.*s\n", STR_ARG(buf_str(&out)));
    buf_release(&out);
    return same;
}

TEST(test_tool_canon__order_of_keys_and_blanks_do_not_matter)
{
    const char *expected = "{\"annotations\":{\"readOnlyHint\":true},\"description\":\"d\","
                           "\"inputSchema\":{\"properties\":{\"a\":{},\"b\":[1,{\"x\":1,\"y\":2}]},"
                           "\"type\":\"object\"},\"name\":\"read\"}";
    assert_true(is_canon("{\"name\":\"read\",\"description\":\"d\",\"inputSchema\":{\"type\":"
                         "\"object\",\"properties\":{\"b\":[1,{\"y\":2,\"x\":1}],\"a\":{}}},"
                         "\"annotations\":{\"readOnlyHint\":true}}",
                         expected));
    assert_true(is_canon("{ \"annotations\" : { \"readOnlyHint\" : true },\n \"inputSchema\": "
                         "{\"properties\":{\"a\":{}, \"b\":[ 1, {\"x\":1,\"y\":2} ]},\"type\":"
                         "\"object\"},\"name\":\"re\\u0061d\",\"description\":\"d\"}",
                         expected));
}

TEST(test_tool_canon__order_of_elements_does_matter)
{
    assert_true(is_canon("{\"name\":\"a\",\"inputSchema\":{\"required\":[\"b\",\"a\"]}}",
                         "{\"inputSchema\":{\"required\":[\"b\",\"a\"]},\"name\":\"a\"}"));
}

TEST(test_tool_canon__takes_what_tells_a_model_something_and_no_more)
{
    assert_true(is_canon("{\"name\":\"a\",\"title\":\"t\",\"_meta\":{\"now\":1},\"icons\":[]}",
                         "{\"name\":\"a\",\"title\":\"t\"}"));
    assert_true(
        is_canon("{\"outputSchema\":{},\"name\":\"a\"}", "{\"name\":\"a\",\"outputSchema\":{}}"));
}

TEST(test_tool_canon__what_is_no_object_is_refused)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_false(tool_canon(STR("[1]"), &out));
    assert_false(tool_canon(STR("{\"name\":"), &out));
    assert_int_equal(out.n, 0);
    buf_release(&out);
}

TEST(test_tool_canon_pretty__breaks_long_strings_behind_sentences)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_true(tool_canon_pretty(
        STR("{\"a\":\"One. Two\\nthree\",\"b\":[],\"c\":[1,{\"d\":null}]}"), &out));
    assert_str(buf_str(&out), "{\n"
                              "  \"a\": \"One. \n"
                              "      Two\\n\n"
                              "      three\",\n"
                              "  \"b\": [],\n"
                              "  \"c\": [\n"
                              "    1,\n"
                              "    {\n"
                              "      \"d\": null\n"
                              "    }\n"
                              "  ]\n"
                              "}\n");
    buf_release(&out);
}

/* Readers differ about which of two members counts, so both do. */
TEST(test_tool_canon__a_member_that_is_there_twice_counts_twice)
{
    assert_true(is_canon("{\"name\":\"a\",\"description\":\"good\",\"description\":\"evil\"}",
                         "{\"description\":\"good\",\"description\":\"evil\",\"name\":\"a\"}"));
    assert_true(is_canon("{\"descr\\u0069ption\":\"evil\",\"name\":\"a\",\"description\":\"good\"}",
                         "{\"description\":\"evil\",\"description\":\"good\",\"name\":\"a\"}"));
}

static size_t lines_of(size_t text, char fill)
{
    struct buf canon, out;
    size_t n = 0;
    buf_init(&canon, 1 << 20);
    buf_init(&out, 1 << 20);
    buf_addc(&canon, '"');
    for (size_t i = 0; i < text; i++)
        buf_addc(&canon, fill);
    buf_addc(&canon, '"');
    assert_true(tool_canon_pretty(buf_str(&canon), &out));
    for (size_t i = 0; i < out.n; i++)
        n += out.p[i] == '\n';
    buf_release(&canon);
    buf_release(&out);
    return n;
}

TEST(test_tool_canon_pretty__a_string_has_160_bytes_a_line_with_its_quotes)
{
    assert_int_equal(lines_of(158, 'x'), 1);
    assert_int_equal(lines_of(159, 'x'), 2);
}
