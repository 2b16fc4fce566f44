/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: commas, escapes, indentation. */
#include "test.h"

#include "json/read.h"
#include "json/write.h"

#include <stdio.h>

static struct buf out;
static struct js_writer w;

static void begin(void)
{
    buf_release(&out);
    buf_init(&out, 1 << 20);
    js_begin(&w, &out);
}

static void expect(const char *text)
{
    assert_str(buf_str(&out), text);
    buf_release(&out);
}

static void sample(void)
{
    js_object(&w);
    js_kv_string(&w, "s", STR("x"));
    js_kv_string(&w, "absent", STR_NONE);
    js_kv_raw(&w, "absent", STR_NONE);
    js_kv_int(&w, "i", -5);
    js_key(&w, STR("list"));
    js_array(&w);
    js_int(&w, 1);
    js_array(&w);
    js_array_end(&w);
    js_object(&w);
    js_object_end(&w);
    js_null(&w);
    js_array_end(&w);
    js_kv_bool(&w, "b", true);
    js_kv_raw(&w, "r", STR("[1, 2]"));
    js_object_end(&w);
}

TEST(test_js_writer__places_every_comma)
{
    begin();
    sample();
    expect("{\"s\":\"x\",\"i\":-5,\"list\":[1,[],{},null],\"b\":true,\"r\":[1, 2]}");
}

TEST(test_js_writer__pretty_is_for_people)
{
    begin();
    w.pretty = true;
    sample();
    expect("{\n  \"s\": \"x\",\n  \"i\": -5,\n  \"list\": [\n    1,\n    [],\n    {},\n    null\n"
           "  ],\n  \"b\": true,\n  \"r\": [1, 2]\n}");
}

TEST(test_js_writer__scalars_at_the_top)
{
    begin();
    js_int(&w, INT64_MIN);
    expect("-9223372036854775808");
}

TEST(test_js_string__escapes_what_must_be_and_mends_what_is_not_utf8)
{
    begin();
    js_string(&w, STR("\"\\/\b\f\n\r\t\x01\x7f\xc3\xa4\xff\xed\xa0\x80\0"));
    expect("\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef"
           "\xbf\xbd\\u0000\"");
}

TEST(test_js_string__whatever_is_written_reads_back)
{
    struct arena *mem = arena_new(1 << 20);
    struct js_doc doc;

    for (int c = 0; c < 256; c++) {
        char text[3] = {'a', (char)c, 'z'};
        begin();
        js_string(&w, str_n(text, 3));
        assert_true(js_parse(buf_str(&out), &js_limits_request, mem, &doc, NULL));
        if (c < 128)
            assert_true(js_is(&doc, js_root(&doc), str_n(text, 3)));
        else
            assert_true(js_is(&doc, js_root(&doc), STR("a\xef\xbf\xbdz")));
    }
    buf_release(&out);
    arena_free(mem);
}

/* One odd byte at every place of texts of every length around a word. */
TEST(test_js_string__every_byte_is_written_alike_at_every_place)
{
    char text[20], alone[16], want[64];

    for (int c = 0; c < 256; c++) {
        begin();
        js_string(&w, str_n((const char[]){(char)c}, 1));
        int n = snprintf(alone, sizeof(alone), "%.*s", (int)out.n - 2, out.p + 1);
        assert_true(n == 1 || c < 0x20 || c >= 0x80 || c == '"' || c == '\\');
        for (size_t length = 1; length <= sizeof(text); length++)
            for (size_t at = 0; at < length; at++) {
                memset(text, 'a', length);
                text[at] = (char)c;
                snprintf(want, sizeof(want), "\"%.*s%s%.*s\"", (int)at, "aaaaaaaaaaaaaaaaaaaa",
                         alone, (int)(length - at - 1), "aaaaaaaaaaaaaaaaaaaa");
                begin();
                js_string(&w, str_n(text, length));
                if (out.n != strlen(want) || memcmp(out.p, want, out.n) != 0)
                    fail_msg("byte %d at %zu of %zu: %s", c, at, length, out.p);
            }
    }
    buf_release(&out);
}

TEST(test_js_writer__sixty_three_levels)
{
    begin();
    for (int i = 0; i < 63; i++)
        js_array(&w);
    js_int(&w, 1);
    js_int(&w, 2);
    for (int i = 0; i < 63; i++)
        js_array_end(&w);
    assert_int_equal(out.n, 63 * 2 + 3);
    assert_memory_equal(out.p + 62, "[1,2]", 5);
    buf_release(&out);
}

TEST(test_js_flatten__leaves_one_line_and_every_other_byte)
{
    char text[] = "\n{\"a\\n\":\r\n\t1}\r", none[] = "[]";

    js_flatten(text, sizeof(text) - 1);
    assert_string_equal(text, " {\"a\\n\":  \t1} ");
    js_flatten(none, 0);
    js_flatten(none, 2);
    assert_string_equal(none, "[]");
}
