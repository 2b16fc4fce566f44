/* SPDX-License-Identifier: Apache-2.0 */
/* Which recorded call answers: by equal arguments, anew, in order, or none. */
#include "test.h"

#include "replay/canon.h"
#include "replay/mock_lines.h"
#include "replay/mock_server.h"

#include <stdio.h>

static const char *canon(const char *json)
{
    static char text[4096];
    struct arena *mem = arena_new(1 << 20);
    struct js_doc doc;
    struct buf out;

    buf_init(&out, sizeof(text));
    assert_true(js_parse(str_of(json), &js_limits_upstream, mem, &doc, NULL));
    canon_write(&doc, js_root(&doc), NULL, &out);
    snprintf(text, sizeof(text), "%.*s", STR_ARG(buf_str(&out)));
    buf_release(&out);
    arena_free(mem);
    return text;
}

TEST(test_canon__equal_values_have_equal_bytes)
{
    assert_string_equal(canon("{\"b\" : 1.50, \"a\":[ true,null,\"\\u0078\"]}"),
                        "{\"a\":[true,null,\"x\"],\"b\":15e-1}");
    assert_string_equal(canon("100"), "1e2");
    assert_string_equal(canon("{}"), "{}");
    assert_string_equal(canon("[]"), "[]");
    assert_string_equal(canon("{\"a\":1,\"a\":0}"), "{\"a\":1e0,\"a\":0}");
}

/* A mock of one tool, from arguments and answers. */
static struct mock *mock_of(const char *const list[][2], size_t n)
{
    struct mock *m = mock_new((size_t)1 << 20);
    struct error err;

    for (size_t i = 0; i < n; i++) {
        const struct recorded_call c = {
            .number = (int64_t)i + 1,
            .kind = RECORDED_CALL,
            .server = STR("shop"),
            .method = STR("tools/call"),
            .tool = STR("look"),
            .outcome = STR("ok"),
            .params = {.state = list[i][0] ? RECORDED_COMPLETE : RECORDED_REDACTED,
                       .bytes = STR("{}")},
            .arguments = str_of(list[i][0]),
            .result = {.state = list[i][1] ? RECORDED_COMPLETE : RECORDED_CUT,
                       .bytes = str_of(list[i][1]),
                       .length = 9000},
        };
        assert_true(mock_add(m, &c, &err));
    }
    return m;
}

