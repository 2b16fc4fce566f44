/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal gets to see of documents. */
#include "test.h"

#include "docs/cli/view.h"

static struct buf out;

static const char *view(struct str text)
{
    buf_release(&out);
    buf_init(&out, 1 << 16);
    docs_view_text(&out, text, "  ");
    return buf_str(&out).p;
}

TEST(test_docs_view__no_control_character_gets_through)
{
    char all[33];
    for (int i = 0; i < 32; i++)
        all[i] = (char)i;
    all[32] = 0x7f;
    struct str shown = str_of(view(str_n(all, sizeof(all))));
    for (size_t i = 0; i < shown.n; i++)
        assert_true((unsigned char)shown.p[i] >= ' ' || shown.p[i] == '\n' || shown.p[i] == '\t');
    assert_null(memchr(shown.p, 0x7f, shown.n));
    assert_string_equal(view(STR("\033[2J")), "\\x1b[2J");
    assert_string_equal(view(STR("a\xc2\x9b"
                                 "b\xc2\xa0")),
                        "a\\x9b"
                        "b\xc2\xa0");
    buf_release(&out);
}

/* Each with the bytes of one character that nobody would see. */
TEST(test_docs_view__characters_that_cannot_be_seen_are_shown_by_number)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"a\u202eb", "a\\u202eb"},                  /* right-to-left override */
        {"a\u2066b\u2069", "a\\u2066b\\u2069"},     /* isolates */
        {"a\u200b\u200db", "a\\u200b\\u200db"},     /* zero width */
        {"a\ufe0fb", "a\\ufe0fb"},                  /* variation selector */
        {"a\U000e0041", "a\\ue0041"},               /* tag */
        {"a\ufeff", "a\\ufeff"},                    /* byte order mark */
        {"a\u00ad", "a\\xad"},                      /* soft hyphen */
        {"a\rb\r", "a\\x0db"},                      /* a carriage return that ends no line */
        {"\xff\xc3", "\\xff\\xc3"},                 /* no UTF-8 */
        {"\u2764\ufe0f \U0001f468\u200d\U0001f469", /* emoji stay whole */
         "\u2764\ufe0f \U0001f468\u200d\U0001f469"},
    };
    for (size_t i = 0; i < countof(rows); i++)
        assert_string_equal(view(str_of(rows[i].text)), rows[i].shown);
    buf_reset(&out);
    docs_view_json(&out, STR("{\"a\":\"\u202e\U000e0041\u00e4\"}"));
    assert_string_equal(buf_str(&out).p, "{\"a\":\"\\u202e\\udb40\\udc41\u00e4\"}");
    buf_release(&out);
}

TEST(test_docs_view__lines_after_the_first_are_indented)
{
    assert_string_equal(view(STR("one\r\ntwo\nthree")), "one\n  two\n  three");
    buf_release(&out);
}

TEST(test_docs_view__ages_are_told_in_one_unit)
{
    static const struct {
        int64_t age_ms;
        const char *text;
    } rows[] = {{-5000, "now"},         {999, "now"},           {1000, "1 s ago"},
                {59999, "59 s ago"},    {60000, "1 min ago"},   {3599999, "59 min ago"},
                {3600000, "1 h ago"},   {86399999, "23 h ago"}, {86400000, "1 d ago"},
                {864000000, "10 d ago"}};
    for (size_t i = 0; i < countof(rows); i++) {
        buf_init(&out, 1 << 16);
        docs_view_ago(&out, 1000000, 1000000 + rows[i].age_ms);
        assert_string_equal(buf_str(&out).p, rows[i].text);
        buf_release(&out);
    }
    buf_init(&out, 1 << 16);
    docs_view_ago(&out, 0, 5);
    assert_int_equal(out.n, 0);
    buf_release(&out);
}

TEST(test_docs_view__changes_are_marked_by_signs_or_by_lines_and_colour)
{
    struct docs_item i = {.type = STR("substitution"),
                          .old = STR("quick"),
                          .fresh = STR("fast"),
                          .before = STR("The "),
                          .after = STR(" fox")};
    buf_init(&out, 1 << 16);
    docs_view_change(&out, &i, "> ", false);
    assert_string_equal(out.p, "> The [-quick-]{+fast+} fox\n");
    buf_reset(&out);
    docs_view_change(&out, &i, "", true);
    assert_string_equal(out.p, "The \033[31;9mquick\033[0m\033[32;4mfast\033[0m fox\n");
    buf_reset(&out);
    i.type = STR("comment");
    i.old = STR_NONE;
    docs_view_change(&out, &i, "", false);
    assert_string_equal(out.p, "The {>>fast<<} fox\n");
    buf_release(&out);
}
