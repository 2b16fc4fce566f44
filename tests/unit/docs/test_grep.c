/* SPDX-License-Identifier: Apache-2.0 */
#include "docs/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "test.h"

struct doc {
    const char *path, *text;
};

static const struct doc two[] = {
    {"a.md", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"},
    {"b/c.md", "seven\r\neight\r\nnine\r\nten\r\none\r\n"},
};

static struct grep *compiled(const char *pattern, struct grep_options o)
{
    struct grep *g = NULL;
    struct error err = {0};
    if (!grep_compile(str_of(pattern), &o, &g, &err))
        fail_msg("%s: %s", pattern, err.text);
    return g;
}

static void assert_grep(const struct doc *docs, size_t n, const char *pattern,
                        struct grep_options o, const char *expected)
{
    struct grep *g = compiled(pattern, o);
    struct error err;
    struct buf out;

    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < n; i++)
        assert_true(grep_document(g, str_of(docs[i].path), str_of(docs[i].text), &out, &err));
    assert_string_equal(buf_str(&out).p, expected);
    assert_int_equal(out.n, strlen(expected));
    buf_release(&out);
    grep_free(g);
}
#define GREP(pattern, expected, ...)                                                               \
    assert_grep(two, countof(two), pattern, (struct grep_options){__VA_ARGS__}, expected)

TEST(test_grep__files_are_named_once)
{
    GREP("one", "a.md\nb/c.md", .mode = GREP_FILES);
    GREP("o", "a.md\nb/c.md", .mode = GREP_FILES);
    GREP("eight", "b/c.md", .mode = GREP_FILES);
    GREP("nothing", "", .mode = GREP_FILES);
}

TEST(test_grep__counts_are_of_lines_and_never_zero)
{
    GREP("e", "a.md:4\nb/c.md:5", .mode = GREP_COUNT);
    GREP("eight", "b/c.md:1", .mode = GREP_COUNT);
}

TEST(test_grep__content_is_path_number_text)
{
    GREP("one", "a.md:1:one\nb/c.md:5:one", .mode = GREP_CONTENT);
    GREP("^t", "a.md:2:two\na.md:3:three\nb/c.md:4:ten", .mode = GREP_CONTENT);
    GREP("ten$", "b/c.md:4:ten", .mode = GREP_CONTENT);
}

TEST(test_grep__context_stands_around_and_groups_are_parted)
{
    GREP("four", "a.md-3-three\na.md:4:four\na.md-5-five", .mode = GREP_CONTENT, .before = 1,
         .after = 1);
    GREP("one|seven",
         "a.md:1:one\na.md-2-two\n--\na.md-6-six\na.md:7:seven\n--\n"
         "b/c.md:1:seven\nb/c.md-2-eight\n--\nb/c.md-4-ten\nb/c.md:5:one",
         .mode = GREP_CONTENT, .before = 1, .after = 1);
    GREP("two|four", "a.md-1-one\na.md:2:two\na.md-3-three\na.md:4:four", .mode = GREP_CONTENT,
         .before = 1);
    GREP("one|two|four",
         "a.md:1:one\na.md:2:two\na.md-3-three\na.md:4:four\na.md-5-five\n--\n"
         "b/c.md:5:one",
         .mode = GREP_CONTENT, .after = 1);
}

TEST(test_grep__touching_groups_are_one)
{
    GREP("two|five", "a.md-1-one\na.md:2:two\na.md-3-three\na.md-4-four\na.md:5:five\na.md-6-six",
         .mode = GREP_CONTENT, .before = 1, .after = 1);
}

TEST(test_grep__without_context_nothing_parts_groups)
{
    GREP("one|four", "a.md:1:one\na.md:4:four\nb/c.md:5:one", .mode = GREP_CONTENT);
}

