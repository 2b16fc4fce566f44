/* SPDX-License-Identifier: Apache-2.0 */
#include "docs/links.h"

#include <stdlib.h>

#include "base/buf.h"
#include "doc_names.h"
#include "test.h"

/* What is found, as "target|target"; md links are marked by a leading '='. */
static const struct {
    const char *text, *found;
} finds[] = {
    {"", ""},
    {"no links", ""},
    {"[[a]]", "a"},
    {"x [[a]] y [[b/c]] z", "a|b/c"},
    {"[[a|alias]]", "a"},
    {"[[a#anchor]]", "a"},
    {"[[a#anchor|alias]]", "a"},
    {"[[a|alias # b]]", "a"},
    {"[[a^b]]", "a^b"},
    {"![[a]]", "a"},
    {"![[a.md|100]]", "a.md"},
    {"[[ a b ]]", "a b"},
    {"| [[a\\|alias]] |", "a"},
    {"[[#only]]", ""},
    {"[[]]", ""},
    {"[[|x]]", ""},
    {"[[a\nb]]", ""},
    {"[[a", ""},
    {"[[a]", ""},
    {"[[a]b]]", ""},
    {"[[[a]]]", "a"},
    {"[[x [[a]]", "a"},
    {"[[a|b [c] d]]", "a"},
    {"\\[[a]]", ""},
    {"\\\\[[a]]", "a"},
    {"[[http://x.y]]", ""},
    {"[[mailto:me]]", ""},
    {"[[Plan: draft]]", "Plan: draft"},
    {"[t](a.md)", "=a.md"},
    {"[t](a.md#x)", "=a.md"},
    {"[t](#x)", ""},
    {"[t]()", ""},
    {"[](a.md)", "=a.md"},
    {"![t](a.md)", "=a.md"},
    {"[t](a.md \"title\")", "=a.md"},
    {"[t](a.md 'title')", "=a.md"},
    {"[t](a.md (title))", "=a.md"},
    {"[t](a.md \"ti\\\"tle\")", "=a.md"},
    {"[t](a.md \"title)", ""},
    {"[t](a.md\"title\")", "=a.md\"title\""},
    {"[t]( a.md )", "=a.md"},
    {"[t](a b.md)", ""},
    {"[t](a%20b.md)", "=a b.md"},
    {"[t](a%2Fb.md)", "=a/b.md"},
    {"[t](a%23b.md)", "=a#b.md"},
    {"[t](100%.md)", "=100%.md"},
    {"[t](%zz.md)", "=%zz.md"},
    {"[t](a%00.md)", ""},
    {"[t](a%ff.md)", ""},
    {"[t](<a b.md>)", "=a b.md"},
    {"[t](<a b.md#x> \"t\")", "=a b.md"},
    {"[t](<a>b.md)", ""},
    {"[t](<>)", ""},
    {"[t](a(b).md)", "=a(b).md"},
    {"[t](a\\(b.md)", "=a(b.md"},
    {"[t](a(b.md)", ""},
    {"[t](http://x.y/a.md)", ""},
    {"[t](HTTPS://x.y/a.md)", ""},
    {"[t](mailto:a@b.md)", ""},
    {"[t](//x.y/a.md)", ""},
    {"[t](/a.md)", "=/a.md"},
    {"[t](../a.md)", "=../a.md"},
    {"[a [b] c](d.md)", "=d.md"},
    {"[a\nb](c.md)", "=c.md"},
    {"[a\n\nb](c.md)", ""},
    {"x](c.md)", ""},
    {"\\[x](c.md)", ""},
    {"[x]\\(c.md)", ""},
    {"[![i](p.png)](c.md)", "=p.png|=c.md"},
    {"[[a]](b.md)", "a"},
    {"`[[a]]`", ""},
    {"``[[a]]`` [[b]]", "b"},
    {"`` ` [[a]]`` [[b]]", "b"},
    {"`[[a]]", "a"},
    {"`` [[a]] `", "a"},
    {"` [[a]]\n\n` [[b]]", "a|b"}, /* a span does not leave its paragraph */
    {"`\n[[a]]\n`", ""},
    {"\\`[[a]]`", "a"},
    {"[`](a.md)`", ""},
    {"```\n[[a]]\n```\n[[b]]", "b"},
    {"```md\n[[a]]\n````\n[[b]]", "b"},
    {"````\n[[a]]\n```\n[[c]]\n````\n[[b]]", "b"},
    {"~~~\n[[a]]\n```\n~~~\n[[b]]", "b"},
    {"   ```\n[[a]]\n   ```\n[[b]]", "b"},
    {"    ```\n[[a]]\n    ```\n[[b]]", "b"}, /* too far in for a fence, so a span */
    {"```\n[[a]]\n``` x\n[[b]]", ""},
    {"```\n[[a]]", ""},
    {"[[a]]\n```\n[[b]]", "a"},
    {"``` ` ```\n[[a]]", "a"},
    {"a ```\n[[a]]", "a"},
    {"```\r\n[[a]]\r\n```\r\n[[b]]\r\n", "b"},
    {"`a\n```\n[[x]]\n```\n`[[b]]", "b"},
};

