/* SPDX-License-Identifier: Apache-2.0 */
#include "docs/index.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "docs/links.h"
#include "test.h"

static struct index *opened(const char *path)
{
    struct index *x = NULL;
    struct error err = {0};
    if (!index_open(str_of(path), &x, &err))
        fail_msg("%s", err.text);
    return x;
}

static void put(struct index *x, const char *folder, const char *path, const char *text)
{
    struct index_document d = {.folder = str_of(folder), .path = str_of(path)};
    struct error err = {0};

    d.size = (int64_t)strlen(text);
    d.modified_ms = 1700000000000;
    d.inode = UINT64_MAX - 5;
    sha256(str_of(text), d.sha256);
    if (!index_put(x, &d, str_of(text), &err))
        fail_msg("%s", err.text);
}

static void drop(struct index *x, const char *folder, const char *path)
{
    struct error err;
    assert_true(index_remove(x, str_of(folder), str_of(path), &err));
}

/* Hits as "folder/path|folder/path", with '+' at the end when there are more. */
static void assert_found(struct index *x, const char *query, const char *only, unsigned limit,
                         const char *expected)
{
    struct arena *mem = arena_new(1 << 20);
    struct index_hit *hits = NULL;
    struct error err = {0};
    struct str folder = str_of(only);
    struct buf b;
    size_t n = 0;
    bool more = false;

    if (!index_search(x, str_of(query), &folder, only != NULL, limit, mem, &hits, &n, &more, &err))
        fail_msg("%s: %s", query, err.text);
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "%s%.*s/%.*s", i ? "|" : "", STR_ARG(hits[i].folder), STR_ARG(hits[i].path));
    buf_addz(&b, more ? "+" : "");
    if (!str_eq(buf_str(&b), str_of(expected)))
        fail_msg("%s: \"%s\", not \"%s\"", query, buf_str(&b).p, expected);
    buf_release(&b);
    arena_free(mem);
}

static void assert_paths(struct index *x, bool back, const char *path, const char *expected)
{
    struct arena *mem = arena_new(1 << 20);
    struct error err = {0};
    struct str *paths = NULL;
    struct buf b;
    size_t n = 0;
    bool more = true;
    bool ok = back ? index_backlinks(x, STR("F"), str_of(path), mem, &paths, &n, &more, &err)
                   : index_forward_links(x, STR("F"), str_of(path), mem, &paths, &n, &more, &err);

    assert_true(ok);
    assert_false(more);
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "%s%.*s", i ? "|" : "", STR_ARG(paths[i]));
    if (!str_eq(buf_str(&b), str_of(expected)))
        fail_msg("%s: \"%s\", not \"%s\"", path, buf_str(&b).p, expected);
    buf_release(&b);
    arena_free(mem);
}

static struct index *library(void)
{
    struct index *x = opened(":memory:");
    put(x, "F", "deploy.md", "# Rolling out\nWe deploy blue green.\nNever on Friday.\n");
    put(x, "F", "notes/plan.md", "# Plan\nThe deploy of the gateway is a draft, draft, draft.\n");
    put(x, "G", "caf\xc3\xa9.md", "Caf\xc3\xa9 opening hours; rollout of the men\xc3\xbc.\n");
    return x;
}

TEST(test_index_search__finds_words_phrases_prefixes_and_leaves_out)
{
    static const struct {
        const char *query, *expected;
    } cases[] = {
        {"friday", "F/deploy.md"},
        {"FRIDAY never", "F/deploy.md"},
        {"friday gateway", ""},
        {"cafe", "G/caf\xc3\xa9.md"},
        {"men\xc3\xbc", "G/caf\xc3\xa9.md"},
        {"\"blue green\"", "F/deploy.md"},
        {"\"green blue\"", ""},
        {"gate*", "F/notes/plan.md"},
        {"gate", ""},
        {"deploy -draft", "F/deploy.md"},
        {"deploy -\"blue green\"", "F/notes/plan.md"},
        {"deploy -draft -friday", ""},
        {"-draft deploy", "F/deploy.md"},
        {"blue-green", "F/deploy.md"},
        {"deploy \xe2\x80\x94 friday", "F/deploy.md"},
        {"deploy & friday!", "F/deploy.md"},
        {"\"blue green", "F/deploy.md"},
        {"deploy\"blue green\"friday", "F/deploy.md"},
        {"notes", "F/notes/plan.md"},
    };
    struct index *x = library();
    for (size_t i = 0; i < countof(cases); i++)
        assert_found(x, cases[i].query, NULL, 0, cases[i].expected);
    index_close(x);
}

