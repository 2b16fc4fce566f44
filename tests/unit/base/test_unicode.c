/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/unicode.h"
#include "base/utf8.h"

#include <stdlib.h>

#define COMBINING_ACUTE "\xcc\x81"

static void assert_maps(enum unicode_form form, const char *text, const char *expected)
{
    struct arena *mem = arena_new(1 << 16);
    struct str mapped = unicode_mapped(str_of(text), form, mem);

    assert_non_null(mapped.p);
    if (!str_eq(mapped, str_of(expected)))
        fail_msg("%s becomes %.*s, not %s", text, STR_ARG(mapped), expected);
    arena_free(mem);
}

static bool is_mapped(struct str text, enum unicode_form form)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    buf_addz(&out, "before");
    bool ok = unicode_map(text, form, &out);
    if (!ok)
        assert_string_equal(out.p, "before");
    buf_release(&out);
    return ok;
}

TEST(test_unicode_map__nfc_composes_and_changes_nothing_else)
{
    assert_maps(UNICODE_NFC, "", "");
    assert_maps(UNICODE_NFC, "Plain ASCII 1", "Plain ASCII 1");
    assert_maps(UNICODE_NFC, "Cafe" COMBINING_ACUTE " x", "Caf\xc3\xa9 x");
    assert_maps(UNICODE_NFC,
                "Stra\xc3\x9f"
                "e",
                "Stra\xc3\x9f"
                "e");
    assert_maps(UNICODE_NFC, "a\xcc\xa3\xcc\x82", "\xe1\xba\xad"); /* two marks */
    assert_maps(UNICODE_NFC, "a\xcc\x82\xcc\xa3", "\xe1\xba\xad"); /* in any order */
    assert_maps(UNICODE_NFC, "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c"); /* Hangul */
    assert_maps(UNICODE_NFC, "\xe3\x81\x8b\xe3\x82\x99", "\xe3\x81\x8c");             /* kana */
    assert_maps(UNICODE_NFC, "\xef\xac\x81\xef\xbc\xa1", "\xef\xac\x81\xef\xbc\xa1"); /* stay */
    assert_maps(UNICODE_NFC, "\xe2\x84\xab", "\xc3\x85"); /* the sign of Angstrom is a letter */
}

TEST(test_unicode_map__name_folds_letter_by_letter)
{
    assert_maps(UNICODE_NAME, "ReadMe.MD", "readme.md");
    assert_maps(UNICODE_NAME, "CAFE" COMBINING_ACUTE, "caf\xc3\xa9");
    assert_maps(UNICODE_NAME,
                "\xc3\x9c"
                "BER",
                "\xc3\xbc"
                "ber");
    assert_maps(UNICODE_NAME,
                "MA\xe1\xba\x9e"
                "E",
                "ma\xc3\x9f"
                "e"); /* capital sharp s */
    assert_maps(UNICODE_NAME, "MASSE", "masse");
    assert_maps(UNICODE_NAME, "\xce\x9f\xce\x94\xce\x9f\xce\xa3",
                "\xce\xbf\xce\xb4\xce\xbf\xcf\x83");
    assert_maps(UNICODE_NAME, "\xce\xbf\xce\xb4\xce\xbf\xcf\x82",
                "\xce\xbf\xce\xb4\xce\xbf\xcf\x83");
    assert_maps(UNICODE_NAME, "I\xc4\xb1", "i\xc4\xb1"); /* dotless i stays */
    assert_maps(UNICODE_NAME, "\xc4\xb0", "i\xcc\x87");  /* a dot that stays */
    assert_maps(UNICODE_NAME, "I\xcc\x87", "i\xcc\x87");
    assert_maps(UNICODE_NAME, "\xef\xbc\xa1", "\xef\xbd\x81");     /* full-width stays so */
    assert_maps(UNICODE_NAME, "\xef\xac\x81", "\xef\xac\x81");     /* the ligature stays */
    assert_maps(UNICODE_NAME, "\xe1\xbe\xbc", "\xe1\xbe\xb3");     /* with iota below */
    assert_maps(UNICODE_NAME, "\xce\x91\xcd\x85", "\xe1\xbe\xb3"); /* decomposed */
    assert_maps(UNICODE_NAME, "\xe4\xb8\xad\xe6\x96\x87", "\xe4\xb8\xad\xe6\x96\x87");
}

TEST(test_unicode_map__search_folds_as_people_search)
{
    assert_maps(UNICODE_SEARCH,
                "Stra\xc3\x9f"
                "e",
                "strasse");
    assert_maps(UNICODE_SEARCH, "Caf\xc3\xa9", "cafe");
    assert_maps(UNICODE_SEARCH, "CAFE" COMBINING_ACUTE, "cafe");
    assert_maps(UNICODE_SEARCH, "\xef\xac\x81le", "file");
    assert_maps(UNICODE_SEARCH, "\xef\xbc\xa1\xef\xbd\x82", "ab");
    assert_maps(UNICODE_SEARCH, "\xce\x9f\xce\x94\xce\x9f\xce\xa3",
                "\xce\xbf\xce\xb4\xce\xbf\xcf\x83");
    assert_maps(UNICODE_SEARCH, "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c");
    assert_maps(UNICODE_SEARCH, "\xe3\x81\x8c", "\xe3\x81\x8c"); /* a letter, not an accent */
    assert_maps(UNICODE_SEARCH, "\xe0\xa4\xb9\xe0\xa4\xbf", "\xe0\xa4\xb9\xe0\xa4\xbf"); /* vowel */
}