TEST(test_grep__context_is_at_most_50_lines)
{
    for (unsigned asked = 49; asked <= 51; asked++) {
        struct grep *g = compiled(
            "hit", (struct grep_options){.mode = GREP_CONTENT, .before = asked, .after = asked});
        unsigned given = asked > 50 ? 50 : asked;
        struct error err;
        struct buf text, out;
        buf_init(&text, 1 << 16);
        buf_init(&out, 1 << 16);
        for (int i = 1; i <= 201; i++)
            buf_addz(&text, i == 100 ? "hit\n" : "x\n");
        assert_true(grep_document(g, STR("p"), buf_str(&text), &out, &err));
        unsigned lines = 1;
        for (size_t i = 0; i < out.n; i++)
            lines += out.p[i] == '\n';
        assert_int_equal(lines, 2 * given + 1);
        char first[16];
        snprintf(first, sizeof first, "p-%u-x\n", 100 - given);
        assert_memory_equal(out.p, first, strlen(first));
        buf_release(&text);
        buf_release(&out);
        grep_free(g);
    }
}

TEST(test_grep__case_is_ignored_on_request_beyond_ascii)
{
    static const struct doc d = {"p", "\xc3\x84pfel\n"};
    assert_grep(&d, 1, "\xc3\xa4PFEL", (struct grep_options){.mode = GREP_FILES}, "");
    assert_grep(&d, 1, "\xc3\xa4PFEL", (struct grep_options){.ignore_case = true}, "p");
    assert_grep(&d, 1, "^\\w+$", (struct grep_options){.mode = GREP_FILES}, "p");
    assert_grep(&d, 1, "^.pfel$", (struct grep_options){.mode = GREP_FILES}, "p");
}

TEST(test_grep__no_match_reaches_over_a_line)
{
    GREP("one\\stwo", "", .mode = GREP_FILES);
    GREP("(?s)one.*two", "", .mode = GREP_FILES);
    GREP("\\Athree\\z", "a.md", .mode = GREP_FILES);
    GREP("^$", "", .mode = GREP_FILES);
}

TEST(test_grep__head_limit_holds_in_all_and_says_whether_there_is_more)
{
    for (size_t limit = 1; limit <= 4; limit++) {
        struct grep *g =
            compiled("^t", (struct grep_options){.mode = GREP_CONTENT, .head_limit = limit});
        struct error err;
        struct buf out;
        bool more = true;
        buf_init(&out, 1 << 16);
        assert_false(grep_is_full(g, &more));
        assert_false(more);
        for (size_t i = 0; i < countof(two); i++)
            assert_true(grep_document(g, str_of(two[i].path), str_of(two[i].text), &out, &err));
        assert_true(grep_is_full(g, &more) == (limit <= 3));
        assert_true(more == (limit < 3));
        static const char all[] = "a.md:2:two\na.md:3:three\nb/c.md:4:ten";
        static const size_t cut[] = {0, 10, 23, 36, 36};
        assert_int_equal(out.n, cut[limit]);
        assert_memory_equal(out.p, all, out.n);
        buf_release(&out);
        grep_free(g);
    }
}

TEST(test_grep__head_limit_is_250_when_none_is_given)
{
    for (int docs = 249; docs <= 251; docs++) {
        struct grep *g = compiled("x", (struct grep_options){.mode = GREP_FILES});
        struct error err;
        struct buf out;
        bool more = false;
        buf_init(&out, 1 << 16);
        for (int i = 0; i < docs; i++)
            assert_true(grep_document(g, STR("p"), STR("x"), &out, &err));
        assert_true(grep_is_full(g, &more) == (docs >= 250));
        assert_true(more == (docs > 250));
        assert_int_equal(out.n, 2 * (docs > 250 ? 250 : docs) - 1);
        buf_release(&out);
        grep_free(g);
    }
}

TEST(test_grep__all_matching_lines_are_counted_shown_or_not)
{
    struct grep *g = compiled("e", (struct grep_options){.mode = GREP_CONTENT, .head_limit = 2});
    struct error err;
    struct buf out;
    buf_init(&out, 1 << 16);
    assert_true(grep_document(g, STR("a"), str_of(two[0].text), &out, &err));
    assert_int_equal(grep_matches(g), 4);
    buf_release(&out);
    grep_free(g);
}