TEST(test_index_search__ranks_title_over_path_over_text)
{
    struct index *x = opened(":memory:");
    put(x, "F", "c.md", "# Other\nzebra\n");
    put(x, "F", "zebra.md", "# Other\nhorse\n");
    put(x, "F", "a.md", "# Zebra\nhorse\n");
    assert_found(x, "zebra", NULL, 0, "F/a.md|F/zebra.md|F/c.md");
    index_close(x);
}

TEST(test_index_search__hits_say_what_and_where)
{
    struct index *x = library();
    struct arena *mem = arena_new(1 << 20);
    struct index_hit *hits = NULL;
    struct error err;
    size_t n = 0;
    bool more;

    assert_true(index_search(x, STR("green never"), NULL, 0, 5, mem, &hits, &n, &more, &err));
    assert_int_equal(n, 1);
    assert_str(hits[0].folder, "F");
    assert_str(hits[0].path, "deploy.md");
    assert_str(hits[0].title, "Rolling out");
    assert_str(hits[0].snippet, "# Rolling out We deploy blue **green**. **Never** on Friday.");
    assert_true(hits[0].score > 0);
    arena_free(mem);
    index_close(x);
}

TEST(test_index_search__stays_in_its_folders)
{
    struct index *x = library();
    assert_found(x, "roll*", NULL, 0, "F/deploy.md|G/caf\xc3\xa9.md");
    assert_found(x, "roll*", "G", 0, "G/caf\xc3\xa9.md");
    assert_found(x, "roll*", "F", 0, "F/deploy.md");
    assert_found(x, "roll*", "f", 0, "");
    index_close(x);
}

TEST(test_index_search__says_whether_there_is_more_than_the_limit)
{
    struct index *x = opened(":memory:");
    char path[32];
    static const unsigned limits[] = {1, 19, 20, 0, 99, 100, 101};
    for (int i = 0; i < 101; i++) {
        snprintf(path, sizeof path, "%03d.md", i);
        put(x, i == 100 ? "G" : "F", path, "word");
    }
    for (size_t i = 0; i < countof(limits); i++) {
        struct arena *mem = arena_new(1 << 20);
        struct index_hit *hits;
        struct error err;
        struct str folder = STR("F");
        size_t n = 0, expected = limits[i] == 0 ? 20 : limits[i] > 100 ? 100 : limits[i];
        bool more = false;
        assert_true(index_search(x, STR("word"), NULL, 0, limits[i], mem, &hits, &n, &more, &err));
        assert_int_equal(n, expected);
        assert_true(more);
        assert_true(
            index_search(x, STR("word"), &folder, 1, limits[i], mem, &hits, &n, &more, &err));
        assert_true(more == (expected < 100));
        arena_free(mem);
    }
    index_close(x);
}

static bool search_ok(struct index *x, struct str query, enum err_code *ret_code)
{
    struct arena *mem = arena_new(1 << 20);
    struct index_hit *hits;
    struct error err = {0};
    size_t n;
    bool more;
    bool ok = index_search(x, query, NULL, 0, 0, mem, &hits, &n, &more, &err);

    *ret_code = err.code;
    arena_free(mem);
    return ok;
}

TEST(test_index_search__a_query_without_words_is_refused)
{
    static const char *const queries[] = {
        "", "   ", "-", "-draft", "\"", "\"\"", "*", "!?", "\xe2\x80\x94", "- \"-\" *", "-\"a b\""};
    struct index *x = library();
    enum err_code code;
    for (size_t i = 0; i < countof(queries); i++) {
        if (search_ok(x, str_of(queries[i]), &code))
            fail_msg("%s", queries[i]);
        assert_int_equal(code, ERR_BAD_INPUT);
    }
    index_close(x);
}

