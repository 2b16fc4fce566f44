/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/utf8.h"
#include "upstream/pins_lookalike.h"

#include <stdlib.h>

static bool are_alike(const char *one, const char *other)
{
    const char *why = NULL;
    struct buf a, b;
    buf_init(&a, 1 << 16);
    buf_init(&b, 1 << 16);
    assert_true(lookalike_fold(str_of(one), &a, &why));
    assert_true(lookalike_fold(str_of(other), &b, &why));
    bool same = str_eq(buf_str(&a), buf_str(&b));
    buf_release(&a);
    buf_release(&b);
    return same;
}

static const char *refusal(struct str name)
{
    const char *why = NULL;
    struct buf out;
    buf_init(&out, 1 << 16);
    bool ok = lookalike_fold(name, &out, &why);
    buf_release(&out);
    return ok ? NULL : why;
}

TEST(test_lookalike__case_scripts_width_and_accents)
{
    assert_true(are_alike("kb.read", "KB.Read"));
    assert_true(are_alike("read", "re\xd0\xb0"
                                  "d")); /* Cyrillic a */
    assert_true(are_alike("read", "R\xd0\x95"
                                  "AD"));          /* Cyrillic capital Ie */
    assert_true(are_alike("copy", "c\xce\xbfpy")); /* Greek omicron */
    assert_true(are_alike("read", "\xef\xbd\x92\xef\xbd\x85\xef\xbd\x81\xef\xbd\x84")); /* wide */
    assert_true(are_alike("read", "\xf0\x9d\x90\xab"
                                  "ead"));                 /* mathematical bold r */
    assert_true(are_alike("caf\xc3\xa9", "cafe\xcc\x81")); /* composed or not */
    assert_true(are_alike("get-it", "get\xe2\x80\x91it")); /* another hyphen */
    assert_true(are_alike("\xd0\x96", "\xd0\xb6"));        /* Zhe */
    assert_true(are_alike("\xce\x93", "\xce\xb3"));        /* Gamma */
}

TEST(test_lookalike__ligatures_and_the_order_of_marks)
{
    assert_true(are_alike("file", "\xef\xac\x81le"));                  /* fi */
    assert_true(are_alike("a\xcc\xa3\xcc\x81", "a\xcc\x81\xcc\xa3"));  /* dot and acute */
    assert_true(are_alike("\xc3\xa9\xcc\xa3x", "e\xcc\xa3\xcc\x81x")); /* composed first */
    assert_false(are_alike("a\xcc\x81"
                           "b\xcc\xa3",
                           "a\xcc\xa3"
                           "b\xcc\x81")); /* another letter's */
}