static struct str found_in(struct str text, struct arena *mem)
{
    struct link_found *links = NULL;
    size_t n = links_find(text, mem, &links);
    struct buf b;

    buf_init(&b, 1 << 20);
    for (size_t i = 0; i < n; i++) {
        buf_addz(&b, i ? "|" : "");
        buf_addz(&b, links[i].is_wiki ? "" : "=");
        buf_addstr(&b, links[i].target);
        assert_true(links[i].at + links[i].n <= text.n && links[i].n > 0);
    }
    struct str out = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return out;
}

TEST(test_links_find__finds_what_is_a_link_and_nothing_else)
{
    for (size_t i = 0; i < countof(finds); i++) {
        struct arena *mem = arena_new(1 << 20);
        struct str found = found_in(str_of(finds[i].text), mem);
        if (!str_eq(found, str_of(finds[i].found)))
            fail_msg("%s: \"%.*s\", not \"%s\"", finds[i].text, STR_ARG(found), finds[i].found);
        arena_free(mem);
    }
}

static void assert_place(const char *text, const char *before, const char *target)
{
    struct arena *mem = arena_new(1 << 20);
    struct link_found *links = NULL;

    assert_int_equal(links_find(str_of(text), mem, &links), 1);
    assert_int_equal(links[0].at, strlen(before));
    assert_str(str_n(text + links[0].at, links[0].n), target);
    arena_free(mem);
}

TEST(test_links_find__tells_where_the_target_stands)
{
    assert_place("x [[ a b #c|d]]", "x [[ ", "a b");
    assert_place("[t]( <a b.md#c> \"t\")", "[t]( <", "a b.md");
    assert_place("[t](a%20b.md#c)", "[t](", "a%20b.md");
    assert_place("|[[a\\|b]]|", "|[[", "a");
}

TEST(test_links_find__stops_at_10000)
{
    struct arena *mem = arena_new(1 << 26);
    struct link_found *links = NULL;
    struct buf b;

    buf_init(&b, 1 << 20);
    for (int i = 0; i < 10001; i++)
        buf_addz(&b, "[[a]]");
    assert_int_equal(links_find(str_n(b.p, b.n - 10), mem, &links), 9999);
    assert_int_equal(links_find(str_n(b.p, b.n - 5), mem, &links), 10000);
    assert_int_equal(links_find(buf_str(&b), mem, &links), 10000);
    buf_release(&b);
    arena_free(mem);
}

/* How many links a text of 1 MiB has that repeats `unit` and ends with the paragraph "[[end]]", and
 * whether the last of them is that one. */
static size_t links_of_repeated(const char *unit, bool *ret_ends)
{
    static const char end[] = "\n\n[[end]]\n";
    const size_t n = 1 << 20, unit_n = strlen(unit);
    struct arena *mem = arena_new(1 << 26);
    struct link_found *links = NULL;
    struct buf text;

    buf_init(&text, n + sizeof(end));
    for (size_t i = 0; i < n; i++)
        buf_addc(&text, unit[i % unit_n]);
    buf_addz(&text, end);
    size_t found = links_find(buf_str(&text), mem, &links);
    *ret_ends = found && str_eq(links[found - 1].target, STR("end")) &&
                links[found - 1].at == n + strlen("\n\n[[");
    for (size_t i = 0; i < found; i++)
        assert_true(links[i].n <= text.n && links[i].at <= text.n - links[i].n);
    buf_release(&text);
    arena_free(mem);
    return found;
}

