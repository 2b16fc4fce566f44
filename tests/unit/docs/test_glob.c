/* SPDX-License-Identifier: Apache-2.0 */
#include "docs/text.h"

#include <stdlib.h>

#include "base/buf.h"
#include "test.h"

static const struct {
    const char *pattern, *path;
    bool fits;
} cases[] = {
    {"a.md", "a.md", true},
    {"a.md", "A.md", false},
    {"a.md", "x/a.md", false},
    {"*.md", "a.md", true},
    {"*.md", "x/a.md", false},
    {"*", "a.md", true},
    {"*", "x/a.md", false},
    {"*/*.md", "x/a.md", true},
    {"**", "a.md", true},
    {"**", "x/y/a.md", true},
    {"**/*.md", "a.md", true},
    {"**/*.md", "x/a.md", true},
    {"**/*.md", "x/y/a.md", true},
    {"**/*.md", "x/y/a.txt", false},
    {"x/**", "x/a.md", true},
    {"x/**", "x/y/a.md", true},
    {"x/**", "x", false},
    {"x/**", "y/a.md", false},
    {"x/**/a.md", "x/a.md", true},
    {"x/**/a.md", "x/y/z/a.md", true},
    {"x/**/a.md", "y/a.md", false},
    {"**/x/**", "x/a.md", true},
    {"**/x/**", "w/x/a.md", true},
    {"**/x/**", "w/x", false},
    {"**/**/a.md", "a.md", true},
    {"x/**/**", "x/a.md", true},
    {"**/a/**/b/**/c", "a/b/c", true},
    {"**/a/**/b/**/c", "1/a/2/3/b/c", true},
    {"**/a/**/b/**/c", "1/b/2/3/a/c", false},
    {"**/a/b", "a/a/b", true},
    {"**/a/b", "a/b/a/b", true},
    {"x**.md", "xyz.md", true}, /* no part of its own: one star */
    {"x**.md", "x/y.md", false},
    {"a?c", "abc", true},
    {"a?c", "ac", false},
    {"a?c", "a/c", false},
    {"a?c",
     "a\xc3\xa9"
     "c",
     true},
    {"a*b*c", "a1b2b3c", true},
    {"a*b*c", "a1b2b3", false},
    {"*a", "bbba", true},
    {"a*", "a", true},
    {"[a-c]x", "bx", true},
    {"[a-c]x", "dx", false},
    {"[!a-c]x", "dx", true},
    {"[^a-c]x", "bx", false},
    {"[]]x", "]x", true},
    {"[!]]x", "]x", false},
    {"[a-]x", "-x", true},
    {"[\\]]x", "]x", true},
    {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true},
    {"[!x]", "\xc3\xa9", true},
    {"[a{,}]b", "{b", true},
    {"a]", "a]", true},
    {"{a,b}.md", "a.md", true},
    {"{a,b}.md", "b.md", true},
    {"{a,b}.md", "c.md", false},
    {"{a}.md", "a.md", true},
    {"{,a}b", "b", true},
    {"{,a}b", "ab", true},
    {"{}b", "b", true},
    {"{a,{b,c}d}e", "cde", true},
    {"{a,{b,c}d}e", "ae", true},
    {"{a,{b,c}d}e", "be", false},
    {"{**,x}/a.md", "a.md", true},
    {"{x,y/**}/a.md", "y/a.md", true},
    {"*.{md,txt}", "x.txt", true},
    {"a,b", "a,b", true},
    {"\\*.md", "*.md", true},
    {"\\*.md", "a.md", false},
    {"\\{a\\}", "{a}", true},
    {"\\[a]", "[a]", true},
    {"a\\", "a\\", true},
    {"{\\,,b}", ",", true},
    {"a//b", "a/b", false},
    {"a/", "a", false},
    {"a\xff", "a\xff", true},
    {"?", "\xff", true},
};

TEST(test_glob__fits_what_it_says)
{
    for (size_t i = 0; i < countof(cases); i++) {
        struct arena *mem = arena_new(1 << 20);
        struct glob *g = NULL;
        struct error err;
        assert_true(glob_compile(str_of(cases[i].pattern), mem, &g, &err));
        if (glob_matches(g, str_of(cases[i].path)) != cases[i].fits)
            fail_msg("%s on %s", cases[i].pattern, cases[i].path);
        arena_free(mem);
    }
}

static bool compiles(struct str pattern)
{
    struct arena *mem = arena_new(1 << 24);
    struct glob *g = NULL;
    struct error err = {0};
    bool ok = glob_compile(pattern, mem, &g, &err);

    if (!ok)
        assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_true(ok == (g != NULL));
    arena_free(mem);
    return ok;
}

TEST(test_glob__unbalanced_patterns_are_refused)
{
    static const char *const bad[] = {"",  "{a", "a}",    "{a,{b}", "[a",
                                      "[", "[]", "[a/b]", "{[}",    "{a,[b}"};
    for (size_t i = 0; i < countof(bad); i++)
        if (compiles(str_of(bad[i])))
            fail_msg("%s", bad[i]);
}

TEST(test_glob__a_pattern_has_1024_bytes_at_most)
{
    char text[1025];
    memset(text, 'a', sizeof text);
    assert_true(compiles(str_n(text, 1024)));
    assert_false(compiles(str_n(text, 1025)));
    memset(text, '/', sizeof text);
    assert_true(compiles(str_n(text, 1024)));
}

TEST(test_glob__there_are_128_alternatives_at_most)
{
    assert_true(compiles(STR("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}")));
    assert_false(compiles(STR("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}")));
    struct buf b;
    buf_init(&b, 1024);
    buf_addz(&b, "{");
    for (int i = 0; i < 127; i++)
        buf_addz(&b, "a,");
    buf_addz(&b, "a}");
    assert_true(compiles(buf_str(&b)));
    b.n--;
    buf_addz(&b, ",a}");
    assert_false(compiles(buf_str(&b)));
    buf_release(&b);
}

TEST(test_glob__alternatives_have_8_kib_at_most_in_all)
{
    char text[1024];
    /* Eight alternatives of 1,024 bytes each fit, of 1,025 they do not. */
    memset(text, 'a', sizeof text);
    memcpy(text, "{,,,,,,,}", 9);
    assert_true(compiles(str_n(text, 1024)));
    memcpy(text, "{,,,,,,,,}", 10);
    assert_false(compiles(str_n(text, 1024)));
}

TEST(test_glob__deep_groups_are_fine)
{
    char text[1024];
    memset(text, '{', 511);
    text[511] = 'a';
    memset(text + 512, '}', 511);
    assert_true(compiles(str_n(text, 1023)));
}

/* Anything that goes back and forth would not end here. */
TEST(test_glob__hard_patterns_end)
{
    static const char *const units[] = {"*a", "**/a/", "**/*/", "?*", "**/*a*a*a/"};
    char name[1024];

    for (size_t u = 0; u < countof(units); u++) {
        struct arena *mem = arena_new(1 << 24);
        struct glob *g = NULL;
        struct error err;
        struct buf b;
        buf_init(&b, 1024);
        while (b.n + strlen(units[u]) < 1024)
            buf_addz(&b, units[u]);
        buf_addz(&b, "b");
        assert_true(glob_compile(buf_str(&b), mem, &g, &err));
        for (size_t i = 0; i < sizeof name; i++)
            name[i] = i % 2 && u ? '/' : 'a';
        for (int i = 0; i < 20; i++)
            assert_false(glob_matches(g, str_n(name, sizeof name)));
        buf_release(&b);
        arena_free(mem);
    }
}
