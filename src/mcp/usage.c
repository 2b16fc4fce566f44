/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/usage.h"

#define NAME_MAX 64
#define MEMBERS_MAX 256 /* of _meta that are looked at */

static const char *const total_names[] = {"total_tokens", "totalTokens", "tokens", "tokens_used",
                                          "tokensUsed"};
static const char *const part_names[][3] = {
    {"input_tokens", "inputTokens", "prompt_tokens"},
    {"output_tokens", "outputTokens", "completion_tokens"},
};
static const char *const camel_names[] = {"promptTokens", "completionTokens"};

static int64_t number_in(const struct js_doc *doc, const struct js_node *object, const char *name)
{
    int64_t n;
    if (!js_to_i64(doc, js_get(doc, object, str_of(name)), &n) || n < 0 || n > MCP_TOKENS_MAX)
        return 0;
    return n;
}

static int64_t part_in(const struct js_doc *doc, const struct js_node *usage, size_t part)
{
    int64_t n = number_in(doc, usage, camel_names[part]);
    for (size_t i = 0; !n && i < countof(part_names[part]); i++)
        n = number_in(doc, usage, part_names[part][i]);
    return n;
}

static int64_t of_usage(const struct js_doc *doc, const struct js_node *usage)
{
    int64_t n = 0;
    if (!js_type_is(usage, JS_OBJECT))
        return 0;
    for (size_t i = 0; !n && i < countof(total_names); i++)
        n = number_in(doc, usage, total_names[i]);
    return n ? n : part_in(doc, usage, 0) + part_in(doc, usage, 1);
}

/* The name of a member without its prefix. */
static struct str bare(struct str raw)
{
    size_t at = raw.n;
    if (raw.n < 2 || raw.n > NAME_MAX)
        return STR("");
    while (at > 1 && raw.p[at - 1] != '/')
        at--;
    return str_n(raw.p + at, raw.n - at - 1); /* without the quote */
}

static int64_t of_member(const struct js_doc *doc, const struct js_node *key)
{
    struct str name = bare(js_raw(doc, key));
    int64_t n;

    if (str_eq(name, STR("usage")))
        return of_usage(doc, js_value_of(key));
    for (size_t i = 0; i < countof(total_names); i++)
        if (str_eq(name, str_of(total_names[i])) && js_to_i64(doc, js_value_of(key), &n) && n > 0 &&
            n <= MCP_TOKENS_MAX)
            return n;
    return 0;
}

static int64_t of_meta(const struct js_doc *doc, const struct js_node *meta)
{
    int64_t n = 0;
    unsigned seen = 0;

    if (!js_type_is(meta, JS_OBJECT))
        return 0;
    for (const struct js_node *key = js_first(doc, meta); key && !n && seen++ < MEMBERS_MAX;
         key = js_next(doc, meta, js_value_of(key)))
        n = of_member(doc, key);
    return n;
}

int64_t mcp_result_tokens(const struct js_doc *doc, const struct js_node *result)
{
    if (!js_type_is(result, JS_OBJECT))
        return 0;
    int64_t n = of_meta(doc, js_get(doc, result, STR("_meta")));
    if (!n)
        n = of_usage(doc, js_get(doc, result, STR("usage")));
    if (!n)
        n = of_usage(doc, js_get(doc, js_get(doc, result, STR("structuredContent")), STR("usage")));
    return n > MCP_TOKENS_MAX ? 0 : n;
}