/* Each of these repeats something that is looked ahead for and never found: code that is quadratic
 * here takes minutes.  The link behind it is still found, but for two that leave a fence open: one
 * line of backticks, and an odd number of fences. */
TEST(test_links_find__hard_texts_end)
{
    static const struct {
        const char *unit;
        size_t links;
        bool ends;
    } cases[] = {
        {"[[", 1, true},
        {"[", 1, true},
        {"[[a|", 1, true},
        {"`", 0, false},
        {"`a``b", 1, true},
        {"](", 1, true},
        {"[](", 1, true},
        {"[](a \"", 1, true},
        {"[](a '", 1, true},
        {"[](<", 1, true},
        {"[](a(", 1, true},
        {"\\", 1, true},
        {"[](a](", 1, true},
        {"``` \n", 0, false},
        {"~~~\n~~~\n", 1, true},
        {"    ", 1, true},
        {"[x](a b)[[c|`", 1, true},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        bool ends;
        size_t links = links_of_repeated(cases[i].unit, &ends);
        if (links != cases[i].links || ends != cases[i].ends)
            fail_msg("%s: %zu links, the last is%s at the end", cases[i].unit, links,
                     ends ? "" : " not");
    }
}

/* Runs of backticks of 300 lengths: each opens a code span if a run of its length follows. */
TEST(test_links_find__code_spans_of_many_lengths_end)
{
    const size_t n = 1 << 20;
    struct arena *mem = arena_new(1 << 26);
    struct link_found *links = NULL;
    struct buf b;

    buf_init(&b, n + 1000);
    for (size_t run = 1; b.n < n; run = run % 300 + 1) {
        for (size_t i = 0; i < run && b.n < n; i++)
            buf_addc(&b, '`');
        buf_addc(&b, 'x');
    }
    buf_addz(&b, "\n\n[[end]]\n");
    assert_int_equal(links_find(buf_str(&b), mem, &links), 1);
    assert_str(links[0].target, "end");
    buf_release(&b);
    arena_free(mem);
}

static const struct {
    const char *names, *source, *target, *path; /* path NULL: none */
} resolves[] = {
    {"a.md b.md", "b.md", "a", "a.md"},
    {"a.md b.md", "b.md", "a.md", "a.md"},
    {"a.md b.md", "b.md", "A.MD", "a.md"},
    {"A.md b.md", "b.md", "a", "A.md"},
    {"x/a.md x/b.md", "x/b.md", "a", "x/a.md"},
    {"x/a.md a.md x/b.md", "x/b.md", "a", "x/a.md"},
    {"a.md x/b.md", "x/b.md", "a", "a.md"},
    {"y/a.md x/b.md", "x/b.md", "a", NULL}, /* never by name alone */
    {"y/a.md x/b.md", "x/b.md", "y/a", "y/a.md"},
    {"x/y/a.md y/a.md x/b.md", "x/b.md", "y/a", "x/y/a.md"},
    {"y/a.md x/b.md", "x/b.md", "../y/a", "y/a.md"},
    {"x/a.md a.md", "x/b.md", "../a", "a.md"},
    {"x/a.md a.md", "x/b.md", "./a", "x/a.md"},
    {"a.md", "x/b.md", "./a", NULL},
    {"x/a.md a.md", "x/b.md", "/a", "a.md"},
    {"x/a.md", "x/b.md", "/a", NULL},
    {"a.md", "b.md", "../a", NULL},
    {"a.md", "x/b.md", "../../a", NULL},
    {"a.md", "x/b.md", "y/../../a", "a.md"},
    {"x/a.md", "b.md", "x//a", "x/a.md"},
    {"x/a.md", "b.md", "x/./a", "x/a.md"},
    {"x/a.md", "b.md", "x/a/", NULL},
    {"x.md", "b.md", "x/.", NULL},
    {"x.md", "b.md", "x/y/..", NULL},
    {"a.png.md", "b.md", "a.png", "a.png.md"},
    {"a.md.md", "b.md", "a.md", NULL},
    {"a.md.md", "b.md", "a.md.md", "a.md.md"},
    {"b.md", "b.md", "b", "b.md"},
    {"\xc3\x84.md", "b.md", "\xc3\xa4", "\xc3\x84.md"},
    {"\xd0\x96.md", "b.md", "\xd0\xb6", "\xd0\x96.md"},
    {"a+b.md", "x/c.md", "A B", "a b.md"},
    {"a.md", "b.md", "", NULL},
    {"a.md", "b.md", "/", NULL},
    {"a.md", "b.md", ".", NULL},
    {"a.md", "x/b.md", "..", NULL},
    {".md", "b.md", ".md", NULL},
};

