/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, query values, percent-encoding and the words for a status. */
#include "test.h"

#include "http/codec.h"

TEST(test_fields__list_members_are_found_without_their_parameters)
{
    static const struct {
        const char *value, *token;
        bool has;
    } rows[] = {
        {"text/event-stream", "text/event-stream", true},
        {"application/json, text/event-stream", "text/event-stream", true},
        {"application/json,TEXT/Event-Stream;q=0.5", "text/event-stream", true},
        {" \ttext/event-stream\t ; q=1 , x", "text/event-stream", true},
        {"text/event-streams", "text/event-stream", false},
        {"text/event", "text/event-stream", false},
        {"a;b=\"x, text/event-stream\"", "text/event-stream", false},
        {"a;b=\"\\\", close\", x", "close", false},
        {"a;b=\"\\\"\", close", "close", true},
        {",,close,", "close", true},
        {"", "close", false},
        {",", "close", false},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        if (http_list_has(str_of(rows[i].value), str_of(rows[i].token)) != rows[i].has)
            fail_msg("'%s' and '%s'", rows[i].value, rows[i].token);
    }
    assert_false(http_list_has(STR_NONE, STR("close")));
}

static const struct decode_row {
    struct str in;
    const char *in_path, *in_query; /* NULL: refused */
} decode_rows[] = {
    {{"abc", 3}, "abc", "abc"},   {{"", 0}, "", ""},
    {{"a%20b", 5}, "a b", "a b"}, {{"a+b", 3}, "a+b", "a b"},
    {{"%2B", 3}, "+", "+"},       {{"%c3%A9", 6}, "\xc3\xa9", "\xc3\xa9"},
    {{"%252e", 5}, "%2e", "%2e"}, {{"%252f", 5}, "%2f", "%2f"},
    {{"a%2fb", 5}, NULL, "a/b"},  {{"a%2Fb", 5}, NULL, "a/b"},
    {{"a%5cb", 5}, NULL, "a\\b"}, {{"a\\b", 3}, NULL, "a\\b"},
    {{"a/b", 3}, NULL, "a/b"},    {{".", 1}, NULL, "."},
    {{"..", 2}, NULL, ".."},      {{"%2e%2E", 6}, NULL, ".."},
    {{".%2e", 4}, NULL, ".."},    {{"...", 3}, "...", "..."},
    {{".a", 2}, ".a", ".a"},      {{"%00", 3}, NULL, NULL},
    {{"a%00b", 5}, NULL, NULL},   {{"a\0b", 3}, NULL, NULL},
    {{"%", 1}, NULL, NULL},       {{"%2", 2}, NULL, NULL},
    {{"%2g", 3}, NULL, NULL},     {{"%g2", 3}, NULL, NULL},
    {{"%u002f", 6}, NULL, NULL},  {{"%%41", 4}, NULL, NULL},
    {{"% 41", 4}, NULL, NULL},    {{"%+41", 4}, NULL, NULL},
};

static void check_decode(struct str in, bool is_path, const char *expected)
{
    char out[16];
    int n = http_percent_decode(in, out, is_path);
    if (n != (expected ? (int)strlen(expected) : -1))
        fail_msg("'%.*s' decodes to %d bytes", STR_ARG(in), n);
    if (expected)
        assert_memory_equal(out, expected, n);
}

TEST(test_fields__encodings_are_decoded_once_or_refused)
{
    for (size_t i = 0; i < countof(decode_rows); i++) {
        check_decode(decode_rows[i].in, true, decode_rows[i].in_path);
        check_decode(decode_rows[i].in, false, decode_rows[i].in_query);
    }
}

TEST(test_fields__what_was_encoded_decodes_to_itself)
{
    static const struct str rows[] = {
        {"ses_A-b.c~", 10}, {"a>b\"<c>[d]", 10}, {"%2f /\\?#", 8}, {"\xc3\xa9", 2}};
    static const char *const encoded[] = {"ses_A-b.c~", "a%3Eb%22%3Cc%3E%5Bd%5D",
                                          "%252f%20%2F%5C%3F%23", "%C3%A9"};
    char out[64];

    for (size_t i = 0; i < countof(rows); i++)
        assert_str(str_n(out, http_percent_encode(rows[i], out)), encoded[i]);
    check_decode(STR("a%3Eb%22%3Cc%3E%5Bd%5D"), true, "a>b\"<c>[d]");
}

TEST(test_fields__query_values_are_found_and_counted)
{
    struct str query = STR("a=1&bb=2&a=3&c&d=&=x&e=f=g");
    unsigned count = 99;
    assert_str(http_query_get(query, STR("a"), &count), "1");
    assert_int_equal(count, 2);
    assert_str(http_query_get(query, STR("bb"), NULL), "2");
    assert_str(http_query_get(query, STR("c"), &count), "");
    assert_int_equal(count, 1);
    assert_non_null(http_query_get(query, STR("c"), NULL).p);
    assert_str(http_query_get(query, STR("d"), NULL), "");
    assert_str(http_query_get(query, STR("e"), NULL), "f=g");
    assert_null(http_query_get(query, STR("b"), &count).p);
    assert_int_equal(count, 0);
    assert_null(http_query_get(query, STR("A"), NULL).p);
}

TEST(test_fields__no_query_has_no_values)
{
    unsigned count = 99;
    assert_null(http_query_get(STR_NONE, STR("a"), &count).p);
    assert_int_equal(count, 0);
    assert_null(http_query_get(STR(""), STR("a"), NULL).p);
}

TEST(test_fields__only_visible_ascii_is_safe_in_a_value)
{
    assert_true(http_value_is_safe(STR("")));
    assert_true(http_value_is_safe(STR("a b\t~!")));
    static const struct str unsafe[] = {{"a\rb", 3}, {"a\nb", 3}, {"a\0b", 3},
                                        {"\x7f", 1}, {"\x80", 1}, {"\x1f", 1}};
    for (size_t i = 0; i < countof(unsafe); i++)
        assert_false(http_value_is_safe(unsafe[i]));
}

TEST(test_fields__statuses_have_words)
{
    assert_string_equal(http_reason(404), "Not Found");
    assert_string_equal(http_reason(431), "Request Header Fields Too Large");
    assert_string_equal(http_reason(299), "Unknown");
}