TEST(test_index_search__no_input_is_a_syntax_error)
{
    static const char *const pieces[] = {
        "AND", "OR", "NOT", "NEAR(", ")",    "(",    "title:", "\"",  "*",
        "-",   "^",  "+",   "{",     "}",    ",",    "a",      "b*",  "\"c d",
        "'",   "\\", ":",   "\xff",  "\xc3", "\x01", " ",      ";--", "\"\""};
    struct index *x = library();
    enum err_code code;
    srand(7);
    for (int i = 0; i < 3000; i++) {
        char query[256] = "";
        for (int k = 0; k < 1 + i % 12; k++) {
            strcat(query, pieces[(size_t)rand() % countof(pieces)]);
            strcat(query, rand() % 2 ? " " : "");
        }
        if (!search_ok(x, str_of(query), &code) && code != ERR_BAD_INPUT)
            fail_msg("%s", query);
    }
    assert_true(search_ok(x, STR("a\0b \"c\0d\""), &code));
    index_close(x);
}

TEST(test_index_search__a_query_has_64_words_and_1024_bytes_at_most)
{
    struct index *x = library();
    char text[1025];
    enum err_code code;

    memset(text, ' ', sizeof text);
    for (size_t i = 0; i < 65; i++)
        text[2 * i] = 'a';
    assert_true(search_ok(x, str_n(text, 2 * 64), &code));
    assert_false(search_ok(x, str_n(text, 2 * 65), &code));
    assert_int_equal(code, ERR_BAD_INPUT);
    memset(text, 'a', sizeof text);
    assert_true(search_ok(x, str_n(text, 1024), &code));
    assert_false(search_ok(x, str_n(text, 1025), &code));
    memset(text, '-', sizeof text);
    for (size_t i = 0; i < 1024; i += 2)
        text[i] = 'a';
    assert_true(search_ok(x, str_n(text, 1024), &code));
    index_close(x);
}

static void assert_title(const char *path, const char *text, const char *expected)
{
    struct index *x = opened(":memory:");
    struct arena *mem = arena_new(1 << 20);
    struct index_hit *hits;
    struct error err;
    size_t n = 0;
    bool more;
    put(x, "F", path, text);
    assert_true(index_search(x, STR("needle"), NULL, 0, 1, mem, &hits, &n, &more, &err));
    assert_int_equal(n, 1);
    if (!str_eq(hits[0].title, str_of(expected)))
        fail_msg("\"%.*s\", not \"%s\"", STR_ARG(hits[0].title), expected);
    arena_free(mem);
    index_close(x);
}

TEST(test_index__a_title_is_the_first_heading_else_the_files_name)
{
    char text[300], longest[201];

    assert_title("x/Some file.md", "needle", "Some file");
    assert_title("a.MD", "#needle\n", "a");
    assert_title("a.md", "needle\n\n## Sub ##\n# Top\n", "Sub");
    assert_title("a.md", "```\n# no\n```\n# C#\nneedle", "C#");
    assert_title("a.md", "~~~\n```\n# no\n~~~\n   # yes\r\nneedle", "yes");
    assert_title("a.md", "#\n####### no\n# \nneedle", "a");
    memset(text, 'x', sizeof text);
    memcpy(text, "needle\n# ", 9);
    text[9 + 201] = '\0';
    memset(longest, 'x', 200);
    longest[200] = '\0';
    assert_title("a.md", text, longest);
    memcpy(text + 9 + 199, "\xc3\xa9", 3);
    longest[199] = '\0';
    assert_title("a.md", text, longest);
}

TEST(test_index_put__replaces_what_was_there)
{
    struct index *x = library();
    put(x, "F", "deploy.md", "# Fresh\nnothing of that, but [[notes/plan]]\n");
    assert_found(x, "friday", NULL, 0, "");
    assert_found(x, "fresh", NULL, 0, "F/deploy.md");
    assert_paths(x, false, "deploy.md", "notes/plan.md");
    put(x, "F", "deploy.md", "gone");
    assert_paths(x, false, "deploy.md", "");
    index_close(x);
}