TEST(test_links_resolve__by_the_table)
{
    for (size_t i = 0; i < countof(resolves); i++) {
        struct arena *mem = arena_new(1 << 20);
        struct doc_names names;
        doc_names_init(&names, resolves[i].names, mem);
        struct str path = links_resolve(str_of(resolves[i].source), str_of(resolves[i].target),
                                        doc_names_exist, &names, mem);
        if (!resolves[i].path ? path.p != NULL : !str_eq(path, str_of(resolves[i].path)))
            fail_msg("%s in %s: %.*s", resolves[i].target, resolves[i].source, STR_ARG(path));
        arena_free(mem);
    }
}

TEST(test_links_candidates__a_path_has_1024_bytes_at_most)
{
    struct arena *mem = arena_new(1 << 20);
    struct str ret[2];
    char text[1030];

    memset(text, 'a', sizeof text);
    assert_int_equal(links_candidates(STR("b.md"), str_n(text, 1021), mem, ret), 1);
    assert_int_equal(ret[0].n, 1024);
    assert_int_equal(links_candidates(STR("b.md"), str_n(text, 1022), mem, ret), 0);
    memcpy(text + 1021, ".md", 3);
    assert_int_equal(links_candidates(STR("b.md"), str_n(text, 1024), mem, ret), 1);
    assert_int_equal(links_candidates(STR("x/b.md"), str_n(text, 1024), mem, ret), 1);
    memcpy(text + 1022, ".md", 3);
    assert_int_equal(links_candidates(STR("b.md"), str_n(text, 1025), mem, ret), 0);
    arena_free(mem);
}

TEST(test_links_fold__case_and_encoding_are_folded_and_nothing_else)
{
    static const char *const pairs[][2] = {
        {"ABC xyz", "abc xyz"},
        {"\xc3\x80\xc3\x96\xc3\x98\xc3\x9e\xc3\x97", "\xc3\xa0\xc3\xb6\xc3\xb8\xc3\xbe\xc3\x97"},
        {"\xc4\x80\xc4\x81", "\xc4\x81\xc4\x81"},
        {"\xc5\xb8", "\xc3\xbf"},
        {"\xce\x91\xce\xa9", "\xce\xb1\xcf\x89"},
        {"\xd0\x81\xd0\xaf", "\xd1\x91\xd1\x8f"},
        {"\xe1\xba\xa0", "\xe1\xba\xa1"},
        {"\xe4\xb8\xad\xff", "\xe4\xb8\xad\xff"},
        {"CAFE\xcc\x81.md", "caf\xc3\xa9.md"},
        {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab.md", "\xed\x95\x9c.md"},
        {"Ma\xc3\x9f"
         "e.md",
         "ma\xc3\x9f"
         "e.md"},
        {"\xce\xbf\xce\xb4\xce\xbf\xcf\x82", "\xce\xbf\xce\xb4\xce\xbf\xcf\x83"},
        {"\xc4\xb1", "\xc4\xb1"},
    };
    struct arena *mem = arena_new(1 << 16);
    for (size_t i = 0; i < countof(pairs); i++) {
        assert_str(links_fold(str_of(pairs[i][0]), mem), pairs[i][1]);
        assert_str(links_fold(str_of(pairs[i][1]), mem), pairs[i][1]);
    }
    arena_free(mem);
}
