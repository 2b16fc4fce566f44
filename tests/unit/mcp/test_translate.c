/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "mcp/translate.h"

static struct arena *mem;
static struct buf out;

static struct mcp_message parse(const char *text)
{
    struct mcp_message m;
    struct error err;
    assert_true(mcp_parse_upstream(str_of(text), mem, &m, &err));
    return m;
}

static void begin(void)
{
    mem = arena_new(1 << 24);
    buf_init(&out, 1 << 24);
}

static void end(void)
{
    buf_release(&out);
    arena_free(mem);
}

static void check_request(const char *in, enum mcp_era client, enum mcp_era server, bool drop,
                          const char *expected)
{
    begin();
    struct mcp_message m = parse(in);
    struct mcp_call_request r = {.m = &m,
                                 .client_era = client,
                                 .server_era = server,
                                 .id = 77,
                                 .drop_session_id = drop,
                                 .mem = mem};
    mcp_write_request(&r, &out);
    assert_string_equal(out.p, expected);
    end();
}

#define CALL(params)                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\",\"params\":" params "}"
#define SENT(params)                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/call\",\"params\":" params "}"
#define ENVELOPE                                                                                   \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                  \
    "\"io.modelcontextprotocol/clientCapabilities\":{}"

TEST(test_translate_request__same_era_changes_the_id_and_the_token_alone)
{
    check_request(
        CALL("{ \"arguments\":{\"n\":12345678901234567890, \"s\":\"\\u00e9\"},\"name\":\"a\","
             "\"_meta\":{\"z\":1e400,\"progressToken\":\"p\",\"a\":{}} }"),
        MCP_LEGACY, MCP_LEGACY, false,
        SENT("{ \"arguments\":{\"n\":12345678901234567890, \"s\":\"\\u00e9\"},\"name\":\"a\","
             "\"_meta\":{\"z\":1e400,\"progressToken\":77,\"a\":{}} }"));
    check_request(CALL("{\"name\":\"a\"}"), MCP_LEGACY, MCP_LEGACY, false,
                  SENT("{\"name\":\"a\"}"));
    check_request(CALL("{\"name\":\"a\",\"_meta\":{}}"), MCP_LEGACY, MCP_LEGACY, false,
                  SENT("{\"name\":\"a\",\"_meta\":{}}"));
    check_request(CALL("{\"name\":\"a\",\"_meta\":{" ENVELOPE "}}"), MCP_MODERN, MCP_MODERN, false,
                  SENT("{\"name\":\"a\",\"_meta\":{" ENVELOPE "}}"));
}

TEST(test_translate_request__to_legacy_the_envelope_leaves)
{
    check_request(CALL("{\"_meta\":{" ENVELOPE "},\"name\":\"a\"}"), MCP_MODERN, MCP_LEGACY, false,
                  SENT("{\"name\":\"a\"}"));
    check_request(CALL("{\"name\":\"a\",\"_meta\":{" ENVELOPE "}}"), MCP_MODERN, MCP_LEGACY, false,
                  SENT("{\"name\":\"a\"}"));
    check_request(
        CALL("{\"name\":\"a\",\"_meta\":{\"v/x\":[1 ],\"progressToken\":0," ENVELOPE "}}"),
        MCP_MODERN, MCP_LEGACY, false,
        SENT("{\"name\":\"a\",\"_meta\":{\"v/x\":[1 ],\"progressToken\":77}}"));
}

TEST(test_translate_request__a_task_that_is_asked_for_leaves_beside_the_envelope)
{
    check_request(CALL("{\"name\":\"a\",\"task\":{\"ttl\":1},\"_meta\":{" ENVELOPE "}}"),
                  MCP_MODERN, MCP_LEGACY, false, SENT("{\"name\":\"a\"}"));
    check_request(CALL("{\"_meta\":{" ENVELOPE "},\"task\":{},\"name\":\"a\"}"), MCP_MODERN,
                  MCP_LEGACY, false, SENT("{\"name\":\"a\"}"));
    check_request(CALL("{\"task\":{},\"name\":\"a\",\"_meta\":{\"k\":1," ENVELOPE "}}"), MCP_MODERN,
                  MCP_LEGACY, false, SENT("{\"name\":\"a\",\"_meta\":{\"k\":1}}"));
    check_request(CALL("{\"name\":\"a\",\"task\":{}}"), MCP_LEGACY, MCP_MODERN, false,
                  SENT("{\"name\":\"a\",\"_meta\":{" ENVELOPE "}}"));
    check_request(CALL("{\"task\":{},\"name\":\"a\"}"), MCP_LEGACY, MCP_LEGACY, false,
                  SENT("{\"name\":\"a\"}"));
}