TEST(test_index_remove__takes_words_and_links_away)
{
    struct index *x = library();
    put(x, "F", "l.md", "[[deploy]]");
    assert_paths(x, true, "deploy.md", "l.md");
    drop(x, "F", "l.md");
    assert_paths(x, true, "deploy.md", "");
    drop(x, "F", "never.md");
    drop(x, "F", "deploy.md");
    assert_found(x, "friday", NULL, 0, "");
    struct error err;
    assert_true(index_remove_folder(x, STR("G"), &err));
    assert_found(x, "cafe", NULL, 0, "");
    assert_found(x, "gateway", NULL, 0, "F/notes/plan.md");
    index_close(x);
}

TEST(test_index_known__gives_back_what_was_put_sorted)
{
    struct index *x = library();
    struct arena *mem = arena_new(1 << 20);
    struct index_document *known = NULL;
    uint8_t digest[SHA256_BYTES];
    struct error err;
    size_t n = 0;

    put(x, "F", "a.md", "1234");
    assert_true(index_known(x, STR("F"), mem, &known, &n, &err));
    assert_int_equal(n, 3);
    assert_str(known[0].path, "a.md");
    assert_str(known[0].folder, "F");
    assert_str(known[1].path, "deploy.md");
    assert_str(known[2].path, "notes/plan.md");
    assert_int_equal(known[0].size, 4);
    assert_int_equal(known[0].modified_ms, 1700000000000);
    assert_true(known[0].inode == UINT64_MAX - 5);
    sha256(STR("1234"), digest);
    assert_memory_equal(known[0].sha256, digest, sizeof digest);
    assert_true(index_known(x, STR("none"), mem, &known, &n, &err));
    assert_int_equal(n, 0);
    arena_free(mem);
    index_close(x);
}

static void assert_true_path(struct index *x, const char *path, const char *expected)
{
    struct arena *mem = arena_new(1 << 16);
    struct str found = STR("?");
    struct error err;
    assert_true(index_find_path(x, STR("F"), str_of(path), mem, &found, &err));
    if (expected)
        assert_str(found, expected);
    else
        assert_null(found.p);
    arena_free(mem);
}

TEST(test_index_find_path__ignores_case_but_prefers_the_same)
{
    struct index *x = opened(":memory:");
    put(x, "F", "\xc3\x84/Read me.md", "x");
    put(x, "F", "a.md", "x");
    put(x, "F", "A.md", "x");
    put(x, "G", "g.md", "x");
    assert_true_path(x, "\xc3\xa4/README.md", NULL);
    assert_true_path(x, "\xc3\xa4/READ ME.MD", "\xc3\x84/Read me.md");
    assert_true_path(x, "a.md", "a.md");
    assert_true_path(x, "A.md", "A.md");
    assert_true_path(x, "A.MD", "A.md");
    assert_true_path(x, "g.md", NULL);
    index_close(x);
}

