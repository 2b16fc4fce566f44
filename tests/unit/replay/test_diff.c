/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of results: what counts, what does not, and texts that are made to be hard. */
#include "test.h"

#include "replay/diff.h"
#include "replay/number.h"

#include <stdio.h>

static struct arena *mem;

static bool run(const char *before, const char *after, struct diff_ignore ignore, struct diff *ret)
{
    arena_free(mem);
    mem = arena_new(SIZE_MAX / 4);
    return diff_json(str_of(before), str_of(after), &ignore, mem, ret);
}

static void done(void)
{
    arena_free(mem);
    mem = NULL;
}

/* "changed /a 1 2; added /b - 3" */
static const char *found(const char *before, const char *after)
{
    static char text[8192];
    struct diff d;
    size_t at = 0;

    assert_true(run(before, after, (struct diff_ignore){0}, &d));
    text[0] = 0;
    for (size_t i = 0; i < d.n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %.*s %.*s %.*s", i ? "; " : "",
                               diff_kind_names[d.list[i].kind], STR_ARG(d.list[i].path),
                               STR_ARG(d.list[i].before.p ? d.list[i].before : STR("-")),
                               STR_ARG(d.list[i].after.p ? d.list[i].after : STR("-")));
    return text;
}

TEST(test_diff__table)
{
    static const struct {
        const char *before, *after, *want;
    } rows[] = {
        {"{}", "{}", ""},
        {"1", "2", "changed  1 2"},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", ""},
        {"{\"a\":1}", "{\"a\":1.0}", ""},
        {"{\"a\":100}", "{\"a\":1e2}", ""},
        {"{\"a\":9007199254740993}", "{\"a\":9007199254740992}",
         "changed /a 9007199254740993 9007199254740992"},
        {"{\"a\":-0}", "{\"a\":0.000}", ""},
        {"{\"a\":\"x\"}", "{\"a\":\"\\u0078\"}", ""},
        {"{\"a\":null}", "{}", "removed /a null -"},
        {"{}", "{\"a\":null}", "added /a - null"},
        {"{\"a\":\"1\"}", "{\"a\":1}", "changed /a \"1\" 1"},
        {"{\"a/b~c\":1}", "{\"a/b~c\":2}", "changed /a~1b~0c 1 2"},
        {"[1,2,3]", "[1,3]", "changed /1 2 3; removed /2 3 -"},
        {"[]", "[[]]", "added /0 - []"},
        {"{\"t\":\"{\\\"n\\\": 1, \\\"m\\\": 2}\"}", "{\"t\":\"{\\\"m\\\":2,\\\"n\\\":1.0}\"}", ""},
        {"{\"t\":\"[1,{\\\"time\\\":1}]\"}", "{\"t\":\"[1,{\\\"time\\\":2}]\"}",
         "changed /t/1/time 1 2"},
        {"{\"t\":\"{not json\"}", "{\"t\":\"{\\\"a\\\":1}\"}",
         "changed /t \"{not json\" \"{\\\"a\\\":1}\""},
        {"{\"t\":\"12\"}", "{\"t\":\"12.0\"}", "changed /t \"12\" \"12.0\""},
        /* the last of equal keys counts */
        {"{\"a\":1,\"a\":2}", "{\"a\":2}", ""},
        {"{\"resultType\":\"complete\",\"content\":[]}", "{\"content\":[]}", ""},
        {"{\"resultType\":\"input_required\"}", "{}", "removed /resultType \"input_required\" -"},
        {"{\"_meta\":{\"holdfast/recording\":{},\"x\":1}}", "{\"_meta\":{\"x\":1}}", ""},
        {"{\"_meta\":{\"holdfastly\":1}}", "{\"_meta\":{}}", "removed /_meta/holdfastly 1 -"},
        {"{\"a\":{\"resultType\":\"complete\"}}", "{\"a\":{}}",
         "removed /a/resultType \"complete\" -"},
    };

    for (size_t i = 0; i < countof(rows); i++)
        assert_string_equal(found(rows[i].before, rows[i].after), rows[i].want);
    done();
}

