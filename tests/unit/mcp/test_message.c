/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "mcp/header.h"
#include "mcp/message.h"
#include "mcp/version.h"

static bool parses(const char *text, enum err_code *ret_code, struct str *ret_id)
{
    static struct arena *mem;
    struct mcp_message m;
    struct error err = {0};
    bool is_batch;

    arena_free(mem);
    mem = arena_new(1 << 20);
    bool ok = mcp_parse_request(str_of(text), mem, &m, ret_id, &is_batch, &err);
    *ret_code = err.code;
    return ok;
}

TEST(test_message__refuses_what_two_readers_could_read_differently)
{
    static const struct {
        const char *text;
        enum err_code code;
    } table[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"method\":\"b\"}", ERR_BAD_INPUT},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"Method\":\"b\"}", ERR_BAD_INPUT},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"Name\":\"b\"}}",
         ERR_BAD_INPUT},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"x\":{\"k\":1,\"k\":2}}}",
         ERR_BAD_INPUT},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", ERR_BAD_INPUT},
        {"{\"id\":1,\"method\":\"a\"}", ERR_BAD_INPUT},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", ERR_BAD_INPUT},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}", ERR_BAD_INPUT},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", ERR_BAD_INPUT},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}", ERR_BAD_PARAMS},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}", ERR_BAD_PARAMS},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"_meta\":1}}",
         ERR_BAD_PARAMS},
        {"[]", ERR_BAD_INPUT},
        {"\"x\"", ERR_BAD_INPUT},
        {"{", ERR_PARSE},
        {"", ERR_PARSE},
    };
    for (size_t i = 0; i < countof(table); i++) {
        enum err_code code;
        struct str id;
        assert_false(parses(table[i].text, &code, &id));
        assert_int_equal(code, table[i].code);
    }
}

TEST(test_message__keeps_the_id_byte_for_byte_even_when_it_refuses)
{
    enum err_code code;
    struct str id;
    assert_true(parses("{\"jsonrpc\":\"2.0\",\"id\": 0 ,\"method\":\"a\"}", &code, &id));
    assert_str(id, "0");
    assert_true(parses("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"method\":\"a\"}", &code, &id));
    assert_str(id, "\"\\u0041\"");
    assert_false(
        parses("{\"jsonrpc\":\"2.0\",\"id\":1.50,\"method\":\"a\",\"params\":3}", &code, &id));
    assert_str(id, "1.50");
}

TEST(test_header__sentinel_goes_there_and_back)
{
    static const char *const values[] = {"plain",     " lead",        "trail ",
                                         "h\xc3\xa9", "=?base64?x?=", "a\nb"};
    for (size_t i = 0; i < countof(values); i++) {
        struct arena *mem = arena_new(1 << 16);
        struct buf b;
        struct str back;
        buf_init(&b, 1 << 16);
        mcp_header_encode(&b, str_of(values[i]));
        assert_null(memchr(b.p, '\n', b.n));
        assert_true(mcp_header_decode(buf_str(&b), mem, &back));
        assert_true(str_eq(back, str_of(values[i])));
        buf_release(&b);
        arena_free(mem);
    }
}

TEST(test_header__half_a_sentinel_is_literal_and_a_bad_one_is_refused)
{
    struct arena *mem = arena_new(1 << 16);
    struct str back;
    assert_true(mcp_header_decode(STR("=?base64?abc"), mem, &back));
    assert_str(back, "=?base64?abc");
    assert_false(mcp_header_decode(STR("=?base64?abc?="), mem, &back));
    assert_false(mcp_header_decode(STR("=?base64?a*==?="), mem, &back));
    assert_true(mcp_header_decode(STR("=?base64?ZWNobw==?="), mem, &back));
    assert_str(back, "echo");
    arena_free(mem);
}

TEST(test_version__initialize_is_answered_in_the_clients_version_or_our_newest_legacy)
{
    assert_str(mcp_version_negotiate(STR("2024-11-05"))->name, "2024-11-05");
    assert_str(mcp_version_negotiate(STR("2025-06-18"))->name, "2025-06-18");
    assert_str(mcp_version_negotiate(STR("1999-01-01"))->name, "2025-11-25");
    assert_str(mcp_version_negotiate(STR("2026-07-28"))->name, "2025-11-25");
}

TEST(test_response__of_a_shape_that_no_client_could_read_is_named)
{
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"{\"id\":1,\"result\":{}}", NULL},
        {"{\"id\":1,\"error\":{\"code\":-32000,\"message\":\"\"}}", NULL},
        {"{\"id\":1,\"result\":7,\"error\":{\"code\":1,\"message\":\"x\"}}", NULL},
        {"{\"id\":1}", "neither"},
        {"{\"id\":1,\"result\":[]}", "not an object"},
        {"{\"id\":1,\"result\":null}", "not an object"},
        {"{\"id\":1,\"error\":\"x\"}", "integer"},
        {"{\"id\":1,\"error\":{\"code\":1.5,\"message\":\"x\"}}", "integer"},
        {"{\"id\":1,\"error\":{\"code\":1}}", "message"},
    };

    for (size_t i = 0; i < countof(cases); i++) {
        struct arena *mem = arena_new(1 << 16);
        struct mcp_message m;
        struct error err;
        assert_true(mcp_parse_upstream(str_of(cases[i].text), mem, &m, &err));
        const char *fault = mcp_response_fault(&m);
        assert_int_equal(fault != NULL, cases[i].fault != NULL);
        if (fault)
            assert_non_null(strstr(fault, cases[i].fault));
        arena_free(mem);
    }
}

TEST(test_notification__of_an_unknown_kind_may_be_dropped_a_vital_one_not)
{
    static const struct {
        const char *text;
        bool droppable;
    } cases[] = {
        {"{\"method\":\"notifications/message\"}", true},
        {"{\"method\":\"notifications/no/such\"}", true},
        {"{\"method\":\"notifications/cancelled\"}", false},
        {"{\"method\":\"notifications/elicitation/complete\"}", false},
        {"{\"method\":\"notifications/resources/updated\"}", false},
        {"{\"method\":\"notifications/resources/list_changed\"}", false},
        {"{\"method\":\"notifications/tools/list_changed\"}", false},
        {"{\"method\":\"notifications/prompts/list_changed\"}", false},
        {"{\"method\":\"notifications/subscriptions/acknowledged\"}", false},
        {"{\"id\":1,\"method\":\"roots/list\"}", false},
        {"{\"id\":1,\"result\":{}}", false},
    };

    for (size_t i = 0; i < countof(cases); i++) {
        struct arena *mem = arena_new(1 << 16);
        struct mcp_message m;
        struct error err;
        assert_true(mcp_parse_upstream(str_of(cases[i].text), mem, &m, &err));
        assert_int_equal(mcp_is_droppable(&m), cases[i].droppable);
        arena_free(mem);
    }
}