TEST(test_lookalike__every_script_has_its_case_width_and_marks)
{
    assert_true(are_alike("stra\xc3\x9f"
                          "e",
                          "STRASSE"));                     /* sharp s */
    assert_true(are_alike("\xc4\xb1nfo", "INFO"));         /* dotless i */
    assert_true(are_alike("\xc4\xb0nfo", "i\xcc\x87nfo")); /* capital I with a dot */
    assert_true(are_alike("\xce\xbb\xcf\x8c\xce\xb3\xce\xbf\xcf\x82",
                          "\xce\x9b\xce\x8c\xce\x93\xce\x9f\xce\xa3")); /* final sigma */
    assert_true(are_alike("\xed\x95\x9c", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab")); /* Hangul */
    assert_true(are_alike("\xe3\x81\x8c", "\xe3\x81\x8b\xe3\x82\x99"));             /* kana */
    assert_true(are_alike("\xef\xbd\xb6", "\xe3\x82\xab"));      /* half-width kana */
    assert_true(are_alike("\xd5\x80", "\xd5\xb0"));              /* Armenian Ho and ho */
    assert_true(are_alike("\xe1\xba\xa4", "a\xcc\x82\xcc\x81")); /* two marks in one letter */
    assert_true(are_alike("x\xe2\x82\x82", "x2"));               /* subscript */
    assert_false(are_alike("\xed\x95\x9c", "\xed\x95\xa0"));
    assert_false(are_alike("\xe3\x81\x8c", "\xe3\x81\x8b"));
    assert_false(are_alike("a\xc2\xb4", "a "
                                        "b")); /* an accent of its own is not a blank */
}

/* Names of marks alone, of any script, at the limit and past it. */
TEST(test_lookalike__marks_of_all_scripts_count)
{
    static const char *const marks[] = {"\xcc\x81", "\xd6\xb8", "\xe2\x83\x9d", "\xf0\x9d\x85\xa5"};
    char name[64];

    for (size_t i = 0; i < countof(marks); i++) {
        size_t n = 1;
        name[0] = 'a';
        for (unsigned k = 0; k < 8; k++, n += strlen(marks[i]))
            memcpy(name + n, marks[i], strlen(marks[i]));
        /* U+1D165 is spacing: it is a character of its own. */
        bool counts = i < 3;
        assert_null(refusal(str_n(name, n)));
        memcpy(name + n, marks[i], strlen(marks[i]));
        n += strlen(marks[i]);
        if (counts)
            assert_string_equal(refusal(str_n(name, n)), "has more than eight marks on one letter");
        else
            assert_null(refusal(str_n(name, n)));
    }
}

static bool are_loosely_alike(const char *one, const char *other)
{
    struct buf a, b;
    buf_init(&a, 1 << 16);
    buf_init(&b, 1 << 16);
    lookalike_fold_loosely(str_of(one), &a);
    lookalike_fold_loosely(str_of(other), &b);
    bool same = str_eq(buf_str(&a), buf_str(&b));
    buf_release(&a);
    buf_release(&b);
    return same;
}

TEST(test_lookalike_loosely__digits_that_look_like_letters)
{
    assert_true(are_loosely_alike("delete_file", "de1ete_fi1e"));
    assert_true(are_loosely_alike("delete_file", "deIete_fiIe"));
    assert_true(are_loosely_alike("copy", "c0py"));
    assert_true(are_loosely_alike("list", "\xef\xbc\x91ist")); /* full-width 1 */
    assert_false(are_loosely_alike("mail", "mall"));
    assert_false(are_loosely_alike("read", "reed"));
    assert_false(are_loosely_alike("page_1", "page_2"));
}

TEST(test_lookalike__others_are_not)
{
    static const struct {
        const char *name, *alike, *different;
    } cases[] = {
        {"read", "READ", "reads"},
        {"get_user", "GET_user", "get-user"},
        {"cafe",
         "c\xd0\xb0"
         "fe",
         "caf\xc3\xa9"},
        {"tool_1", "TOOL_1", "tool_l"},
        {"\xe8\xaf\xbb_a", "\xe8\xaf\xbb_A", "\xe5\x86\x99_a"},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        if (!are_alike(cases[i].name, cases[i].alike))
            fail_msg("%s and %s are not alike", cases[i].name, cases[i].alike);
        if (are_alike(cases[i].name, cases[i].different))
            fail_msg("%s and %s are alike", cases[i].name, cases[i].different);
    }
}

TEST(test_lookalike__what_nobody_sees_is_refused)
{
    assert_null(refusal(STR("Get it")));
    assert_non_null(refusal(STR("re\xe2\x80\x8b"
                                "ad"))); /* zero width space */
    assert_non_null(refusal(STR("\xe2\x80\xae"
                                "daer")));         /* right to left */
    assert_non_null(refusal(STR("read\xc2\xa0"))); /* no-break space */
    assert_non_null(refusal(STR("read\n")));
    assert_non_null(refusal(STR("read ")));
    assert_non_null(refusal(STR(" read")));
    assert_non_null(refusal(STR("Get  it")));
    assert_non_null(refusal(STR("re\xe2\x80\x8d"
                                "ad")));                   /* zero width joiner */
    assert_non_null(refusal(STR("read\xf3\xa0\x81\x81"))); /* tags */
    assert_non_null(refusal(STR("\xff")));
    assert_non_null(refusal(STR("\xc0\xaf")));
    assert_non_null(refusal(STR("\xed\xa0\x80")));
    assert_non_null(refusal(STR("a\xe2\x82")));
}

/* So that what a name looks like looks like itself, whatever letter it has. */
TEST(test_lookalike__of_what_it_gives_is_the_same)
{
    for (uint32_t code = 0x80; code < 0x110000; code++) {
        char name[5] = {0};
        const char *why = NULL;
        struct buf once, twice;
        if (code == 0xd800)
            code = 0xe000;
        name[utf8_encode(code, name)] = '\0';
        buf_init(&once, 1 << 10);
        buf_init(&twice, 1 << 10);
        if (lookalike_fold(str_of(name), &once, &why)) {
            assert_true(lookalike_fold(buf_str(&once), &twice, &why));
            if (!str_eq(buf_str(&once), buf_str(&twice)))
                fail_msg("U+%04X", code);
        }
        buf_release(&once);
        buf_release(&twice);
    }
}

TEST(test_lookalike__a_letter_has_eight_marks_at_most)
{
    assert_null(refusal(STR("a\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81"
                            "b\xcc\x81")));
    assert_non_null(
        refusal(STR("a\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81")));
}

TEST(test_lookalike__names_have_a_limit)
{
    char *name = malloc(LOOKALIKE_MAX + 1);
    memset(name, 'a', LOOKALIKE_MAX + 1);
    assert_null(refusal(str_n(name, LOOKALIKE_MAX)));
    assert_non_null(refusal(str_n(name, LOOKALIKE_MAX + 1)));
    free(name);
}

/* Characters are looked up by pages of 256: the last of a page, the first of the next, and pages
 * that only some tables touch. */
TEST(test_lookalike__the_edges_of_tables_are_found)
{
    static const char *const unseen[] = {"a\xc2\xa0",        "\xe2\x81\xaf",
                                         "\xe3\x85\xa4",     "\xf0\x9d\x85\xba",
                                         "\xf3\xa0\x80\x80", "\xf3\xa0\xbf\xbf"};
    static const char *const seen[] = {"\xd3\xbf",     "\xd4\x80",         "\xe3\x84\xb0",
                                       "\xe4\xb8\xad", "\xf3\xa1\x80\x80", "\xf4\x8f\xbf\xbf"};

    for (size_t i = 0; i < countof(unseen); i++)
        assert_non_null(refusal(str_of(unseen[i])));
    for (size_t i = 0; i < countof(seen); i++)
        assert_null(refusal(str_of(seen[i])));
    assert_true(are_alike("d", "\xd4\x80"));
    assert_true(are_alike("z", "\xf0\x9d\x9a\xa3")); /* the last mathematical letter */
    assert_true(are_alike("~", "\xef\xbd\x9e"));
    assert_true(are_alike("m\xd3\xbf", "m\xd3\xbf"));
    assert_false(are_alike("\xe4\xb8\xad", "\xe4\xb8\xae"));
}

/* The longest names, of characters that grow most when they are folded; and one byte more. */
TEST(test_lookalike__the_longest_names_are_folded_whole)
{
    static const char *const letters[] = {"\xc3\xa9",  "\xc5\xbe",     "\xef\xac\x83",
                                          "e\xcc\x81", "\xe3\x8c\x87", "A"};
    char name[LOOKALIKE_MAX + 1];

    for (size_t i = 0; i < countof(letters); i++) {
        size_t n = strlen(letters[i]), at = 0;
        const char *why = NULL;
        struct buf out, one;

        for (; at + n <= LOOKALIKE_MAX; at += n)
            memcpy(name + at, letters[i], n);
        memset(name + at, 'x', sizeof(name) - at);
        buf_init(&out, LOOKALIKE_FOLD_MAX);
        buf_init(&one, 64);
        assert_true(lookalike_fold(str_n(name, at), &out, &why));
        assert_true(lookalike_fold(str_of(letters[i]), &one, &why));
        assert_int_equal(out.n, at / n * one.n);
        for (size_t k = 0; k < out.n; k += one.n)
            assert_memory_equal(out.p + k, one.p, one.n);
        assert_string_equal(refusal(str_n(name, LOOKALIKE_MAX + 1)),
                            "is longer than any call may name");
        buf_release(&one);
        buf_release(&out);
    }
}