TEST(test_translate_request__to_modern_the_envelope_is_added)
{
    check_request(CALL("{\"name\":\"a\"}"), MCP_LEGACY, MCP_MODERN, false,
                  SENT("{\"name\":\"a\",\"_meta\":{" ENVELOPE "}}"));
    check_request(CALL("{\"name\":\"a\",\"_meta\":{\"k\":1}}"), MCP_LEGACY, MCP_MODERN, false,
                  SENT("{\"name\":\"a\",\"_meta\":{\"k\":1," ENVELOPE "}}"));
    check_request(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", MCP_LEGACY, MCP_MODERN, false,
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/list\",\"params\":{\"_meta\":{" ENVELOPE
        "}}}");
}

TEST(test_translate_request__an_injected_handle_stays_with_us)
{
    check_request(CALL("{\"name\":\"a\",\"arguments\":{\"x\":1,\"session_id\":\"ses_1\"}}"),
                  MCP_LEGACY, MCP_LEGACY, true, SENT("{\"name\":\"a\",\"arguments\":{\"x\":1}}"));
}

static void check_result(const char *in, struct mcp_call_result b, const char *expected)
{
    begin();
    struct mcp_message m = parse(in);
    b.m = &m;
    b.mem = mem;
    b.id = STR("\"c\\u0031\"");
    mcp_write_result(&b, &out);
    assert_string_equal(out.p, expected);
    end();
}

#define RESULT(r) "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":" r "}"
#define GIVEN(r) "{\"jsonrpc\":\"2.0\",\"id\":\"c\\u0031\",\"result\":" r "}"

TEST(test_translate_result__same_era_keeps_every_byte)
{
    struct mcp_call_result same = {
        .server_era = MCP_LEGACY, .client_era = MCP_LEGACY, .server_info = STR("{}")};
    check_result(RESULT("{ \"content\" :[],\"_meta\":{\"b\":9007199254740993,\"a\":\"\\/\"}}"),
                 same,
                 GIVEN("{ \"content\" :[],\"_meta\":{\"b\":9007199254740993,\"a\":\"\\/\"}}"));
    same.server_era = same.client_era = MCP_MODERN;
    check_result(RESULT("{\"resultType\":\"complete\"}"), same,
                 GIVEN("{\"resultType\":\"complete\"}"));
}

TEST(test_translate_result__to_modern_says_what_it_is)
{
    struct mcp_call_result b = {
        .server_era = MCP_LEGACY, .client_era = MCP_MODERN, .server_info = STR("{\"name\":\"s\"}")};
    check_result(
        RESULT("{\"content\":[]}"), b,
        GIVEN("{\"content\":[],\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"s\"}},"
              "\"resultType\":\"complete\"}"));
    check_result(
        RESULT("{\"_meta\":{\"k\":1},\"content\":[]}"), b,
        GIVEN("{\"_meta\":{\"k\":1,\"io.modelcontextprotocol/serverInfo\":{\"name\":\"s\"}},"
              "\"content\":[],\"resultType\":\"complete\"}"));
}

TEST(test_translate_result__to_legacy_takes_it_out_again)
{
    struct mcp_call_result b = {.server_era = MCP_MODERN, .client_era = MCP_LEGACY};
    check_result(RESULT("{\"content\":[],\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{}},"
                        "\"resultType\":\"complete\"}"),
                 b, GIVEN("{\"content\":[]}"));
    check_result(RESULT("{\"resultType\":\"complete\",\"content\":[],\"_meta\":{\"k\":1}}"), b,
                 GIVEN("{\"content\":[],\"_meta\":{\"k\":1}}"));
    check_result(RESULT("{\"resultType\":\"complete\",\"content\":[],\"_meta\":{}}"), b,
                 GIVEN("{\"content\":[],\"_meta\":{}}"));
}