TEST(test_grep__an_output_at_its_ceiling_ends_between_entries)
{
    struct grep *g = compiled("^t", (struct grep_options){.mode = GREP_CONTENT});
    struct error err;
    struct buf out;
    bool more = false;
    buf_init(&out, 22);
    assert_true(grep_document(g, STR("a.md"), str_of(two[0].text), &out, &err));
    assert_str(buf_str(&out), "a.md:2:two");
    assert_true(grep_is_full(g, &more) && more);
    buf_release(&out);
    grep_free(g);
}

static void assert_long_line(size_t n, size_t hit_at, const char *expected_start,
                             const char *expected_end, size_t expected_n)
{
    struct grep *g = compiled("hit", (struct grep_options){.mode = GREP_CONTENT});
    char *line = malloc(n);
    struct error err;
    struct buf out;
    buf_init(&out, 1 << 16);
    memset(line, 'x', n);
    memcpy(line + hit_at, "hit", 3);
    assert_true(grep_document(g, STR("p"), str_n(line, n), &out, &err));
    assert_int_equal(out.n, expected_n);
    assert_memory_equal(out.p, expected_start, strlen(expected_start));
    assert_memory_equal(out.p + out.n - strlen(expected_end), expected_end, strlen(expected_end));
    assert_non_null(strstr(out.p, "hit"));
    buf_release(&out);
    free(line);
    grep_free(g);
}

TEST(test_grep__lines_past_2000_bytes_are_shown_around_their_match)
{
    assert_long_line(2000, 0, "p:1:hitx", "xxx", 4 + 2000);
    assert_long_line(2001, 0, "p:1:hitx", "xxx [1 bytes more]", 4 + 2000 + 15);
    assert_long_line(2001, 1998, "p:1:[1 bytes before] xx", "xhit", 4 + 17 + 2000);
    assert_long_line(10000, 5000, "p:1:[4500 bytes before] xx", "xx [3500 bytes more]",
                     4 + 20 + 2000 + 18);
}

TEST(test_grep__long_lines_are_cut_between_characters)
{
    struct grep *g = compiled("$", (struct grep_options){.mode = GREP_CONTENT});
    char line[3001];
    struct error err;
    struct buf out;
    buf_init(&out, 1 << 16);
    line[0] = 'x';
    for (size_t i = 1; i < sizeof line; i += 2)
        memcpy(line + i, "\xc3\xa9", 2);
    assert_true(grep_document(g, STR("p"), str_n(line, sizeof line), &out, &err));
    assert_true(memmem(out.p, out.n, "before] \xc3\xa9", 10) != NULL);
    buf_release(&out);
    grep_free(g);
}

static void assert_refused(struct str pattern)
{
    struct grep_options o = {0};
    struct grep *g = NULL;
    struct error err = {0};
    assert_false(grep_compile(pattern, &o, &g, &err));
    assert_null(g);
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_memory_equal(err.text, "Invalid regex pattern: ", 23);
}

TEST(test_grep__bad_patterns_are_refused_by_name)
{
    assert_refused(STR("(a"));
    assert_refused(STR("[a"));
    assert_refused(STR("a{2,1}"));
    assert_refused(STR("\\C"));
    assert_refused(STR("\xff"));
    assert_refused(STR("((((a{999}){999}){999}){999})"));
}

TEST(test_grep__a_pattern_has_4096_bytes_at_most)
{
    static char text[4097];
    memset(text, 'a', sizeof text);
    text[4096] = '\0';
    grep_free(compiled(text, (struct grep_options){0}));
    text[4096] = 'a';
    assert_refused(str_n(text, sizeof text));
}

TEST(test_grep__an_empty_pattern_fits_every_line)
{
    GREP("", "a.md:7\nb/c.md:5", .mode = GREP_COUNT);
}

