/* SPDX-License-Identifier: Apache-2.0 */
/* Words: how text is cut, what has the same stem, what stands for what, and that the table is
 * whole. */
#include "test.h"

#include "profile/words.h"
#include "profile/words_table.h"

#include <stdio.h>

static uint32_t stem(const char *word)
{
    return words_of(word).stem;
}

static float strength(const char *said, const char *meant)
{
    struct word_other others[WORDS_OTHERS_MAX];
    size_t n = words_others(stem(said), others, countof(others));

    for (size_t i = 0; i < n; i++)
        if (others[i].stem == stem(meant))
            return others[i].strength;
    return 0;
}

static void assert_cut(const char *text, const char *const *expected, size_t n)
{
    struct word words[16];

    assert_int_equal(words_cut(str_of(text), words, countof(words)), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(words[i].stem, stem(expected[i]));
}

TEST(test_words__names_are_cut_where_people_read_them)
{
    assert_cut("send_email-now", (const char *const[]){"send", "email", "now"}, 3);
    assert_cut("getHTTPServer", (const char *const[]){"get", "http", "server", "gethttpserver"}, 4);
    assert_cut("URLs of EC2", (const char *const[]){"url", "of", "ec2"}, 3);
    assert_cut("GitHub's", (const char *const[]){"git", "hub", "github", "s"}, 4);
    assert_cut("at 3pm", (const char *const[]){"at", "pm"}, 2);
    assert_cut(" -- ", NULL, 0);
}

TEST(test_words__other_scripts_are_cut_and_folded_too)
{
    assert_cut("files\xe2\x80\x94"
               "folders",
               (const char *const[]){"files", "folders"}, 2);
    assert_cut("caf\xc3\xa9\xe2\x80\xa6", (const char *const[]){"cafe"}, 1);
    assert_int_equal(stem("\xc3\x9c"
                          "bersicht"),
                     stem("u\xcc\x88"
                          "BERSICHT"));
    assert_int_equal(stem("stra\xc3\x9f"
                          "e"),
                     stem("STRASSE"));
    assert_int_equal(stem("\xef\xbd\x86\xef\xbd\x89\xef\xbd\x8c\xef\xbd\x85"), stem("file"));
    assert_int_equal(stem("\xef\xac\x81le"), stem("file"));
    assert_int_equal(stem("\xd0\xa4\xd0\x90\xd0\x99\xd0\x9b"),
                     stem("\xd1\x84\xd0\xb0\xd0\xb9\xd0\xbb"));
    assert_int_not_equal(stem("\xe6\x96\x87"), stem("\xe6\x9b\xb8"));
    assert_int_not_equal(stem("\xff\xfe"), stem("\xff\xfd")); /* not UTF-8: as it is */
}

TEST(test_words__forms_of_a_word_have_one_stem)
{
    static const char *const pairs[][2] = {
        {"queries", "query"},      {"querying", "query"},  {"sent", "send"},
        {"wrote", "write"},        {"creation", "create"}, {"getting", "get"},
        {"deployments", "deploy"}, {"movie", "movies"},    {"addresses", "address"},
        {"People", "person"},      {"replied", "reply"}};
    static const char *const apart[][2] = {
        {"news", "new"}, {"station", "stat"}, {"settings", "set"}, {"comment", "com"}};

    for (size_t i = 0; i < countof(pairs); i++)
        assert_int_equal(stem(pairs[i][0]), stem(pairs[i][1]));
    for (size_t i = 0; i < countof(apart); i++)
        assert_int_not_equal(stem(apart[i][0]), stem(apart[i][1]));
}

TEST(test_words__idle_ones_are_known_by_how_they_are_written)
{
    assert_true(words_of("Please").marks & WORD_IDLE);
    assert_true(words_of("not").marks & WORD_IDLE);
    assert_false(words_of("note").marks & WORD_IDLE);
    assert_true(words_of("2024").marks & WORD_IDLE);
    assert_true(words_of("tomorrow").marks & WORD_WEAK);
    assert_true(words_of("removes").marks & WORD_DESTROYS);
    assert_true(words_of("is").marks & WORD_ASKS);
}

TEST(test_words__what_is_the_same_counts_both_ways_and_what_implies_only_one)
{
    assert_true(strength("remove", "delete") > 0 && strength("delete", "remove") > 0);
    assert_true(strength("rain", "weather") > 0);
    assert_true(strength("weather", "rain") == 0);
    assert_true(strength("message", "sms") > strength("message", "telegram"));
    assert_true(strength("message", "telegram") > 0);
    assert_true(strength("delete", "delete") == 0);
    assert_true(strength("xylophone", "zebra") == 0);
}

TEST(test_words__a_phrase_is_more_than_its_words)
{
    struct word_other others[WORDS_OTHERS_MAX];
    uint32_t phrase = words_phrase(stem("threw"), stem("away"));
    bool deletes = false;

    assert_int_not_equal(phrase, 0);
    for (size_t i = words_others(phrase, others, countof(others)); i > 0; i--)
        deletes = deletes || others[i - 1].stem == stem("delete");
    assert_true(deletes);
    assert_int_equal(words_phrase(stem("away"), stem("throw")), 0);
    assert_int_equal(words_phrase(stem("throw"), stem("delete")), 0);
}

TEST(test_words__only_so_many_are_read)
{
    struct word words[3];

    assert_int_equal(words_cut(STR("one two three"), words, 3), 3);
    assert_int_equal(words_cut(STR("one two three four"), words, 3), 3);
    assert_int_equal(words_cut(STR("one two GitHub"), words, 3), 3);
    assert_int_equal(words_others(stem("delete"), (struct word_other[2]){{0}}, 2), 2);
}

TEST(test_words__the_first_48_bytes_of_a_word_count)
{
    char one[50], two[50];

    memset(one, 'x', 49);
    one[49] = '\0';
    memcpy(two, one, sizeof(one));
    two[48] = 'y';
    assert_int_equal(stem(one), stem(two));
    two[47] = 'y';
    assert_int_not_equal(stem(one), stem(two));
}

/* A stem with more others than the callers have room for would lose some without a word. */
static void assert_row_is_whole(const struct words_row *row)
{
    struct word_other others[4 * WORDS_OTHERS_MAX];
    struct str rest = str_of(row->words);
    size_t n = 0;

    assert_int_equal(row->kind == WORDS_IMPLIED, row->implied != NULL);
    for (; rest.p; n++) {
        struct str entry = str_split(&rest, ' '), first = str_split(&entry, '+');
        char one[64], two[64];
        snprintf(one, sizeof(one), "%.*s", STR_ARG(first));
        snprintf(two, sizeof(two), "%.*s", STR_ARG(entry));
        assert_true(first.n > 0);
        uint32_t said = entry.p ? words_phrase(stem(one), stem(two)) : stem(one);
        assert_int_not_equal(said, 0);
        assert_in_range(words_others(said, others, countof(others)), 1, WORDS_OTHERS_MAX);
    }
    assert_true(n > 1 || row->implied);
}

TEST(test_words__the_table_is_whole)
{
    for (size_t i = 0; i < words_n_deeds; i++)
        assert_row_is_whole(&words_deeds[i]);
    for (size_t i = 0; i < words_n_things; i++)
        assert_row_is_whole(&words_things[i]);
    for (size_t i = 0; i < words_n_forms; i++)
        assert_row_is_whole(&words_forms[i]);
}