TEST(test_translate_result__state_lost_and_handle_are_the_last_lines)
{
    struct mcp_call_result b = {
        .server_era = MCP_LEGACY,
        .client_era = MCP_LEGACY,
        .handle = STR("ses_x"),
        .lost_server = STR("files"),
        .lost_reason = STR("child_restarted"),
        .lost_at = STR("T"),
    };
    check_result(
        RESULT("{\"content\":[{\"type\":\"text\",\"text\":\"1\"}]}"), b,
        GIVEN("{\"content\":[{\"type\":\"text\",\"text\":\"1\"},{\"type\":\"text\",\"text\":"
              "\"[holdfast: files was restarted; its earlier state is lost]\"},{\"type\":\"text\","
              "\"text\":\"[session: "
              "ses_x]\"}],\"_meta\":{\"holdfast/state-lost\":{\"server\":\"files\","
              "\"reason\":\"child_restarted\",\"at\":\"T\"},\"holdfast/session\":\"ses_x\"}}"));
}

TEST(test_translate_result__handed_out_late_says_so_and_changes_nothing_else)
{
    struct mcp_call_result b = {
        .server_era = MCP_LEGACY, .client_era = MCP_LEGACY, .redelivered_at = STR("T")};
    check_result(RESULT("{ \"content\":[ ],\"n\":1.50}"), b,
                 GIVEN("{ \"content\":[ ],\"n\":1.50,\"_meta\":{\"holdfast/redelivered\":{\"at\":"
                       "\"T\"}}}"));
    check_result(RESULT("{\"_meta\":{\"k\":1}}"), b,
                 GIVEN("{\"_meta\":{\"k\":1,\"holdfast/redelivered\":{\"at\":\"T\"}}}"));
}

TEST(test_translate_error__modern_codes_do_not_reach_legacy_clients)
{
    struct mcp_call_result b = {.server_era = MCP_MODERN, .client_era = MCP_LEGACY};
    check_result(
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"error\":{\"code\":-32021,\"message\":\"m\"}}", b,
        "{\"jsonrpc\":\"2.0\",\"id\":\"c\\u0031\",\"error\":{\"code\":-32603,\"message\":\"m\"}}");
    b.client_era = MCP_MODERN;
    check_result(
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"error\":{\"code\":-32021,\"message\":\"m\"}}", b,
        "{\"jsonrpc\":\"2.0\",\"id\":\"c\\u0031\",\"error\":{\"code\":-32021,\"message\":\"m\"}}");
}

TEST(test_translate_error__resource_not_found_has_the_code_of_the_clients_era)
{
    struct mcp_call_result b = {.server_era = MCP_LEGACY, .client_era = MCP_MODERN};
    check_result(
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"error\":{\"code\":-32002,\"message\":\"m\"}}", b,
        "{\"jsonrpc\":\"2.0\",\"id\":\"c\\u0031\",\"error\":{\"code\":-32602,\"message\":\"m\"}}");
    b.client_era = MCP_LEGACY;
    check_result(
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"error\":{\"code\":-32002,\"message\":\"m\"}}", b,
        "{\"jsonrpc\":\"2.0\",\"id\":\"c\\u0031\",\"error\":{\"code\":-32002,\"message\":\"m\"}}");
    b.server_era = MCP_MODERN;
    check_result(
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"error\":{\"code\":-32002,\"message\":\"m\"}}", b,
        "{\"jsonrpc\":\"2.0\",\"id\":\"c\\u0031\",\"error\":{\"code\":-32002,\"message\":\"m\"}}");
}

