/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of ECMA 262: what they mean there they mean here, or they are refused. */
#include "schema/regex.h"

#include "test.h"

#include <stdlib.h>

static enum schema_answer match_within(const char *pattern, struct str text, uint32_t steps)
{
    struct arena *mem = arena_new(1 << 20);
    struct regex_run *run = regex_run_new();
    const char *reason = NULL;
    struct regex *re = regex_compile(str_of(pattern), mem, &reason);
    enum schema_answer answer;

    assert_non_null(re);
    answer = regex_match(run, re, text, &steps);
    regex_run_free(run);
    arena_free(mem);
    return answer;
}

static bool matches(const char *pattern, const char *text)
{
    enum schema_answer answer = match_within(pattern, str_of(text), SCHEMA_STEPS_MAX);

    assert_int_not_equal(answer, SCHEMA_UNSURE);
    return answer == SCHEMA_VALID;
}

TEST(test_regex__means_what_it_means_in_ecma_262)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        {"^a*$", "aaa", true},
        {"^a*$", "aab", false},
        {"a+", "xxaayy", true},
        {"^abc$", "abc\n", false},
        {"^\\d+$", "\u0968", false},
        {"^\\w$", "\u00e9", false},
        {"^\\W$", "\u00e9", true},
        {"^\\s$", "\u00a0", true},
        {"^\\s$", "\ufeff", true},
        {"^\\S$", "\u200b", true},
        {"^[\\s]$", "\u2029", true},
        {"^.$", "\u2028", false},
        {"^.$", "\r", false},
        {"^.$", "\U0001f432", true},
        {"^\\uD83D\\uDC32*$", "\U0001f432\U0001f432", true},
        {"^\\u{1F432}$", "\U0001f432", true},
        {"^\\x41\\u0042$", "AB", true},
        {"^\\cA$", "\x01", true},
        {"^[]$", "a", false},
        {"^[^]$", "\n", true},
        {"^[a\\-z]+$", "a-z", true},
        {"^[a-]+$", "a-", true},
        {"^[[:alpha:]]$", "a]", true},
        {"^[\\b]$", "\b", true},
        {"^{a}$", "{a}", true},
        {"^a{,2}$", "a{,2}", true},
        {"^a{2,3}$", "aaaa", false},
        {"^(?<year>[0-9]{4})$", "2026", true},
        {"^(?=.*x)(?!.*y).+$", "axb", true},
        {"(?<=a)b", "ab", true},
        {"(?<=a)b", "cb", false},
        {"^\\p{Lu}\\p{Letter}+$", "\u00c4rger", true},
        {"^\\P{L}$", "1", true},
        {"^#x y$", "#x y", true},
        {"^\\/\\#\\@$", "/#@", true},
    };
    for (size_t i = 0; i < countof(rows); i++)
        if (matches(rows[i].pattern, rows[i].text) != rows[i].matches)
            fail_msg("%s on %s", rows[i].pattern, rows[i].text);
}

TEST(test_regex__what_is_not_the_same_in_both_languages_is_refused)
{
    static const char *const rows[] = {
        "(a)\\1",     "(?<n>a)\\k<n>",
        "\\Aa",       "a\\Z",
        "\\Qa\\E",    "\\h",
        "a++",        "a*+",
        "(?>a)",      "(?i)a",
        "(?i:a)",     "(?#c)",
        "(*UCP)",     "*a",
        "^*",         "(?=a)*",
        "\\p{Greek}", "\\p{Script=Greek}",
        "\\p{Lq}",    "\\ud800",
        "[\\w-z]",    "[z-a]",
        "(a",         "a)",
        "[a",         "\\",
        "\\x4",       "\\u00",
        "a{2}{3}",    "a{3,2}",
        "a{65536}",   "\\R",
        "\\a",        "\\e",
        "(?|a)",      "(?P<n>a)",
        "(?<n",       "\\u{110000}",
        "\\X",
    };
    struct arena *mem = arena_new(1 << 20);

    for (size_t i = 0; i < countof(rows); i++) {
        const char *reason = NULL;

        if (regex_compile(str_of(rows[i]), mem, &reason))
            fail_msg("%s was taken", rows[i]);
        assert_non_null(reason);
    }
    arena_free(mem);
}

TEST(test_regex__is_unsure_where_the_flag_u_would_decide)
{
    struct arena *mem = arena_new(1 << 20);
    const char *reason;

    assert_int_equal(match_within("^.]$", STR("a]"), 1000), SCHEMA_VALID);
    assert_int_equal(match_within("^.]$", STR("\U0001f432]"), 1000), SCHEMA_UNSURE);
    assert_null(regex_compile(STR("\\p{L}]"), mem, &reason));
    arena_free(mem);
}

TEST(test_regex__patterns_have_a_longest_length)
{
    struct arena *mem = arena_new(1 << 20);
    char text[SCHEMA_PATTERN_MAX + 1];
    const char *reason;

    memset(text, 'a', sizeof(text));
    assert_non_null(regex_compile(str_n(text, SCHEMA_PATTERN_MAX), mem, &reason));
    assert_null(regex_compile(str_n(text, SCHEMA_PATTERN_MAX + 1), mem, &reason));
    assert_string_equal(reason, "the regular expression is too long");
    arena_free(mem);
}

static struct regex *nested(struct arena *mem, unsigned depth)
{
    const char *reason;
    struct regex *re;
    struct buf text;

    buf_init(&text, 4096);
    for (unsigned i = 0; i < depth; i++)
        buf_addc(&text, '(');
    buf_addc(&text, 'a');
    for (unsigned i = 0; i < depth; i++)
        buf_addc(&text, ')');
    re = regex_compile(buf_str(&text), mem, &reason);
    buf_release(&text);
    return re;
}

TEST(test_regex__groups_are_nested_sixty_three_deep_at_most)
{
    struct arena *mem = arena_new(1 << 20);

    assert_non_null(nested(mem, 63));
    assert_null(nested(mem, 64));
    arena_free(mem);
}

TEST(test_regex__a_match_that_explodes_is_unsure)
{
    struct str text = STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");

    assert_int_equal(match_within("^(a+)+$", text, SCHEMA_STEPS_MAX), SCHEMA_UNSURE);
    assert_int_equal(match_within("(x+x+)+y|(a|a)*c", text, SCHEMA_STEPS_MAX), SCHEMA_UNSURE);
}

TEST(test_regex__work_that_grows_with_the_square_of_a_long_text_is_unsure)
{
    size_t n = 1 << 20;
    char *text = xmalloc(n);

    memset(text, 'a', n);
    assert_int_equal(match_within("a*[bc]", str_n(text, n), SCHEMA_STEPS_MAX), SCHEMA_UNSURE);
    assert_int_equal(match_within("^[a-z]*$", str_n(text, n), SCHEMA_STEPS_MAX), SCHEMA_VALID);
    free(text);
}

TEST(test_regex__uses_up_the_steps_it_is_given)
{
    uint32_t least = 0;

    while (match_within("^abc$", STR("abc"), least) == SCHEMA_UNSURE)
        least++;
    assert_true(least > 1 && least < 20);
    assert_int_equal(match_within("^abc$", STR("abc"), least), SCHEMA_VALID);
    assert_int_equal(match_within("^abc$", STR("abc"), least - 1), SCHEMA_UNSURE);
}
