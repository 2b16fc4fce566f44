/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent: what is taken as a parent, and what is written. */
#include "test.h"

#include "trace/context.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

TEST(test_trace_context__reads_what_it_writes)
{
    struct trace_context c, child;
    char text[TRACE_PARENT_TEXT];

    assert_true(trace_context_parse(STR("00-" TRACE "-" SPAN "-01"), &c));
    trace_context_format(&c, text);
    assert_string_equal(text, "00-" TRACE "-" SPAN "-01");
    child = trace_context_child(&c);
    assert_memory_equal(child.trace_id, c.trace_id, sizeof(c.trace_id));
    assert_memory_not_equal(child.span_id, c.span_id, sizeof(c.span_id));
    c = trace_context_new();
    trace_context_format(&c, text);
    assert_true(trace_context_parse(str_of(text), &child));
}

TEST(test_trace_context__takes_later_versions_and_their_members)
{
    struct trace_context c;
    char text[TRACE_PARENT_TEXT];

    assert_true(trace_context_parse(STR("cc-" TRACE "-" SPAN "-ff-what-follows"), &c));
    trace_context_format(&c, text);
    assert_string_equal(text, "00-" TRACE "-" SPAN "-01");
    assert_true(trace_context_parse(STR("01-" TRACE "-" SPAN "-00"), &c));
    assert_int_equal(c.flags, 0);
}

TEST(test_trace_context__refuses_what_the_specification_calls_invalid)
{
    static const char *const rows[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01-more",
        "00-" TRACE "-" SPAN "-01 ",
        "01-" TRACE "-" SPAN "-01more",
        "01-" TRACE "-" SPAN "-01-\r\nHost: a",
        "ff-" TRACE "-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "-0g",
    };
    struct trace_context c;

    for (size_t i = 0; i < countof(rows); i++)
        assert_false(trace_context_parse(str_of(rows[i]), &c));
}

TEST(test_trace_state__has_512_printable_bytes)
{
    char text[TRACE_STATE_MAX + 1];

    memset(text, 'a', sizeof(text));
    assert_true(trace_state_is_valid(str_n(text, TRACE_STATE_MAX)));
    assert_false(trace_state_is_valid(str_n(text, TRACE_STATE_MAX + 1)));
    assert_false(trace_state_is_valid(STR("")));
    assert_false(trace_state_is_valid(STR("a=1\r\n")));
    assert_false(trace_state_is_valid(STR("a=\xc3\xa4")));
}
