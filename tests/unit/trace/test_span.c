/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of OTLP; tests/e2e/test_traces.py decodes them with OpenTelemetry's own definitions. */
#include "test.h"

#include "trace/span.h"

static struct span a_span(void)
{
    return (struct span){.kind = SPAN_SERVER, .context = trace_context_new(), .method = STR("m")};
}

TEST(test_span__cuts_texts_and_takes_no_bytes_that_are_not_utf8)
{
    struct span s = a_span();
    char text[SPAN_TEXT_MAX + 1];

    memset(text, 'a', sizeof(text));
    span_text(&s, "at the limit", str_n(text, SPAN_TEXT_MAX));
    span_text(&s, "one more", str_n(text, SPAN_TEXT_MAX + 1));
    span_text(&s, "not UTF-8", STR("\xff\xfe"));
    span_text(&s, "absent", STR_NONE);
    assert_int_equal(s.n_attributes, 3);
    assert_int_equal(s.attributes[0].text.n, SPAN_TEXT_MAX);
    assert_int_equal(s.attributes[1].text.n, SPAN_TEXT_MAX);
    assert_str(s.attributes[2].text, "(not UTF-8)");
    for (int i = 0; i < SPAN_ATTRIBUTES_MAX + 1; i++)
        span_number(&s, "number", i);
    assert_int_equal(s.n_attributes, SPAN_ATTRIBUTES_MAX);
}

TEST(test_span_uri__has_no_part_that_may_be_a_credential)
{
    static const struct {
        const char *uri, *shown;
    } rows[] = {
        {"file:///notes/a.md", "file:///notes/a.md"},
        {"test://doc?token=x", "test://doc"},
        {"test://doc#token=x?y", "test://doc"},
        {"postgres://ann:pass@db:5432/sales?ssl=1", "postgres://db:5432/sales"},
        {"https://a:b@c:d@host/p@q", "https://host/p@q"},
        {"https://token@host", "https://host"},
        {"https://host/~ann@home", "https://host/~ann@home"},
        {"mailto:ann@example.org", "mailto:ann@example.org"},
        {"x:/ann@b", "x:/ann@b"},
        {"a://@", "a://"},
        {"://", "://"},
        {"", ""},
    };
    struct arena *mem = arena_new(4096);

    for (size_t i = 0; i < countof(rows); i++)
        assert_str(span_uri(str_of(rows[i].uri), mem), rows[i].shown);
    assert_null(span_uri(STR_NONE, mem).p);
    arena_free(mem);
}

TEST(test_span__lengths_hold_for_large_attributes)
{
    struct span s = a_span();
    struct buf out;
    char text[SPAN_TEXT_MAX];

    memset(text, 'b', sizeof(text));
    for (int i = 0; i < SPAN_ATTRIBUTES_MAX; i++)
        span_text(&s, "key", str_n(text, sizeof(text)));
    buf_init(&out, SIZE_MAX);
    span_write(&s, &out);
    /* Field 2, then the length of the rest as a varint of two bytes. */
    assert_int_equal(out.p[0], 2 << 3 | 2);
    assert_int_equal((out.p[1] & 0x7f) | out.p[2] << 7, out.n - 3);
    buf_release(&out);
}

TEST(test_span_response__is_read_with_and_without_a_partial_success)
{
    static const struct {
        struct str body;
        int64_t rejected;
        const char *message;
    } rows[] = {
        {{"", 0}, 0, NULL},
        {{"\x0a\x00", 2}, 0, NULL},
        {{"\x0a\x02\x08\x03", 4}, 3, NULL},
        {{"\x0a\x06\x08\x07\x12\x02no", 8}, 7, "no"},
        {{"\x12\x01x\x0a\x02\x08\x05", 7}, 5, NULL}, /* an unknown field before it */
        {{"\x09xxxxxxxx\x0a\x02\x08\x05", 13}, 5, NULL},
        {{"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13}, 0, NULL}, /* below zero */
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct str message;
        int64_t rejected;
        assert_true(span_read_response(rows[i].body, &rejected, &message));
        assert_int_equal(rejected, rows[i].rejected);
        if (rows[i].message)
            assert_str(message, rows[i].message);
        else
            assert_null(message.p);
    }
}

TEST(test_span_response__refuses_what_is_cut_or_malformed)
{
    static const struct str rows[] = {
        {"\x0a", 1},
        {"\x0a\x05\x08", 3},
        {"\x0a\x02\x08\xff", 4},
        {"\xff\xff\xff", 3},
        {"\x0b", 1},
        {"\x0d\x01", 2},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
    };
    struct str message;
    int64_t rejected;

    for (size_t i = 0; i < countof(rows); i++)
        assert_false(span_read_response(rows[i], &rejected, &message));
}