TEST(test_diff__ignores_places_and_what_is_below)
{
    static const struct {
        const char *pattern, *path_of; /* "/a/0/t" */
        bool is_ignored;
    } rows[] = {
        {"/a/0/t", "/a/0/t", true}, {"/a/*/t", "/a/0/t", true},    {"/a", "/a/0/t", true},
        {"/*", "/a/0/t", true},     {"/a/0/t/x", "/a/0/t", false}, {"/a/1", "/a/0/t", false},
        {"/b", "/a/0/t", false},    {"/a/*/*/x", "/a/0/t", false}, {"/A", "/a/0/t", false},
        {"/", "/a/0/t", false},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct str pattern = str_of(rows[i].pattern);
        struct diff d;
        assert_true(run("{\"a\":[{\"t\":1}]}", "{\"a\":[{\"t\":2}]}",
                        (struct diff_ignore){&pattern, 1}, &d));
        assert_int_equal(d.total, rows[i].is_ignored ? 0 : 1);
    }
    done();
}

TEST(test_diff__patterns_begin_with_a_slash_and_have_a_limit)
{
    static char longest[DIFF_PATTERN_MAX + 2];
    struct error err;

    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    assert_true(diff_pattern_check(str_n(longest, DIFF_PATTERN_MAX), &err));
    assert_false(diff_pattern_check(str_n(longest, DIFF_PATTERN_MAX + 1), &err));
    assert_false(diff_pattern_check(STR("a/b"), &err));
    assert_false(diff_pattern_check(STR(""), &err));
    assert_false(diff_pattern_check(str_n("/a\0b", 4), &err));
}

TEST(test_diff__shows_so_many_and_counts_the_others)
{
    struct buf a, b;
    struct diff d;

    buf_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < DIFF_SHOWN + 5; i++) {
        buf_addf(&a, "%s%d", i ? "," : "[", i);
        buf_addf(&b, "%s%d", i ? "," : "[", i + 1000);
    }
    buf_addc(&a, ']');
    buf_addc(&b, ']');
    assert_true(run(a.p, b.p, (struct diff_ignore){0}, &d));
    assert_int_equal(d.n, DIFF_SHOWN);
    assert_int_equal(d.total, DIFF_SHOWN + 5);
    buf_release(&a);
    buf_release(&b);
    done();
}

TEST(test_diff__cuts_long_values_and_paths)
{
    struct buf a;
    struct diff d;

    buf_init(&a, 1 << 20);
    buf_addz(&a, "{\"");
    for (int i = 0; i < 5000; i++)
        buf_addc(&a, 'k');
    buf_addz(&a, "\":\"");
    for (int i = 0; i < 5000; i++)
        buf_addz(&a, "\xc3\xa9");
    buf_addz(&a, "\"}");
    assert_true(run(a.p, "{}", (struct diff_ignore){0}, &d));
    assert_int_equal(d.n, 1);
    assert_true(d.list[0].path.n <= DIFF_PATH_MAX + 3);
    assert_true(d.list[0].before.n <= DIFF_VALUE_MAX + 3);
    assert_true(str_ends(d.list[0].before, STR("\xc3\xa9\xe2\x80\xa6")));
    assert_null(d.list[0].after.p);
    buf_release(&a);
    done();
}

TEST(test_diff__a_value_is_one_line)
{
    assert_string_equal(found("{\"a\":[1,\n2]}", "{}"), "removed /a [1, 2] -");
    done();
}

TEST(test_diff__refuses_what_is_not_json)
{
    struct diff d;

    assert_false(run("{", "{}", (struct diff_ignore){0}, &d));
    assert_false(run("{}", "", (struct diff_ignore){0}, &d));
    done();
}