/* Programs on macOS name files with decomposed letters, people type composed ones. */
TEST(test_index__letters_are_the_same_in_either_encoding)
{
    struct index *x = opened(":memory:");
    put(x, "F", "Cafe\xcc\x81.md", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab word");
    put(x, "F", "b.md", "see [[caf\xc3\xa9]], \xe3\x81\x8b\xe3\x82\x99");
    put(x, "F",
        "Ma\xc3\x9f"
        "e.md",
        "\xed\x95\x9c");
    put(x, "F", "c.md", "[[masse]]");
    assert_true_path(x, "CAF\xc3\x89.md", "Cafe\xcc\x81.md");
    assert_true_path(x, "Masse.md", NULL);
    assert_true_path(x,
                     "MA\xe1\xba\x9e"
                     "E.md",
                     "Ma\xc3\x9f"
                     "e.md");
    assert_paths(x, true, "Cafe\xcc\x81.md", "b.md");
    assert_paths(x, true,
                 "Ma\xc3\x9f"
                 "e.md",
                 "");
    assert_found(x, "\xed\x95\x9c word", NULL, 0, "F/Cafe\xcc\x81.md");
    assert_found(x, "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab -word", NULL, 0,
                 "F/Ma\xc3\x9f"
                 "e.md");
    assert_found(x, "\xe3\x81\x8c", NULL, 0, "F/b.md");
    index_close(x);
}

TEST(test_index_links__are_both_ways_sorted_and_once_each)
{
    struct index *x = opened(":memory:");
    put(x, "F", "b.md", "[[a]] [[A|again]] [t](a.md) [[c]] [[nowhere]]");
    put(x, "F", "a.md", "[[b]] ![[c#h]]");
    put(x, "F", "c.md", "`[[a]]` [[c]]");
    put(x, "G", "d.md", "[[a]]");
    assert_paths(x, true, "a.md", "b.md");
    assert_paths(x, true, "c.md", "a.md|b.md|c.md");
    assert_paths(x, false, "b.md", "a.md|c.md");
    assert_paths(x, false, "a.md", "b.md|c.md");
    assert_paths(x, false, "none.md", "");
    index_close(x);
}

TEST(test_index_links__count_as_soon_as_their_document_is_there)
{
    struct index *x = opened(":memory:");
    put(x, "F", "x/s.md", "[[a]]");
    assert_paths(x, false, "x/s.md", "");
    put(x, "F", "a.md", "at the root");
    assert_paths(x, false, "x/s.md", "a.md");
    assert_paths(x, true, "a.md", "x/s.md");
    put(x, "F", "x/A.md", "beside it");
    assert_paths(x, false, "x/s.md", "x/A.md");
    assert_paths(x, true, "a.md", "");
    assert_paths(x, true, "x/A.md", "x/s.md");
    drop(x, "F", "x/A.md");
    assert_paths(x, true, "a.md", "x/s.md");
    assert_paths(x, true, "x/a.md", "x/s.md"); /* who would, were it there */
    index_close(x);
}

struct world {
    struct index *x;
    struct arena *mem;
};

static bool indexed(void *arg, struct str path, struct str *ret_path)
{
    struct world *w = arg;
    struct error err;
    assert_true(index_find_path(w->x, STR("F"), path, w->mem, ret_path, &err));
    return ret_path->p != NULL;
}

/* Every link of a random library, followed by the rule, is what the index says in both ways. */
TEST(test_index_links__agree_with_the_rule_of_resolution)
{
    static const char *const paths[] = {"a.md", "b.md", "x/a.md", "x/B.md", "x/y/a.md", "y/c.md"};
    static const char *const targets[] = {"a",   "b.md",    "x/a", "../a", "./B",
                                          "y/a", "/y/c.md", "C",   "..",   "x/b"};
    srand(11);
    for (int round = 0; round < 60; round++) {
        struct world w = {opened(":memory:"), arena_new(1 << 24)};
        struct buf texts[countof(paths)];
        bool there[countof(paths)];
        for (size_t i = 0; i < countof(paths); i++) {
            buf_init(&texts[i], 4096);
            for (int k = rand() % 5; k > 0; k--)
                buf_addf(&texts[i], "[[%s]] ", targets[(size_t)rand() % countof(targets)]);
            there[i] = rand() % 4 > 0;
            if (there[i])
                put(w.x, "F", paths[i], buf_str(&texts[i]).p);
        }
        for (size_t to = 0; to < countof(paths); to++) {
            struct buf expected;
            buf_init(&expected, 4096);
            for (size_t from = 0; from < countof(paths); from++) {
                struct link_found *links;
                size_t n = there[from] ? links_find(buf_str(&texts[from]), w.mem, &links) : 0;
                bool does = false;
                for (size_t i = 0; i < n; i++) {
                    struct str path =
                        links_resolve(str_of(paths[from]), links[i].target, indexed, &w, w.mem);
                    does |= str_eq(path, str_of(paths[to]));
                }
                if (does)
                    buf_addf(&expected, "%s%s", expected.n ? "|" : "", paths[from]);
            }
            /* paths[] is not in byte order: 'B' before 'a'. */
            if (there[to] && !strstr(buf_str(&expected).p, "x/a.md|x/B.md"))
                assert_paths(w.x, true, paths[to], buf_str(&expected).p);
            buf_release(&expected);
        }
        for (size_t i = 0; i < countof(paths); i++)
            buf_release(&texts[i]);
        index_close(w.x);
        arena_free(w.mem);
    }
}

TEST(test_index_links__at_most_1000_are_given)
{
    struct index *x = opened(":memory:");
    struct arena *mem = arena_new(1 << 24);
    struct error err;
    struct str *paths;
    struct buf b;
    char path[32];
    size_t n = 0;
    bool more = true;

    buf_init(&b, 1 << 20);
    assert_true(index_begin(x, &err));
    for (int i = 0; i < 1001; i++) {
        snprintf(path, sizeof path, "%04d.md", i);
        put(x, "F", path, i < 1000 ? "[[hub]]" : "");
        buf_addf(&b, "[[%04d]]", i);
    }
    put(x, "F", "hub.md", "");
    put(x, "F", "all.md", buf_str(&b).p);
    assert_true(index_commit(x, &err));
    assert_true(index_backlinks(x, STR("F"), STR("hub.md"), mem, &paths, &n, &more, &err));
    assert_int_equal(n, 1000);
    assert_false(more);
    assert_str(paths[999], "0999.md");
    put(x, "F", "1000.md", "[[hub]]");
    assert_true(index_backlinks(x, STR("F"), STR("hub.md"), mem, &paths, &n, &more, &err));
    assert_int_equal(n, 1000);
    assert_true(more);
    assert_true(index_forward_links(x, STR("F"), STR("all.md"), mem, &paths, &n, &more, &err));
    assert_int_equal(n, 1000);
    assert_true(more);
    buf_release(&b);
    arena_free(mem);
    index_close(x);
}

static char folder[64], file[128];

static void in_a_new_folder(void)
{
    strcpy(folder, "/tmp/holdfast-index-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/docs-index.db", folder);
}

static void folder_gone(void)
{
    static const char *const tails[] = {"", "-wal", "-shm"};
    char name[160];
    for (size_t i = 0; i < countof(tails); i++) {
        snprintf(name, sizeof name, "%s%s", file, tails[i]);
        (void)unlink(name);
    }
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
}

TEST(test_index_open__keeps_what_was_put)
{
    in_a_new_folder();
    struct index *x = opened(file);
    put(x, "F", "a.md", "needle [[b]]");
    index_close(x);
    x = opened(file);
    assert_found(x, "needle", NULL, 0, "F/a.md");
    assert_paths(x, true, "b.md", "a.md");
    index_close(x);
    folder_gone();
}

TEST(test_index_commit__shows_everything_at_once)
{
    struct error err;
    in_a_new_folder();
    struct index *x = opened(file);
    assert_true(index_begin(x, &err));
    put(x, "F", "a.md", "needle");
    assert_true(index_begin(x, &err)); /* a second one joins */
    put(x, "F", "b.md", "needle");
    assert_true(index_commit(x, &err));
    assert_found(x, "needle", NULL, 0, "");
    assert_true(index_commit(x, &err));
    assert_found(x, "needle", NULL, 0, "F/a.md|F/b.md");
    assert_false(index_commit(x, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    index_close(x);
    folder_gone();
}

TEST(test_index_close__without_commit_leaves_nothing)
{
    struct error err;
    in_a_new_folder();
    struct index *x = opened(file);
    assert_true(index_begin(x, &err));
    put(x, "F", "a.md", "needle");
    index_close(x);
    x = opened(file);
    assert_found(x, "needle", NULL, 0, "");
    index_close(x);
    folder_gone();
}

static void file_filled_with(const void *bytes, size_t n, off_t at)
{
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
}

static void sql_on_file(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void assert_made_anew(void)
{
    struct index *x = opened(file);
    assert_found(x, "needle", NULL, 0, "");
    put(x, "F", "b.md", "needle");
    assert_found(x, "needle", NULL, 0, "F/b.md");
    index_close(x);
    x = opened(file);
    assert_found(x, "needle", NULL, 0, "F/b.md");
    index_close(x);
    folder_gone();
}

static void quietly(void)
{
    log_setup(LOG_ERROR, 0);
}

static void a_filled_file(void)
{
    in_a_new_folder();
    struct index *x = opened(file);
    put(x, "F", "a.md", "needle");
    index_close(x);
    quietly();
}

TEST(test_index_open__what_is_no_database_is_made_anew)
{
    in_a_new_folder();
    quietly();
    file_filled_with("this is not a database at all, but longer than a header is: "
                     "this is not a database at all, but longer than a header is",
                     118, 0);
    assert_made_anew();
}

TEST(test_index_open__another_format_is_made_anew)
{
    a_filled_file();
    sql_on_file("PRAGMA user_version = 999");
    assert_made_anew();
}

TEST(test_index_open__somebody_elses_database_is_made_anew)
{
    in_a_new_folder();
    quietly();
    sql_on_file("CREATE TABLE t (x); PRAGMA user_version = 2");
    assert_made_anew();
}

TEST(test_index_open__a_missing_table_is_made_anew)
{
    a_filled_file();
    sql_on_file("DROP TABLE links");
    assert_made_anew();
}

/* Pages behind the first are read only in use: that call says so, the next finds it empty. */
TEST(test_index__damage_found_in_use_empties_it)
{
    static char garbage[4096];
    struct arena *mem = arena_new(1 << 20);
    struct index_document *known;
    struct error err = {0};
    size_t n = 99;

    a_filled_file();
    struct index *x = opened(file);
    memset(garbage, 0x5a, sizeof garbage);
    for (off_t page = 1; page < 20; page++)
        file_filled_with(garbage, sizeof garbage, page * 4096);
    assert_false(index_known(x, STR("F"), mem, &known, &n, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_true(index_known(x, STR("F"), mem, &known, &n, &err));
    assert_int_equal(n, 0);
    arena_free(mem);
    index_close(x);
    assert_made_anew();
}

/* The transaction it was found in is lost, and the commit says so. */
TEST(test_index__damage_inside_a_transaction_is_told_at_its_end)
{
    static char garbage[4096];
    struct error err = {0};
    struct arena *mem = arena_new(1 << 20);
    struct index_document *known;
    size_t n = 99;

    a_filled_file();
    struct index *x = opened(file);
    assert_true(index_begin(x, &err));
    memset(garbage, 0x5a, sizeof garbage);
    for (off_t page = 1; page < 20; page++)
        file_filled_with(garbage, sizeof garbage, page * 4096);
    assert_false(index_known(x, STR("F"), mem, &known, &n, &err));
    assert_false(index_commit(x, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    arena_free(mem);
    index_close(x);
    assert_made_anew();
}

static void *put_many(void *arg)
{
    char path[32];
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "%d.md", i);
        put(arg, "F", path, "needle [[0]]");
    }
    return NULL;
}

TEST(test_index__threads_read_and_write_at_once)
{
    struct error err;
    pthread_t threads[2];

    in_a_new_folder();
    struct index *x = opened(file);
    for (size_t i = 0; i < countof(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, x), 0);
    for (int i = 0; i < 40; i++) {
        struct arena *mem = arena_new(1 << 20);
        struct index_hit *hits;
        struct str *paths;
        size_t n;
        bool more;
        assert_true(index_search(x, STR("needle"), NULL, 0, 100, mem, &hits, &n, &more, &err));
        assert_true(n <= 40);
        assert_true(index_backlinks(x, STR("F"), STR("0.md"), mem, &paths, &n, &more, &err));
        assert_true(n <= 40);
        arena_free(mem);
    }
    for (size_t i = 0; i < countof(threads); i++)
        pthread_join(threads[i], NULL);
    struct arena *mem = arena_new(1 << 20);
    struct index_document *known;
    size_t n = 0;
    assert_true(index_known(x, STR("F"), mem, &known, &n, &err));
    assert_int_equal(n, 40);
    arena_free(mem);
    index_close(x);
    folder_gone();
}

TEST(test_index_open__a_folder_that_is_not_there_is_an_error)
{
    struct index *x = NULL;
    struct error err = {0};
    assert_false(index_open(STR("/nonexistent/docs-index.db"), &x, &err));
    assert_null(x);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
}