TEST(test_grep__what_is_not_utf8_is_refused)
{
    struct grep *g = compiled("a", (struct grep_options){0});
    struct error err = {0};
    struct buf out;
    buf_init(&out, 1 << 16);
    assert_false(grep_document(g, STR("p"), STR("aaaaaaaaaaaaa\xff"), &out, &err));
    assert_int_equal(err.code, ERR_BAD_INPUT);
    assert_false(grep_document(g, STR("p"), STR("\xc3"), &out, &err));
    assert_true(grep_document(g, STR("p"), STR("aaaaaaaaaaa\xc3\xa9"), &out, &err));
    buf_release(&out);
    grep_free(g);
}

/* Counts this thread's work alone: a busy machine does not make a pattern slow. */
static int64_t cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* On lines of 100 KB and on many short ones; some run into the limit at once, some are only slow.
 * Without limits each takes hours. */
TEST(test_grep__catastrophic_patterns_end_at_the_limit)
{
    static const char *const patterns[] = {
        "(a+)+[xy]",       "(a|a)*[xy]",        "(a*)*[xy]",        "([ab]*)*[xy]",
        "(.*)*(.*)*[xy]",  "(a|aa)+[xy]",       "^(a+)+$|b[xy]",    "[ab]*[ab]*[ab]*[ab]*[xy]",
        "(?:a+){10,}[xy]", "(a?){50}a{50}[xy]", "(?=(a+))*\\1[xy]", "\\w*\\w*\\w*[xy]",
    };
    size_t n = 100 * 1024;
    char *text = malloc(n);

    for (int shape = 0; shape < 2; shape++)
        for (size_t i = 0; i < countof(patterns); i++) {
            struct grep *g = compiled(patterns[i], (struct grep_options){.mode = GREP_COUNT});
            struct error err = {0};
            struct buf out;
            buf_init(&out, 1 << 16);
            for (size_t k = 0; k < n; k++)
                text[k] = shape && k % 100 == 99 ? '\n' : 'a';
            int64_t before = cpu_ms();
            bool ok = grep_document(g, STR("p"), str_n(text, n), &out, &err);
            int64_t took = cpu_ms() - before;
            if (!ok)
                assert_int_equal(err.code, ERR_TIMEOUT);
            if (took > 10000)
                fail_msg("%s took %d ms", patterns[i], (int)took);
            buf_release(&out);
            grep_free(g);
        }
    free(text);
}

TEST(test_grep__a_pattern_at_its_limit_says_timeout)
{
    struct grep *g = compiled("(a+)+[xy]", (struct grep_options){.mode = GREP_COUNT});
    char text[5000];
    struct error err = {0};
    struct buf out;
    buf_init(&out, 1 << 16);
    memset(text, 'a', sizeof text);
    assert_false(grep_document(g, STR("p"), str_n(text, sizeof text), &out, &err));
    assert_int_equal(err.code, ERR_TIMEOUT);
    /* The next document is searched as if nothing had been. */
    assert_true(grep_document(g, STR("q"), STR("aax"), &out, &err));
    assert_str(buf_str(&out), "q:1");
    buf_release(&out);
    grep_free(g);
}

TEST(test_grep__matches_far_into_a_long_line_are_found_wherever_they_begin)
{
    static char line[20000];
    struct error err;

    for (size_t at = 100; at < 5000; at += 37) {
        struct grep *g = compiled("(?<=\xc3\xa9)hit", (struct grep_options){.mode = GREP_COUNT});
        struct buf out;
        buf_init(&out, 1 << 10);
        memset(line, 'x', sizeof line);
        memcpy(line + at, "\xc3\xa9hit", 5);
        assert_true(grep_document(g, STR("p"), str_n(line, sizeof line), &out, &err));
        assert_str(buf_str(&out), "p:1");
        buf_release(&out);
        grep_free(g);
    }
}