/* Every character: a form is its own form, and the same for both spellings of the character. */
TEST(test_unicode_map__forms_are_stable_for_every_character)
{
    struct buf once, twice, again;
    uint32_t codes[UNICODE_CODES_MAX];
    char text[4];

    buf_init(&once, 256);
    buf_init(&twice, 256);
    buf_init(&again, 256);
    for (uint32_t code = 1; code <= 0x10ffff; code++) {
        code = code == 0xd800 ? 0xe000 : code;
        size_t n = utf8_encode(code, text);
        for (int form = UNICODE_NFC; form <= UNICODE_SEARCH; form++) {
            buf_reset(&once);
            buf_reset(&twice);
            buf_reset(&again);
            bool ok = unicode_map(str_n(text, n), (enum unicode_form)form, &once) &&
                      unicode_map(buf_str(&once), (enum unicode_form)form, &twice) &&
                      unicode_map(str_n(text, n), UNICODE_NFC, &again);
            size_t composed = again.n;
            ok = ok && unicode_map(str_n(again.p, composed), (enum unicode_form)form, &again);
            struct str of_composed = str_n(again.p + composed, again.n - composed);
            if (!ok || !str_eq(buf_str(&once), buf_str(&twice)) ||
                !str_eq(buf_str(&once), of_composed) || once.n > UNICODE_GROWTH * n)
                fail_msg("U+%04X, form %d", code, form);
        }
        if (unicode_decompose(code, true, codes) < 1)
            fail_msg("U+%04X", code);
    }
    buf_release(&once);
    buf_release(&twice);
    buf_release(&again);
}

TEST(test_unicode_map__refuses_what_is_not_utf8)
{
    static const char *const bad[] = {
        "\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ok \xe2\x82", "\x80"};

    for (size_t i = 0; i < countof(bad); i++)
        for (int form = UNICODE_NFC; form <= UNICODE_SEARCH; form++)
            assert_false(is_mapped(str_of(bad[i]), (enum unicode_form)form));
    assert_true(is_mapped(STR("\xf4\x8f\xbf\xbf"), UNICODE_NFC)); /* the last code */
}

static size_t fill(char *text, const char *unit, size_t times)
{
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * strlen(unit), unit, strlen(unit));
    return times * strlen(unit);
}

TEST(test_unicode_map__marks_in_a_row_have_a_limit)
{
    char text[1 + 2 * (UNICODE_MARKS_MAX + 1) + 4] = "e";
    size_t n = 1 + fill(text + 1, COMBINING_ACUTE, UNICODE_MARKS_MAX);

    assert_true(is_mapped(str_n(text, n), UNICODE_NFC));
    assert_true(is_mapped(str_n(text, n), UNICODE_SEARCH));
    n = 1 + fill(text + 1, COMBINING_ACUTE, UNICODE_MARKS_MAX + 1);
    assert_false(is_mapped(str_n(text, n), UNICODE_NFC));
    assert_false(is_mapped(str_n(text + 1, n - 1), UNICODE_NAME));
    memcpy(text + 1 + 2 * UNICODE_MARKS_MAX, "x" COMBINING_ACUTE, 3); /* another letter */
    assert_true(is_mapped(str_n(text, 4 + 2 * UNICODE_MARKS_MAX), UNICODE_NFC));
}

TEST(test_unicode_map__bytes_without_ascii_have_a_limit)
{
    char *text = malloc(UNICODE_RUN_MAX + 16);
    size_t n = fill(text, "\xc3\xa9", UNICODE_RUN_MAX / 2);

    assert_true(is_mapped(str_n(text, n), UNICODE_NAME));
    n += fill(text + n, "\xc3\xa9", 1);
    assert_false(is_mapped(str_n(text, n), UNICODE_NAME));
    text[n / 2 / 2 * 2] = '-'; /* two runs; half a character is left, though */
    text[n / 2 / 2 * 2 + 1] = '-';
    assert_true(is_mapped(str_n(text, n), UNICODE_NAME));
    free(text);
}

TEST(test_unicode_map__the_limit_of_the_buffer_is_kept)
{
    struct buf out;

    buf_init(&out, 4);
    assert_true(unicode_map(STR("caf"), UNICODE_NAME, &out));
    assert_false(unicode_map(STR("\xc3\xa9"), UNICODE_NAME, &out));
    assert_false(unicode_map(STR("ab"), UNICODE_NAME, &out));
    assert_string_equal(out.p, "caf");
    assert_true(unicode_map(STR("\xe2\x84\xaa"), UNICODE_NAME, &out)); /* the sign of Kelvin: k */
    assert_string_equal(out.p, "cafk");
    buf_release(&out);
}

