/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/arena.h"
#include "mcp/usage.h"

static int64_t tokens_of(const char *result)
{
    struct arena *mem = arena_new(1 << 20);
    struct js_doc doc;
    assert_true(js_parse(str_of(result), &js_limits_upstream, mem, &doc, NULL));
    int64_t n = mcp_result_tokens(&doc, js_root(&doc));
    arena_free(mem);
    return n;
}

TEST(test_usage__is_read_where_servers_put_it)
{
    assert_int_equal(tokens_of("{\"_meta\":{\"usage\":{\"total_tokens\":12}}}"), 12);
    assert_int_equal(tokens_of("{\"_meta\":{\"a\":{},\"example.com/usage\":{\"totalTokens\":13}}}"),
                     13);
    assert_int_equal(tokens_of("{\"_meta\":{\"x/y/tokens\":14}}"), 14);
    assert_int_equal(tokens_of("{\"_meta\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":6}}}"),
                     11);
    assert_int_equal(tokens_of("{\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}"), 12);
    assert_int_equal(tokens_of("{\"structuredContent\":{\"usage\":{\"inputTokens\":3}}}"), 3);
    assert_int_equal(tokens_of("{\"usage\":{\"promptTokens\":1,\"completionTokens\":1,\"x\":9}}"),
                     2);
    /* the first place that reports some */
    assert_int_equal(tokens_of("{\"usage\":{\"tokens\":2},\"_meta\":{\"usage\":{\"tokens\":1}}}"),
                     1);
    assert_int_equal(tokens_of("{\"usage\":{\"tokens\":2},\"_meta\":{\"usage\":{}}}"), 2);
}

TEST(test_usage__anything_else_reports_nothing)
{
    static const char *const none[] = {
        "{}",
        "[]",
        "7",
        "{\"_meta\":[1]}",
        "{\"_meta\":{\"usage\":7}}",
        "{\"_meta\":{\"tokens\":-1}}",
        "{\"_meta\":{\"tokens\":\"12\"}}",
        "{\"_meta\":{\"tokens\":1.5}}",
        "{\"_meta\":{\"tokens/\":1}}",
        "{\"_meta\":{\"\":1}}",
        "{\"usage\":{\"total_tokens\":1000000000001}}",
        "{\"_meta\":{\"tokens\":9223372036854775807}}",
        "{\"content\":{\"usage\":{\"tokens\":1}}}",
    };
    for (size_t i = 0; i < countof(none); i++)
        assert_int_equal(tokens_of(none[i]), 0);
    assert_int_equal(tokens_of("{\"usage\":{\"total_tokens\":1000000000000}}"), MCP_TOKENS_MAX);
    assert_int_equal(tokens_of("{\"usage\":{\"input_tokens\":1000000000000,\"output_tokens\":1}}"),
                     0);
}
