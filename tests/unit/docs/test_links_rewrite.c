/* SPDX-License-Identifier: Apache-2.0 */
#include "docs/links.h"

#include <stdlib.h>

#include "base/buf.h"
#include "doc_names.h"
#include "test.h"

/* The document at `source` moves too when it is `from`. */
static const struct {
    const char *names, *source, *from, *to, *text, *expected;
} cases[] = {
    /* a target that moves, from a source at the root */
    {"s.md a.md", "s.md", "a.md", "b.md", "[[a]]", "[[b]]"},
    {"s.md a.md", "s.md", "a.md", "x/a.md", "[[a]]", "[[x/a]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[[a.md]]", "[[b.md]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[[A]]", "[[b]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[[a|alias]]", "[[b|alias]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[[a#h|alias]]", "[[b#h|alias]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "![[a#h]]", "![[b#h]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "|[[a\\|x]]|", "|[[b\\|x]]|"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[[ a ]]", "[[ b ]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[[/a]]", "[[/b]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[[./a]]", "[[./b]]"},
    {"s.md a.md", "s.md", "a.md", "x/b.md", "[[./a]]", "[[./x/b]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[t](a.md)", "[t](b.md)"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[t](a)", "[t](b)"},
    {"s.md a.md", "s.md", "a.md", "b.md", "[t](a.md#h \"title\")", "[t](b.md#h \"title\")"},
    {"s.md a.md", "s.md", "a.md", "b c.md", "[t](a.md)", "[t](b%20c.md)"},
    {"s.md a.md", "s.md", "a.md", "b c.md", "[t](<a.md> 'x')", "[t](<b c.md> 'x')"},
    {"s.md a+b.md", "s.md", "a b.md", "c d.md", "[t](a%20b.md) [u](<a b.md>) [[a b]]",
     "[t](c%20d.md) [u](<c d.md>) [[c d]]"},
    {"s.md a.md", "s.md", "a.md", "b(1)#%.md", "[t](a.md)", "[t](b%281%29%23%25.md)"},
    {"s.md a.md", "s.md", "a.md", "b(1)#%.md", "[t](<a.md>)", "[t](<b(1)%23%25.md>)"},
    {"s.md a.md", "s.md", "a.md", "Plan: b.md", "[t](a.md) [[a]]",
     "[t](Plan%3A%20b.md) [[Plan: b]]"},
    {"s.md a.md", "s.md", "a.md", "\xc3\x84.md", "[t](a.md) [[a]]",
     "[t](\xc3\x84.md) [[\xc3\x84]]"},
    {"s.md a.md", "s.md", "a.md", "b.md", "`[[a]]` [[a]]\n```\n[[a]]\n```\n",
     "`[[a]]` [[b]]\n```\n[[a]]\n```\n"},
    {"s.md a.md c.md", "s.md", "a.md", "b.md", "[[c]] [[d]] [[a]] http://a.md",
     "[[c]] [[d]] [[b]] http://a.md"},
    {"s.md a.md", "s.md", "a.md", "A.md", "[[a]]", "[[a]]"},
    {"s.md a.md", "s.md", "a.md", "b.md.md", "[[a]]", "[[b.md.md]]"},
    {"s.md a.MD", "s.md", "a.MD", "b.MD", "[[a]] [[a.md]]", "[[b]] [[b.MD]]"},
    /* cannot be written in a wiki link */
    {"s.md a.md", "s.md", "a.md", "b#c.md", "[[a]] [t](a)", "[[a]] [t](b%23c)"},
    {"s.md a.md", "s.md", "a.md", "b|c.md", "[[a]]", "[[a]]"},
    {"s.md a.md", "s.md", "a.md", "b]c.md", "[[a]]", "[[a]]"},
    /* from a source in a folder: relative stays relative, the root stays the root */
    {"x/s.md x/a.md", "x/s.md", "x/a.md", "x/b.md", "[[a]]", "[[b]]"},
    {"x/s.md x/a.md", "x/s.md", "x/a.md", "y/a.md", "[[a]]", "[[../y/a]]"},
    {"x/s.md x/a.md", "x/s.md", "x/a.md", "x/y/a.md", "[[a]] [[./a]]", "[[y/a]] [[./y/a]]"},
    {"x/s.md x/a.md", "x/s.md", "x/a.md", "y/a.md", "[[x/a]]", "[[y/a]]"},
    {"x/s.md x/a.md", "x/s.md", "x/a.md", "y/a.md", "[[/x/a]]", "[[/y/a]]"},
    {"x/s.md y/a.md", "x/s.md", "y/a.md", "y/b.md", "[[../y/a]]", "[[../y/b]]"},
    {"x/s.md y/a.md", "x/s.md", "y/a.md", "a.md", "[[../y/a.md]]", "[[../a.md]]"},
    {"x/s.md y/a.md", "x/s.md", "y/a.md", "x/a.md", "[[../y/a]]", "[[a]]"},
    {"x/s.md a.md", "x/s.md", "a.md", "b.md", "[[a]]", "[[b]]"},
    {"x/s.md a.md x/b.md", "x/s.md", "a.md", "b.md", "[[a]]", "[[/b]]"},
    {"x/s.md a.md", "x/s.md", "a.md", "x/a.md", "[[a]]", "[[a]]"},
    {"x/y/s.md a.md", "x/y/s.md", "a.md", "x/a.md", "[[../../a]]", "[[../a]]"},
    /* the same name in another folder */
    {"x/s.md x/a.md a.md", "x/s.md", "x/a.md", "y/a.md", "[[a]] [[/a]]", "[[../y/a]] [[/a]]"},
    {"x/s.md x/a.md a.md", "x/s.md", "a.md", "y/a.md", "[[a]] [[/a]] [[../a]]",
     "[[a]] [[/y/a]] [[../y/a]]"},
    {"x/s.md y/a.md a.md", "x/s.md", "y/a.md", "x/a.md", "[[a]] [[y/a]]", "[[/a]] [[x/a]]"},
    /* a source that moves: its own links */
    {"s.md a.md", "s.md", "s.md", "x/s.md", "[[a]] [[./a]] [[/a]] [t](a.md)",
     "[[a]] [[../a]] [[/a]] [t](a.md)"},
    {"x/s.md x/a.md", "x/s.md", "x/s.md", "y/s.md", "[[a]] [[x/a]] [[./a.md]] [t](a.md \"t\")",
     "[[../x/a]] [[x/a]] [[../x/a.md]] [t](../x/a.md \"t\")"},
    {"x/s.md x/a.md", "x/s.md", "x/s.md", "s.md", "[[a]] [[../x/a]]", "[[x/a]] [[x/a]]"},
    {"x/s.md x/a.md y/a.md", "x/s.md", "x/s.md", "y/s.md", "[[a]] [[/y/a]]", "[[../x/a]] [[/y/a]]"},
    {"x/s.md a.md y/a.md", "x/s.md", "x/s.md", "y/s.md", "[[a]]", "[[/a]]"},
    {"x/s.md", "x/s.md", "x/s.md", "y/t.md", "[[s]] [[#h]] [[x/s#h]]", "[[t]] [[#h]] [[y/t#h]]"},
    {"x/s.md", "x/s.md", "x/s.md", "y/s.md", "[[gone]] [[../gone]]", "[[gone]] [[../gone]]"},
    {"x/s.md", "x/s.md", "x/s.md", "x/t.md", "no links\r\n", "no links\r\n"},
};

static struct str moved(const char *source, const char *from, const char *to)
{
    return strcmp(source, from) == 0 ? str_of(to) : str_of(source);
}

TEST(test_links_rewrite__by_the_table)
{
    for (size_t i = 0; i < countof(cases); i++) {
        struct arena *mem = arena_new(1 << 20);
        struct doc_names names;
        size_t n = 99;
        struct str text = str_of(cases[i].text);
        doc_names_init(&names, cases[i].names, mem);
        struct str out = links_rewrite(
            text, str_of(cases[i].source), moved(cases[i].source, cases[i].from, cases[i].to),
            str_of(cases[i].from), str_of(cases[i].to), doc_names_exist, &names, mem, &n);
        if (!str_eq(out, str_of(cases[i].expected)))
            fail_msg("%s: %s -> %s: %s\nis  %.*s\nnot %s", cases[i].source, cases[i].from,
                     cases[i].to, cases[i].text, STR_ARG(out), cases[i].expected);
        assert_true((n == 0) == (out.p == text.p));
        arena_free(mem);
    }
}

TEST(test_links_rewrite__counts_what_it_rewrote)
{
    struct arena *mem = arena_new(1 << 20);
    struct doc_names names;
    size_t n = 0;

    doc_names_init(&names, "s.md a.md c.md", mem);
    links_rewrite(STR("[[a]] [[c]] [t](a.md) ![[a]]"), STR("s.md"), STR_NONE, STR("a.md"),
                  STR("b.md"), doc_names_exist, &names, mem, &n);
    assert_int_equal(n, 3);
    arena_free(mem);
}

/* Random vaults, texts and moves: after it, each link means what it meant, or where that went. */
static const char *const folders[] = {"", "x/", "y/", "x/y/", "X/z/"};
static const char *const stems[] = {"a", "b", "A b", "c(1)", "d.md", "e%20f", "g: h"};
static const char *const prefixes[] = {"", "./", "../", "/", "../../"};

static struct str random_path(struct arena *mem)
{
    return arena_printf(mem, "%s%s.md", folders[(size_t)rand() % countof(folders)],
                        stems[(size_t)rand() % countof(stems)]);
}

static void add_random_link(struct buf *b, struct arena *mem)
{
    struct str target = random_path(mem);

    target.n -= rand() % 2 ? 3 : 0;
    buf_addf(b, rand() % 2 ? "text %d " : "\n`code %d` ", rand() % 100);
    if (rand() % 2) {
        buf_addf(b, "[[%s%.*s%s%s]]", prefixes[(size_t)rand() % countof(prefixes)], STR_ARG(target),
                 rand() % 2 ? "#h" : "", rand() % 2 ? "|alias" : "");
        return;
    }
    bool angled = rand() % 2;
    buf_addf(b, "[t](%s%s", angled ? "<" : "", prefixes[(size_t)rand() % countof(prefixes)]);
    for (size_t i = 0; i < target.n; i++)
        buf_addf(b, strchr(" %:", target.p[i]) && !angled ? "%%%02X" : "%c", target.p[i]);
    buf_addf(b, "%s%s%s)", rand() % 2 ? "#h" : "", angled ? ">" : "",
             rand() % 2 ? " \"title\"" : "");
}

static bool add_name(struct doc_names *names, struct str path)
{
    struct str known;
    if (doc_names_exist(names, path, &known))
        return false;
    names->paths[names->n++] = path;
    return true;
}

static void check_random_move(struct arena *mem)
{
    struct doc_names before = {.mem = mem}, after;
    struct link_found *old = NULL, *now = NULL;
    struct buf b;
    size_t n = 0;

    while (before.n < 10)
        (void)add_name(&before, random_path(mem));
    after = before;
    size_t which = (size_t)rand() % before.n,
           source = rand() % 3 ? (size_t)rand() % before.n : which;
    struct str from = before.paths[which], to = random_path(mem);
    if (!add_name(&after, to))
        return;
    after.paths[which] = after.paths[--after.n];
    buf_init(&b, 1 << 16);
    for (int i = 0; i < 12; i++)
        add_random_link(&b, mem);
    struct str source_to = source == which ? to : before.paths[source];
    struct str out = links_rewrite(buf_str(&b), before.paths[source], source_to, from, to,
                                   doc_names_exist, &before, mem, &n);
    size_t count = links_find(buf_str(&b), mem, &old);
    assert_int_equal(links_find(out, mem, &now), count);
    for (size_t i = 0; i < count; i++) {
        struct str meant =
            links_resolve(before.paths[source], old[i].target, doc_names_exist, &before, mem);
        struct str means = links_resolve(source_to, now[i].target, doc_names_exist, &after, mem);
        assert_true(old[i].is_wiki == now[i].is_wiki);
        if (meant.p && !str_eq(str_eq(meant, from) ? to : meant, means))
            fail_msg("%.*s -> %.*s in %.*s: %.*s became %.*s", STR_ARG(from), STR_ARG(to),
                     STR_ARG(source_to), STR_ARG(old[i].target), STR_ARG(now[i].target));
    }
    buf_release(&b);
}

TEST(test_links_rewrite__every_link_means_what_it_meant)
{
    srand(20);
    for (int i = 0; i < 3000; i++) {
        struct arena *mem = arena_new(1 << 24);
        check_random_move(mem);
        arena_free(mem);
    }
}