TEST(test_unicode_mapped__text_in_its_form_is_not_copied)
{
    struct arena *mem = arena_new(1 << 16);
    struct str ascii = STR("read_me"), composed = STR("caf\xc3\xa9");

    assert_ptr_equal(unicode_mapped(ascii, UNICODE_NFC, mem).p, ascii.p);
    assert_ptr_equal(unicode_mapped(ascii, UNICODE_NAME, mem).p, ascii.p);
    assert_ptr_equal(unicode_mapped(composed, UNICODE_NFC, mem).p, composed.p);
    assert_null(unicode_mapped(STR("\xff"), UNICODE_NFC, mem).p);
    arena_free(mem);
}

TEST(test_unicode_same_name__case_and_spelling)
{
    assert_true(unicode_same_name(STR("ReadMe"), STR("README")));
    assert_true(unicode_same_name(STR("Caf\xc3\xa9"), STR("CAFE" COMBINING_ACUTE)));
    assert_true(unicode_same_name(STR("\xe2\x84\xaa"), STR("k")));
    assert_true(unicode_same_name(STR(""), STR("")));
    assert_true(unicode_same_name(STR("\xff"
                                      "A"),
                                  STR("\xff"
                                      "a"))); /* without a form */
    assert_false(unicode_same_name(STR("\xff"), STR("\xfe")));
    assert_false(unicode_same_name(STR("cafe"), STR("caf\xc3\xa9")));
    assert_false(unicode_same_name(STR("cafe"), STR("cafe" COMBINING_ACUTE)));
    assert_false(unicode_same_name(STR("Masse"), STR("Ma\xc3\x9f"
                                                     "e")));
    assert_false(unicode_same_name(STR("read"), STR("reads")));
    assert_false(unicode_same_name(STR("\xc4\xb1"), STR("i")));
}

/* A table that was here before utf8proc: what was invisible then is so now. */
TEST(test_unicode_is_invisible__no_character_became_visible)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},
        {0x061c, 0x061c},   {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
        {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x2800, 0x2800},
        {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
        {0xfff0, 0xfffb},   {0x13430, 0x1345f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
        {0xe0000, 0xe0fff},
    };
    static const uint32_t visible[] = {' ',    '~',    0xa0,   0xe9,   0x0301,
                                       0x0600, 0x4e2d, 0xfffd, 0x1f600};

    for (size_t i = 0; i < countof(ranges); i++)
        for (uint32_t code = ranges[i].first; code <= ranges[i].last; code++)
            if (!unicode_is_invisible(code))
                fail_msg("U+%04X", code);
    for (size_t i = 0; i < countof(visible); i++)
        assert_false(unicode_is_invisible(visible[i]));
}

TEST(test_unicode_is__kinds_of_characters)
{
    static const uint32_t words[] = {'a', 'Z', '0', 0xe9, 0x0301, 0x093f, 0x4e2d, 0x0660, 0xe000};
    static const uint32_t others[] = {' ',  '_',    '-',    0xa0,   0xab,
                                      0xd7, 0x2014, 0x2192, 0x3001, 0x1f600};

    for (size_t i = 0; i < countof(words); i++)
        assert_true(unicode_is_word(words[i]));
    for (size_t i = 0; i < countof(others); i++)
        assert_false(unicode_is_word(others[i]));
    assert_true(unicode_is_blank(' ') && unicode_is_blank(0xa0) && unicode_is_blank(0x3000));
    assert_false(unicode_is_blank('a') || unicode_is_blank(0x200b));
    assert_true(unicode_is_mark(0x0301) && unicode_is_mark(0x20dd) && unicode_is_mark(0xfe0f));
    assert_false(unicode_is_mark('a') || unicode_is_mark(0x093f));
}

TEST(test_unicode_columns__wide_characters_take_two_and_marks_none)
{
    struct buf out;

    assert_int_equal(unicode_columns(STR("")), 0);
    assert_int_equal(unicode_columns(STR("plain text")), 10);
    assert_int_equal(unicode_columns(STR("caf\xc3\xa9")), 4);
    assert_int_equal(unicode_columns(STR("cafe" COMBINING_ACUTE)), 4);
    assert_int_equal(unicode_columns(STR("\xe4\xb8\xad\xe6\x96\x87")), 4);
    assert_int_equal(unicode_columns(STR("\xed\x95\x9c")), 2);
    assert_int_equal(unicode_columns(STR("\xef\xbc\xa1")), 2);
    assert_int_equal(unicode_columns(STR("\xf0\x9f\x98\x80 ok")), 5);
    assert_int_equal(unicode_columns(STR("a\xff\xfe")), 3);
    assert_int_equal(unicode_columns(STR("\xe2\x9c\x94 \xe2\x80\xa6")), 3);
    buf_init(&out, 64);
    buf_addz(&out, "x \xe4\xb8\xad");
    unicode_pad(&out, 2, 5);
    assert_string_equal(out.p, "x \xe4\xb8\xad   ");
    unicode_pad(&out, 2, 1);
    assert_string_equal(out.p, "x \xe4\xb8\xad   ");
    buf_release(&out);
}
