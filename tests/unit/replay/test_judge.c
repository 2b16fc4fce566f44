/* SPDX-License-Identifier: Apache-2.0 */
/* Which recorded calls can be sent again, the request that is sent, and how answers compare. */
#include "test.h"

#include "crypto/hash.h"
#include "replay/impl.h"

static struct recorded_call call_with(const char *arguments)
{
    struct recorded_call c = {
        .number = 7,
        .kind = RECORDED_CALL,
        .method = STR("tools/call"),
        .tool = STR("look"),
        .era = STR("2025-06-18>2025-06-18"),
        .outcome = STR("ok"),
        .params = {.state = RECORDED_COMPLETE, .bytes = STR("{\"name\":\"x__look\"}")},
        .arguments = str_of(arguments),
    };
    return c;
}

TEST(test_lack__says_why_for_each_kind_of_call)
{
    static const struct {
        enum recorded_kind kind;
        const char *method, *outcome, *params;
        enum recorded_state state;
        const char *want; /* a part of the sentence; NULL: it can be sent */
    } rows[] = {
        {RECORDED_CALL, "tools/call", "ok", "{}", RECORDED_COMPLETE, NULL},
        {RECORDED_CALL, "tools/call", "tool_error", "{}", RECORDED_COMPLETE, NULL},
        {RECORDED_CALL, "tools/call", "error", "{}", RECORDED_COMPLETE, NULL},
        {RECORDED_CALL, "tools/call", "open", "{}", RECORDED_COMPLETE, "no outcome yet"},
        {RECORDED_CALL, "tools/call", "indeterminate", "{}", RECORDED_COMPLETE, "is not known"},
        {RECORDED_CALL, "tools/call", "timeout", "{}", RECORDED_COMPLETE, "did not answer in time"},
        {RECORDED_CALL, "tools/call", "cancelled", "{}", RECORDED_COMPLETE, "cancelled it"},
        {RECORDED_CALL, "tools/call", "refused", "{}", RECORDED_COMPLETE, "never reached"},
        {RECORDED_CALL, "tools/call", "upstream_lost", "{}", RECORDED_COMPLETE, "was lost"},
        {RECORDED_NOTE, "tools/call", "redelivered", "{}", RECORDED_COMPLETE, "nothing ran"},
        {RECORDED_NOTE, "resources/read", "ok", "{}", RECORDED_COMPLETE, "are not recorded"},
        {RECORDED_REPORTED, NULL, "ok", "{}", RECORDED_COMPLETE, "ran it elsewhere"},
        {RECORDED_CALL, "tools/call", "ok", NULL, RECORDED_CUT, "its arguments were cut"},
        {RECORDED_CALL, "tools/call", "ok", "{}", RECORDED_REDACTED, "redacted secrets"},
        {RECORDED_CALL, "tools/call", "ok", NULL, RECORDED_DIGEST, "digest only"},
        {RECORDED_CALL, "tools/call", "ok", NULL, RECORDED_REMOVED, "removed by retention"},
        {RECORDED_CALL, "tools/call", "ok", "{\"requestState\":\"s\"}", RECORDED_COMPLETE,
         "its requestState belongs"},
        {RECORDED_CALL, "tools/call", "ok", "{\"task\":{}}", RECORDED_COMPLETE, "its task belongs"},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct arena *mem = arena_new(1 << 20);
        struct recorded_call c = call_with("{}");
        c.kind = rows[i].kind;
        c.method = str_of(rows[i].method);
        c.outcome = str_of(rows[i].outcome);
        c.params = (struct recorded_body){rows[i].state, str_of(rows[i].params), 9000, {0}};
        const char *lack = replay_lack(&c, mem);
        if (rows[i].want)
            assert_true(lack && strstr(lack, rows[i].want));
        else
            assert_null(lack);
        assert_int_equal(replay_lacks_body(&c), rows[i].state != RECORDED_COMPLETE);
        arena_free(mem);
    }
}

static void check_request(const struct recorded_call *c, const char *want)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    replay_write_request(c, &out);
    assert_str(buf_str(&out), want);
    buf_release(&out);
}

TEST(test_request__has_the_name_of_the_server_and_the_recorded_arguments)
{
    struct recorded_call c = call_with("{\"n\": 1.50}");

    check_request(&c,
                  "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":"
                  "\"look\",\"arguments\":{\"n\": 1.50}}}");
    c.arguments = STR_NONE;
    check_request(&c,
                  "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":"
                  "\"look\"}}");
}

TEST(test_request__of_a_modern_client_has_its_envelope)
{
    struct recorded_call c = call_with(NULL);
    struct buf out;

    c.era = STR("2026-07-28>2025-06-18");
    buf_init(&out, 1 << 20);
    replay_write_request(&c, &out);
    assert_non_null(strstr(out.p, "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""));
    assert_non_null(strstr(out.p, "\"io.modelcontextprotocol/clientCapabilities\":{}"));
    buf_release(&out);
}

static void check(struct recorded_call *c, struct replay_answer now, enum replay_status want,
                  const char *reason)
{
    struct arena *mem = arena_new(1 << 20);
    const struct diff_ignore ignore = {0};
    struct replay_verdict v = {0};

    replay_compare(c, &now, &ignore, mem, &v);
    assert_int_equal(v.status, want);
    if (reason)
        assert_true(v.reason.p && strstr(arena_dup(mem, v.reason).p, reason));
    else
        assert_null(v.reason.p);
    arena_free(mem);
}

TEST(test_compare__whole_results_as_values)
{
    struct recorded_call c = call_with("{}");

    c.result = (struct recorded_body){RECORDED_COMPLETE, STR("{\"a\":1,\"b\":2}"), 13, {0}};
    check(&c, (struct replay_answer){.body = STR("{\"b\":2.0,\"a\":1}")}, REPLAY_SAME, NULL);
    check(&c, (struct replay_answer){.body = STR("{\"b\":3,\"a\":1}")}, REPLAY_DIFFERENT, NULL);
    check(&c, (struct replay_answer){.body = STR("{\"code\":1}"), .is_error = true},
          REPLAY_DIFFERENT, "an error now");
    c.outcome = STR("error");
    check(&c, (struct replay_answer){.body = STR("{\"a\":1,\"b\":2}"), .is_error = true},
          REPLAY_SAME, NULL);
    check(&c, (struct replay_answer){.body = STR("{}")}, REPLAY_DIFFERENT, "with a result now");
}

TEST(test_compare__a_result_that_was_not_kept_by_its_digest)
{
    struct recorded_call c = call_with("{}");

    c.result = (struct recorded_body){.state = RECORDED_DIGEST, .length = 7};
    sha256(STR("{\"a\":1}"), c.result.sha);
    check(&c, (struct replay_answer){.body = STR("{\"a\":1}")}, REPLAY_SAME, NULL);
    check(&c, (struct replay_answer){.body = STR("{\"a\":2}")}, REPLAY_UNKNOWN, "other bytes came");
    memset(c.result.sha, 0, sizeof(c.result.sha));
    check(&c, (struct replay_answer){.body = STR("{\"a\":1}")}, REPLAY_UNKNOWN, "digest only");
}

TEST(test_compare__no_answer_is_a_refusal_or_a_failure)
{
    struct recorded_call c = call_with("{}");

    check(&c, (struct replay_answer){.why = STR("no"), .is_refused = true}, REPLAY_REFUSED, "no");
    check(&c, (struct replay_answer){.why = STR("late")}, REPLAY_FAILED, "late");
}