/* Text in text in text …: followed to DIFF_TEXT_DEPTH, compared as text below. */
TEST(test_diff__follows_json_in_text_to_a_depth)
{
    const char *inner[] = {"{\"a\":1}", "{\"a\":2}"};
    struct buf text[2], next;
    struct diff d;

    for (int side = 0; side < 2; side++) {
        buf_init(&text[side], 1 << 20);
        buf_addz(&text[side], inner[side]);
        for (int level = 0; level < DIFF_TEXT_DEPTH + 2; level++) {
            buf_init(&next, 1 << 20);
            buf_addz(&next, "{\"t\":\"");
            for (size_t i = 0; i < text[side].n; i++) {
                if (text[side].p[i] == '"' || text[side].p[i] == '\\')
                    buf_addc(&next, '\\');
                buf_addc(&next, text[side].p[i]);
            }
            buf_addz(&next, "\"}");
            buf_release(&text[side]);
            text[side] = next;
        }
    }
    assert_true(run(text[0].p, text[1].p, (struct diff_ignore){0}, &d));
    assert_int_equal(d.total, 1);
    assert_str(d.list[0].path, "/t/t/t/t");
    buf_release(&text[0]);
    buf_release(&text[1]);
    done();
}

/* As deep as the parser allows, as wide as it allows, and with keys in the worst order. */
TEST(test_diff__takes_the_deepest_and_the_widest)
{
    char deep[2 * 64 + 1];
    struct buf wide;
    struct diff d;

    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    deep[128] = 0;
    assert_true(run(deep, deep, (struct diff_ignore){0}, &d));
    assert_int_equal(d.total, 0);
    buf_init(&wide, 1 << 20);
    for (int i = 0; i < 10000; i++)
        buf_addf(&wide, "%s\"%05d\":%d", i ? "," : "{", 9999 - i, i);
    buf_addc(&wide, '}');
    assert_true(run(wide.p, wide.p, (struct diff_ignore){0}, &d));
    assert_int_equal(d.total, 0);
    buf_release(&wide);
    done();
}

TEST(test_number_canonical__one_spelling_for_one_value)
{
    static const struct {
        const char *number, *want;
    } rows[] = {
        {"0", "0"},
        {"-0.0", "0"},
        {"0e99", "0"},
        {"10", "1e1"},
        {"1.50", "15e-1"},
        {"-12000", "-12e3"},
        {"0.00120", "12e-4"},
        {"1E+2", "1e2"},
        {"1e-2", "1e-2"},
        {"100e-2", "1e0"},
        {"123456789012345678901234567890", "12345678901234567890123456789e1"},
        {"1e99999999999999999999", "1e9999999999999999"},
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct buf out;
        buf_init(&out, 1024);
        number_canonical(str_of(rows[i].number), &out);
        assert_str(buf_str(&out), rows[i].want);
        buf_release(&out);
    }
}

/* The values of the one difference between two long texts. */
TEST(test_long_values__are_shown_about_the_first_difference)
{
    static char before[4096], after[4096];
    struct diff d;

    for (size_t same = 100; same < 2000; same += 150) {
        memset(before, 'x', sizeof(before));
        before[0] = '"';
        memcpy(before + 3000, "\"", 2);
        memcpy(after, before, sizeof(after));
        before[same] = 'B';
        after[same] = 'A';
        assert_true(run(before, after, (struct diff_ignore){0}, &d));
        assert_int_equal(d.total, 1);
        assert_true(str_find(d.list[0].before, 'B') < d.list[0].before.n);
        assert_true(str_find(d.list[0].after, 'A') < d.list[0].after.n);
        assert_true(d.list[0].before.n <= DIFF_VALUE_MAX + 2 * strlen("…"));
        assert_int_equal(str_starts(d.list[0].before, STR("…")), same > 160);
    }
    /* A character is not cut, and one value may be the beginning of the other. */
    memset(before, 'x', sizeof(before));
    before[0] = '"';
    for (size_t i = 1; i < 901; i += 3)
        memcpy(before + i, "☕", 3);
    memcpy(after, before, sizeof(after));
    memcpy(before + 901, "\"", 2);
    memcpy(after + 901, "end\"", 5);
    assert_true(run(before, after, (struct diff_ignore){0}, &d));
    assert_true(str_starts(d.list[0].before, STR("…☕☕")) && str_ends(d.list[0].before, STR("☕\"")));
    assert_true(str_starts(d.list[0].after, STR("…☕☕")) &&
                str_ends(d.list[0].after, STR("☕end\"")));
    done();
}
