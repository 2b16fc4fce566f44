/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "cli/relay_talk.h"

#include <stdio.h>

static struct relay_talk talk;

/* In pieces of `step` bytes: the end of a piece may fall anywhere. */
static void pass(void (*fn)(struct relay_talk *t, struct str bytes), const char *text, size_t step)
{
    struct str rest = str_of(text);

    while (rest.n) {
        size_t n = rest.n < step ? rest.n : step;
        fn(&talk, str_n(rest.p, n));
        rest = str_n(rest.p + n, rest.n - n);
    }
}

static void assert_waiting(const char *const *ids, size_t n)
{
    assert_int_equal(talk.n_waiting, n);
    for (size_t i = 0; i < n; i++)
        assert_true(relay_talk_waits_for(&talk, str_of(ids[i])));
}

TEST(test_relay_talk__requests_wait_until_they_are_answered)
{
    for (size_t step = 1; step < 200; step += 13) {
        relay_talk_init(&talk);
        pass(relay_talk_sent,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
             "call\",\"params\":{\"id\":9,\"method\":\"x\"}}\n"
             "{\"method\":\"ping\",\"params\":{\"a\":\"}]\\\"{\"},\"jsonrpc\":\"2.0\", \"id\" : "
             "\"t\\\"wo\" }\r\n"
             "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n"
             "{\"id\":77,\"result\":{}}\n"
             "[{\"id\":3,\"method\":\"a\"},{\"method\":\"b\"},{\"id\":4,\"method\":\"c\"}]\n",
             step);
        assert_waiting((const char *const[]){"1", "\"t\\\"wo\"", "3", "4"}, 4);
        assert_false(talk.up.is_mid_line);
        pass(relay_talk_received,
             "{\"method\":\"notifications/progress\",\"params\":{\"id\":1}}\n"
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n"
             "{\"result\":{\"content\":[{\"id\":4}]},\"id\":3}\n[{\"id\":\"t\\\"wo\",\"error\":{}}]"
             "\n",
             step);
        assert_waiting((const char *const[]){"1", "4"}, 2);
        relay_talk_release(&talk);
    }
}

TEST(test_relay_talk__what_is_lost_is_answered_behind_a_line_that_was_cut)
{
    struct buf out;

    relay_talk_init(&talk);
    buf_init(&out, 1 << 20);
    pass(relay_talk_sent, "{\"id\":\"i\",\"method\":\"initialize\",\"params\":{}}\n", 7);
    pass(relay_talk_sent, "{\"id\":5,\"method\":\"tools/call\"}\n", 7);
    pass(relay_talk_received, "{\"id\":5,\"resu", 7);
    assert_int_equal(relay_talk_lose(&talk, &out), 1);
    assert_true(str_starts(buf_str(&out),
                           STR("\n{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32000,")));
    assert_int_equal(out.p[out.n - 1], '\n');
    assert_waiting((const char *const[]){"\"i\""}, 1); /* it is said again */
    buf_reset(&out);
    assert_int_equal(relay_talk_lose(&talk, &out), 0);
    assert_int_equal(out.n, 0);
    buf_release(&out);
    relay_talk_release(&talk);
}

TEST(test_relay_talk__the_last_initialize_is_kept_whole)
{
    relay_talk_init(&talk);
    pass(relay_talk_sent, "{\"id\":1,\"method\":\"initialize\",\"params\":{\"a\":1}}\n", 5);
    pass(relay_talk_sent, "{\"method\":\"notifications/initialized\"}\n", 5);
    assert_true(talk.is_initialized);
    pass(relay_talk_sent,
         "{\"id\":2,\"method\":\"tools/call\",\"params\":{\"method\":\"initialize\"}}\n", 5);
    assert_true(str_eq(buf_str(&talk.initialize),
                       STR("{\"id\":1,\"method\":\"initialize\",\"params\":{\"a\":1}}\n")));
    pass(relay_talk_sent, "{\"id\":3,\"method\":\"initialize\"}\n", 5);
    assert_false(talk.is_initialized);
    assert_true(str_eq(buf_str(&talk.initialize), STR("{\"id\":3,\"method\":\"initialize\"}\n")));
    assert_true(str_eq(buf_str(&talk.initialize_id), STR("3")));
    relay_talk_release(&talk);
}

TEST(test_relay_talk__an_answer_is_told_from_a_question)
{
    assert_true(relay_line_answers(STR("{\"result\":{},\"id\":\"x\"}"), STR("\"x\"")));
    assert_true(relay_line_answers(STR("{\"id\":7,\"error\":{}}"), STR("7")));
    assert_false(relay_line_answers(STR("{\"id\":7,\"method\":\"ping\"}"), STR("7")));
    assert_false(relay_line_answers(STR("{\"id\":71,\"result\":{}}"), STR("7")));
    assert_false(relay_line_answers(STR("no json"), STR("7")));
}

static void send_request(size_t id_bytes)
{
    struct buf line;

    buf_init(&line, 1 << 20);
    buf_addz(&line, "{\"method\":\"x\",\"id\":\"");
    for (size_t i = 0; i + 2 < id_bytes; i++)
        buf_addc(&line, 'a');
    buf_addz(&line, "\"}\n");
    relay_talk_sent(&talk, buf_str(&line));
    buf_release(&line);
}

TEST(test_relay_talk__an_id_is_remembered_up_to_its_limit)
{
    relay_talk_init(&talk);
    send_request(RELAY_ID_MAX);
    assert_int_equal(talk.n_waiting, 1);
    send_request(RELAY_ID_MAX + 1);
    assert_int_equal(talk.n_waiting, 1);
    relay_talk_release(&talk);
}

TEST(test_relay_talk__requests_are_remembered_up_to_their_limit)
{
    char line[64];

    relay_talk_init(&talk);
    for (unsigned i = 0; i < RELAY_WAITING_MAX + 1; i++) {
        snprintf(line, sizeof(line), "{\"id\":%u,\"method\":\"x\"}\n", i);
        relay_talk_sent(&talk, str_of(line));
    }
    assert_int_equal(talk.n_waiting, RELAY_WAITING_MAX);
    relay_talk_release(&talk);
}

static void send_initialize(size_t line_bytes)
{
    struct buf line;

    buf_init(&line, 1 << 20);
    buf_addz(&line, "{\"id\":1,\"method\":\"initialize\",\"params\":\"");
    while (line.n + 3 < line_bytes)
        buf_addc(&line, 'a');
    buf_addz(&line, "\"}\n");
    relay_talk_sent(&talk, buf_str(&line));
    buf_release(&line);
}

TEST(test_relay_talk__an_initialize_is_kept_up_to_its_limit)
{
    relay_talk_init(&talk);
    send_initialize(RELAY_INITIALIZE_MAX + 1);
    assert_int_equal(talk.initialize.n, 0);
    send_initialize(RELAY_INITIALIZE_MAX);
    assert_int_equal(talk.initialize.n, RELAY_INITIALIZE_MAX);
    relay_talk_release(&talk);
}
