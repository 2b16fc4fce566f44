/* SPDX-License-Identifier: Apache-2.0 */
/* Text of peers in Markdown stays text. */
#include "export/md.h"

#include "test.h"

static void code_is(const char *text, const char *want)
{
    struct buf out;

    buf_init(&out, 4096);
    md_code(&out, str_of(text), 100);
    assert_string_equal(out.p, want);
    buf_release(&out);
}

TEST(test_md_code__needs_one_backtick_more_than_the_text_has)
{
    code_is("read_file", "`read_file`");
    code_is("a`b", "``a`b``");
    code_is("``", "``` `` ```");
    code_is("", "`  `");
    code_is(" x", "`  x `");
    code_is("<img src=x onerror=alert(1)>", "`<img src=x onerror=alert(1)>`");
}

TEST(test_md_code__shows_line_breaks_and_invisible_characters)
{
    code_is("a\nb\r# c", "`a<U+000A>b<U+000D># c`");
    code_is("x\xe2\x80\xaey", "`x<U+202E>y`");
    code_is("a\xff", "`a\xef\xbf\xbd`");
    code_is("👩‍💻", "`👩‍💻`");
}

TEST(test_md_code__is_cut_at_its_limit_and_not_below)
{
    char text[102];
    struct buf out;

    memset(text, 'x', sizeof(text));
    buf_init(&out, 4096);
    md_code(&out, str_n(text, 100), 100);
    assert_int_equal(out.n, 102);
    buf_reset(&out);
    md_code(&out, str_n(text, 101), 100);
    assert_true(str_ends(buf_str(&out), STR("x…`")));
    buf_release(&out);
}

TEST(test_md_block__has_a_fence_that_the_text_does_not_have)
{
    struct buf out;

    buf_init(&out, 4096);
    md_block(&out, STR("a\n```\n<b>\n`````\nc"), NULL);
    assert_string_equal(out.p, "``````\na\n```\n<b>\n`````\nc\n``````\n");
    buf_reset(&out);
    md_block(&out, STR("a\tb\n"), "json");
    assert_string_equal(out.p, "```json\na\tb\n```\n");
    buf_reset(&out);
    md_block(&out, STR("a\r\n\r\r\nb\r"), NULL); /* of Windows */
    assert_string_equal(out.p, "```\na\n<U+000D>\nb<U+000D>\n```\n");
    buf_reset(&out);
    md_block(&out, STR("a\r```\rb"), NULL); /* a carriage return ends a line, too */
    assert_string_equal(out.p, "````\na<U+000D>```<U+000D>b\n````\n");
    buf_release(&out);
}

TEST(test_md_json__indents_and_keeps_every_token)
{
    struct buf out;

    buf_init(&out, 4096);
    md_json(&out,
            STR("{\"a\":[1,2.50,{}],\"b\" : \"{\\\"x\\\":[\",\"c\":[ ],\"n\":9007199254740993}"));
    assert_string_equal(out.p, "{\n  \"a\": [\n    1,\n    2.50,\n    {}\n  ],\n"
                               "  \"b\": \"{\\\"x\\\":[\",\n  \"c\": [],\n"
                               "  \"n\": 9007199254740993\n}");
    buf_release(&out);
}

TEST(test_md_json__does_not_blow_up_deep_values)
{
    char text[64 * 1024];
    struct buf out;

    memset(text, '[', sizeof(text));
    for (size_t i = 60; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "1,", 2);
    buf_init(&out, 16 * sizeof(text));
    md_json_block(&out, str_n(text, sizeof(text)));
    assert_true(out.n < 10 * sizeof(text));
    buf_release(&out);
}