/* "exact 1, again 1, unknown 0" for calls with these arguments. */
static const char *matches(const struct mock *m, const char *const *calls, size_t n)
{
    static char text[4096];
    struct mock_cursor *cursor = mock_cursor_new(m);
    const struct mock_tool *tool = mock_tool(m, STR("shop"), STR("look"));
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        enum mock_rule rule;
        const struct mock_call *c = mock_match(m, cursor, tool, str_of(calls[i]), &rule);
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %lld", i ? ", " : "",
                               mock_rule_names[rule], c ? (long long)c->number : 0);
    }
    mock_cursor_free(cursor);
    return text;
}
#define MATCHES(m, ...)                                                                            \
    matches(m, (const char *[]){__VA_ARGS__},                                                      \
            sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

TEST(test_match__takes_equal_arguments_first_then_anew_then_in_order)
{
    static const char *const list[][2] = {
        {"{\"a\":1}", "{}"}, {"{\"a\":2}", "{}"}, {"{\"a\":1.0}", "{}"}, {"{}", "{}"}};
    struct mock *m = mock_of(list, countof(list));

    assert_string_equal(MATCHES(m, "{\"a\":1}", "{\"a\": 1e0}", "{\"a\":1}", "{\"a\":1}"),
                        "exact 1, exact 3, again 1, again 3");
    assert_string_equal(MATCHES(m, "{\"x\":1}", "{\"a\":1}", "{\"a\":1}", "{\"a\":1}"),
                        "in order 1, exact 3, again 1, again 3");
    assert_string_equal(MATCHES(m, NULL, "{\"x\":1}", "{\"x\":1}", "{\"x\":1}", "{\"x\":1}"),
                        "exact 4, in order 1, in order 2, in order 3, unknown 0");
    /* Holdfast has taken a handle out of the arguments; another session_id is the tool's own. */
    assert_string_equal(MATCHES(m, "{\"session_id\":\"ses_x\",\"a\":2}"), "exact 2");
    assert_string_equal(MATCHES(m, "{\"session_id\":\"x\",\"a\":2}"), "in order 1");
    mock_free(m);
}

TEST(test_match__leaves_out_what_is_not_known)
{
    static const char *const list[][2] = {
        {"{\"a\":1}", NULL}, {NULL, "{\"r\":2}"}, {"{\"a\":3}", "{\"r\":3}"}};
    struct mock *m = mock_of(list, countof(list));
    const struct mock_tool *t = mock_tool(m, STR("shop"), STR("look"));

    assert_int_equal(t->recorded, 3);
    assert_int_equal(t->lacking, 1);
    assert_true(str_starts(t->lack, STR("the result of call 1 is not known: its bytes were cut")));
    assert_string_equal(MATCHES(m, "{\"a\":1}", "{\"a\":3}", "{\"a\":1}"),
                        "in order 2, exact 3, unknown 0");
    assert_null(mock_tool(m, STR("shop"), STR("buy")));
    mock_free(m);
}

TEST(test_answer__has_no_result_type_and_asks_nothing)
{
    static const char *const list[][2] = {
        {"{}", "{\"resultType\":\"complete\",\"content\":[ 1.0 ]}"},
        {"{}", "{\"content\":[],\"resultType\":\"complete\"}"},
        {"{}", "{\"resultType\":\"input_required\",\"inputRequests\":{}}"}};
    struct mock *m = mock_of(list, countof(list));

    assert_int_equal(m->n, 2);
    assert_true(str_eq(m->calls[0].answer, STR("{\"content\":[ 1.0 ]}")));
    assert_true(str_eq(m->calls[1].answer, STR("{\"content\":[]}")));
    assert_true(str_eq(m->tools[0].lack, STR("call 3 asked its client for input")));
    mock_free(m);
}

TEST(test_size__is_taken_at_the_limit_and_refused_past_it)
{
    static char big[600 * 1024];
    struct recorded_call c = {.kind = RECORDED_CALL,
                              .server = STR("shop"),
                              .method = STR("tools/call"),
                              .tool = STR("look"),
                              .outcome = STR("ok"),
                              .params = {.state = RECORDED_COMPLETE, .bytes = STR("{}")},
                              .result = {.state = RECORDED_COMPLETE}};
    struct mock *m = mock_new((size_t)1 << 20);
    struct error err;

    memset(big, '1', sizeof(big));
    c.result.bytes = str_n(big, sizeof(big));
    assert_true(mock_add(m, &c, &err));
    assert_false(mock_add(m, &c, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
    assert_non_null(strstr(err.text, "larger than 1 MiB; choose some of their tools"));
    mock_free(m);
}

/* A call of this tool whose result is a digest. */
static bool add_lacking(struct mock *m, struct str server, struct str tool, struct error *err)
{
    const struct recorded_call c = {.kind = RECORDED_CALL,
                                    .server = server,
                                    .method = STR("tools/call"),
                                    .tool = tool,
                                    .outcome = STR("ok"),
                                    .params = {.state = RECORDED_COMPLETE, .bytes = STR("{}")},
                                    .result = {.state = RECORDED_DIGEST}};

    return mock_add(m, &c, err);
}

TEST(test_lacking_calls__need_no_memory_each)
{
    struct mock *m = mock_new((size_t)1 << 20);
    struct error err;

    assert_true(add_lacking(m, STR("shop"), STR("look"), &err));
    size_t before = arena_used(m->mem);
    for (int i = 0; i < 1000; i++)
        assert_true(add_lacking(m, STR("shop"), STR("look"), &err));
    assert_int_equal(arena_used(m->mem), before);
    assert_int_equal(m->tools[0].lacking, 1001);
    mock_free(m);
}

TEST(test_servers_and_tools__are_taken_at_their_limits_and_refused_past_them)
{
    struct mock *m = mock_new((size_t)16 << 20);
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct error err;

    for (int i = 0; i < MOCK_SERVERS_MAX; i++)
        assert_true(add_lacking(m, arena_printf(mem, "s%d", i), STR("look"), &err));
    assert_true(add_lacking(m, STR("s1"), STR("look"), &err));
    assert_false(add_lacking(m, STR("more"), STR("look"), &err));
    assert_int_equal(err.code, ERR_TOO_LARGE);
    for (int i = MOCK_SERVERS_MAX; i < MOCK_TOOLS_MAX; i++)
        assert_true(add_lacking(m, STR("s1"), arena_printf(mem, "t%d", i), &err));
    assert_false(add_lacking(m, STR("s1"), STR("more"), &err));
    assert_non_null(strstr(err.text, "of more than 64 servers or 5000 tools; choose"));
    struct mock_servers *servers = mock_servers_new(m);
    assert_int_equal(servers->n, MOCK_SERVERS_MAX);
    assert_int_equal(servers->list[1].n_tools, MOCK_TOOLS_MAX - MOCK_SERVERS_MAX + 1);
    mock_servers_free(servers);
    mock_free(m);
    arena_free(mem);
}

TEST(test_server_names__that_no_server_may_have_are_left_out)
{
    static const struct str names[] = {{NULL, 0},  {"", 0},     {"..", 2},       {"a/b", 3},
                                       {"a\n", 2}, {"a\0b", 3}, {"\x1b[31m", 5}, {"\xff", 1}};
    struct mock *m = mock_new((size_t)1 << 20);
    struct error err;

    for (size_t i = 0; i < countof(names); i++)
        assert_true(add_lacking(m, names[i], STR("look"), &err));
    assert_int_equal(m->n_tools, 0);
    assert_true(add_lacking(m, STR("docs"), STR("read"), &err));
    assert_int_equal(m->n_tools, 1);
    mock_free(m);
}

TEST(test_definition__has_the_parameters_of_the_calls)
{
    static const char *const list[][2] = {
        {"{\"a\":1,\"b\":\"x\",\"c\":[]}", "{}"}, {"{\"a\":2.5,\"b\":{}}", "{}"}, {NULL, "{}"}};
    struct mock *m = mock_of(list, countof(list));
    struct buf out;

    buf_init(&out, 4096);
    mock_write_definition(m, &m->tools[0], &out);
    assert_non_null(strstr(out.p, "\"properties\":{\"a\":{\"type\":\"number\"},\"b\":{},"
                                  "\"c\":{\"type\":\"array\"}}"));
    buf_release(&out);
    mock_free(m);
}

static const char lines[] =
    "{\"type\":\"session\",\"format\":1,\"session\":{\"session_id\":\"ses_1\"},\"chain\":\"00\"}\n"
    "{\"type\":\"call\",\"number\":1,\"kind\":\"call\",\"server\":\"shop\",\"method\":\"tools/"
    "call\","
    "\"tool\":\"look\",\"outcome\":\"ok\",\"params\":{\"state\":\"complete\",\"json\":"
    "{\"name\":\"look\",\"arguments\":{\"a\":1}}},\"result\":{\"state\":\"complete\",\"base64\":"
    "\"e30=\"}}\n"
    "{\"type\":\"call\",\"number\":2,\"kind\":\"note\",\"server\":\"shop\",\"method\":"
    "\"resources/read\",\"outcome\":\"ok\",\"params\":{\"state\":\"none\"},\"result\":{\"state\":"
    "\"none\"}}\n"
    "{\"type\":\"end\",\"calls\":2}\n";

TEST(test_lines__are_read_in_pieces_of_any_size)
{
    struct str all = str_of(lines);

    for (size_t piece = 1; piece < all.n; piece += piece < 8 ? 1 : 97) {
        struct mock *m = mock_new((size_t)1 << 20);
        struct mock_lines l;
        struct error err;
        mock_lines_begin(&l, m);
        for (size_t at = 0; at < all.n; at += piece)
            assert_true(mock_lines_take(
                &l, str_n(all.p + at, all.n - at < piece ? all.n - at : piece), &err));
        assert_true(mock_lines_end(&l, &err));
        assert_string_equal(l.session, "ses_1");
        assert_int_equal(m->n, 1);
        assert_int_equal(m->tools[0].recorded, 1);
        assert_true(str_eq(m->calls[0].answer, STR("{}")));
        assert_true(str_eq(m->calls[0].arguments, STR("{\"a\":1}")));
        mock_lines_release(&l);
        mock_free(m);
    }
}

TEST(test_lines__that_are_no_recording_are_refused)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "it is empty"},
        {"[]\n", "line 1 is not of an exported session"},
        {"not json\n", "line 1 is not"},
        {"{\"type\":\"call\"}\n", "line 1 is not"},
        {"{\"type\":\"session\"}\n{\"type\":\"session\"}\n", "line 2 begins a second session"},
        {"{\"type\":\"session\"}\n{\"type\":\"call\",\"kind\":\"call\"}\n", "line 2 is not"},
        {"{\"type\":\"session\"}\n", "is cut off"},
        {"{\"type\":\"session\"}\n{\"type\":\"en", "line 2 is not"},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct mock *m = mock_new((size_t)1 << 20);
        struct mock_lines l;
        struct error err = {0};
        mock_lines_begin(&l, m);
        bool ok = mock_lines_take(&l, str_of(rows[i].text), &err) && mock_lines_end(&l, &err);
        assert_false(ok);
        assert_non_null(strstr(err.text, rows[i].why));
        mock_lines_release(&l);
        mock_free(m);
    }
}
