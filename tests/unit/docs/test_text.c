/* SPDX-License-Identifier: Apache-2.0 */
#include "docs/text.h"

#include "test.h"

static const struct {
    const char *text;
    const char *lines[4];
    size_t n;
} cases[] = {
    {"", {0}, 0},
    {"a", {"a"}, 1},
    {"a\n", {"a"}, 1},
    {"a\nb", {"a", "b"}, 2},
    {"a\n\n", {"a", ""}, 2},
    {"\n", {""}, 1},
    {"a\r\nb\r\n", {"a", "b"}, 2},
    {"\r\n\r\n", {"", ""}, 2},
    {"a\rb\n", {"a\rb"}, 1}, /* CR alone ends nothing */
    {"a\r", {"a\r"}, 1},
    {"\xef\xbb\xbf", {0}, 0}, /* a byte order mark is no part of a line */
    {"\xef\xbb\xbfx\n\xef\xbb\xbfy", {"x", "\xef\xbb\xbfy"}, 2},
    {"\xef\xbb\xbf\r\n", {""}, 1},
};

TEST(test_text_lines__are_cut_at_lf_and_crlf_only)
{
    for (size_t i = 0; i < countof(cases); i++) {
        struct arena *mem = arena_new(1 << 16);
        struct str *lines = NULL;
        assert_int_equal(text_lines(str_of(cases[i].text), mem, &lines), cases[i].n);
        for (size_t k = 0; k < cases[i].n; k++)
            assert_str(lines[k], cases[i].lines[k]);
        arena_free(mem);
    }
}

TEST(test_text_lines__an_absent_text_has_none)
{
    struct arena *mem = arena_new(1 << 16);
    struct str *lines = NULL;
    assert_int_equal(text_lines(STR_NONE, mem, &lines), 0);
    arena_free(mem);
}

static void assert_numbered(const char *text, size_t offset, size_t limit, const char *expected)
{
    struct arena *mem = arena_new(1 << 20);
    struct str *lines = NULL;
    struct buf out;

    buf_init(&out, 1 << 20);
    size_t n = text_lines(str_of(text), mem, &lines);
    text_number(&out, lines, n, offset, limit);
    assert_str(buf_str(&out), expected);
    buf_release(&out);
    arena_free(mem);
}

TEST(test_text_number__is_cat_n)
{
    assert_numbered("hello", 0, 2000, "     1\thello");
    assert_numbered("hello\nworld\n", 1, 2000, "     1\thello\n     2\tworld");
    assert_numbered("", 0, 2000, "");
    assert_numbered("\n", 0, 2000, "     1\t");
    assert_numbered("a\tb\r\n", 0, 2000, "     1\ta\tb");
}

TEST(test_text_number__shows_a_part)
{
    assert_numbered("a\nb\nc\nd", 2, 2, "     2\tb\n     3\tc");
    assert_numbered("a\nb\nc\nd", 4, 2, "     4\td");
    assert_numbered("a\nb\nc\nd", 5, 2, "");
    assert_numbered("a\nb\nc\nd", SIZE_MAX, SIZE_MAX, "");
    assert_numbered("a\nb\nc\nd", 3, SIZE_MAX, "     3\tc\n     4\td");
    assert_numbered("a\nb", 1, 0, "");
}

TEST(test_text_number__wide_numbers_are_not_cut)
{
    static const struct str line = {"x", 1};
    static struct str lines[1000001];
    struct buf out;

    for (size_t i = 0; i < countof(lines); i++)
        lines[i] = line;
    buf_init(&out, 1024);
    text_number(&out, lines, countof(lines), 999999, 3);
    assert_str(buf_str(&out), "999999\tx\n1000000\tx\n1000001\tx");
    buf_release(&out);
}