TEST(test_translate_request__the_envelope_says_what_initialize_said)
{
    begin();
    struct mcp_message m = parse(CALL("{\"name\":\"a\"}"));
    struct mcp_call_request r = {
        .m = &m,
        .client_era = MCP_LEGACY,
        .server_era = MCP_MODERN,
        .id = 77,
        .initialize_params =
            STR("{\"protocolVersion\":\"2025-11-25\",\"clientInfo\":{\"name\":\"c\"},"
                "\"capabilities\":{\"tasks\":{},\"roots\":{ },\"extensions\":{}}}"),
        .log_level = "info",
        .mem = mem,
    };
    mcp_write_request(&r, &out);
    assert_string_equal(out.p,
                        SENT("{\"name\":\"a\",\"_meta\":{"
                             "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                             "\"io.modelcontextprotocol/clientCapabilities\":{\"roots\":{ }},"
                             "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"c\"},"
                             "\"io.modelcontextprotocol/logLevel\":\"info\"}}"));
    end();
}

TEST(test_translate_request__a_legacy_server_gets_nothing_of_initialize)
{
    begin();
    struct mcp_message m = parse(CALL("{\"name\":\"a\",\"_meta\":{" ENVELOPE "}}"));
    struct mcp_call_request r = {.m = &m,
                                 .client_era = MCP_LEGACY,
                                 .server_era = MCP_LEGACY,
                                 .id = 77,
                                 .initialize_params = STR("{\"capabilities\":{\"roots\":{}}}"),
                                 .log_level = "info",
                                 .mem = mem};
    mcp_write_request(&r, &out);
    assert_string_equal(out.p, SENT("{\"name\":\"a\",\"_meta\":{" ENVELOPE "}}"));
    end();
}

TEST(test_translate_result__cache_hints_come_and_go_with_the_era)
{
    struct mcp_call_result b = {
        .server_era = MCP_LEGACY, .client_era = MCP_MODERN, .cacheable = true};
    check_result(RESULT("{\"contents\":[]}"), b,
                 GIVEN("{\"contents\":[],\"resultType\":\"complete\",\"ttlMs\":0,"
                       "\"cacheScope\":\"private\"}"));
    b = (struct mcp_call_result){
        .server_era = MCP_MODERN, .client_era = MCP_LEGACY, .cacheable = true};
    check_result(RESULT("{\"resultType\":\"complete\",\"contents\":[],\"ttlMs\":5,"
                        "\"cacheScope\":\"public\"}"),
                 b, GIVEN("{\"contents\":[]}"));
    b.cacheable = false;
    check_result(RESULT("{\"content\":[],\"ttlMs\":5}"), b, GIVEN("{\"content\":[],\"ttlMs\":5}"));
}

TEST(test_translate_result__words_of_holdfast_come_after_those_of_the_server)
{
    struct mcp_call_result b = {.server_era = MCP_LEGACY,
                                .client_era = MCP_MODERN,
                                .server_info = STR("{}"),
                                .handle = STR("ses_x")};
    check_result(RESULT("{\"a\":1}"), b,
                 GIVEN("{\"a\":1,\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{},"
                       "\"holdfast/session\":\"ses_x\"},\"resultType\":\"complete\"}"));
    b.server_era = MCP_MODERN;
    b.client_era = MCP_LEGACY;
    check_result(RESULT("{\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{}},\"a\":1}"), b,
                 GIVEN("{\"_meta\":{\"holdfast/session\":\"ses_x\"},\"a\":1}"));
}

TEST(test_translate_input__older_clients_do_not_know_it_and_older_servers_have_no_state)
{
    begin();
    struct mcp_message m =
        parse(RESULT("{\"resultType\":\"input_required\",\"requestState\":\"s\"}"));
    struct mcp_message done = parse(RESULT("{\"resultType\":\"complete\",\"requestState\":\"s\"}"));
    assert_true(mcp_asks_beyond(MCP_LEGACY, &m));
    assert_false(mcp_asks_beyond(MCP_MODERN, &m));
    assert_false(mcp_asks_beyond(MCP_LEGACY, &done));
    assert_non_null(mcp_request_state(MCP_MODERN, &m));
    assert_null(mcp_request_state(MCP_LEGACY, &m));
    assert_null(mcp_request_state(MCP_MODERN, &done));
    end();
}
