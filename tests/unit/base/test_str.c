/* SPDX-License-Identifier: Apache-2.0 */
/* Views: comparison, cutting, numbers, distance. */
#include "test.h"

TEST(test_str_ieq__ignores_ascii_case_only)
{
    assert_true(str_ieq(STR("Content-Type"), STR("content-tYPE")));
    assert_false(str_ieq(STR("\xc3\x84"), STR("\xc3\xa4")));
    assert_false(str_ieq(STR("abc"), STR("abcd")));
    assert_false(str_ieq(STR("[@"), STR("{`")));
}

/* Long ones are compared eight bytes at a time: every pair of bytes, at every place. */
TEST(test_str_ieq__judges_every_pair_of_bytes_alike_at_every_place)
{
    for (int x = 0; x < 256; x++)
        for (int y = 0; y < 256; y++) {
            bool is_letter = (x | 32) >= 'a' && (x | 32) <= 'z';
            bool expected = x == y || (is_letter && (x ^ y) == 32);
            for (size_t n = 1; n <= 19; n += 6) {
                char a[19], b[19];
                memset(a, 'k', sizeof(a));
                memset(b, 'K', sizeof(b));
                for (size_t at = 0; at < n; at++) {
                    a[at] = (char)x;
                    b[at] = (char)y;
                    assert_int_equal(str_ieq(str_n(a, n), str_n(b, n)), expected);
                    a[at] = 'k';
                    b[at] = 'K';
                }
            }
        }
}

TEST(test_str_starts__absent_prefix_and_absent_text_are_safe)
{
    assert_true(str_starts(STR("abc"), STR("ab")));
    assert_true(str_starts(STR_NONE, STR_NONE));
    assert_false(str_starts(STR_NONE, STR("a")));
}

TEST(test_str_cmp__orders_bytes_then_length)
{
    assert_int_equal(str_cmp(STR("a"), STR("b")), -1);
    assert_int_equal(str_cmp(STR("b"), STR("a")), 1);
    assert_int_equal(str_cmp(STR("a"), STR("ab")), -1);
    assert_int_equal(str_cmp(STR("\xff"), STR("a")), 1);
    assert_int_equal(str_cmp(STR(""), STR_NONE), 0);
}

TEST(test_str_trim__takes_blanks_off_both_ends_only)
{
    assert_str(str_trim(STR(" \t a b\t ")), "a b");
    assert_str(str_trim(STR(" \t ")), "");
    assert_str(str_trim(STR("\na")), "\na");
}

TEST(test_str_split__leaves_absent_rest_after_the_last_part)
{
    struct str rest = STR("a,,b");

    assert_str(str_split(&rest, ','), "a");
    assert_str(str_split(&rest, ','), "");
    assert_str(str_split(&rest, ','), "b");
    assert_null(rest.p);
}

TEST(test_str_split__trailing_separator_leaves_an_empty_rest)
{
    struct str rest = STR("a,");

    assert_str(str_split(&rest, ','), "a");
    assert_non_null(rest.p);
    assert_int_equal(rest.n, 0);
}

TEST(test_str_to_u64__accepts_the_limit_and_refuses_one_more)
{
    uint64_t v = 7;

    assert_true(str_to_u64(STR("100"), 100, &v));
    assert_int_equal(v, 100);
    assert_false(str_to_u64(STR("101"), 100, &v));
    assert_int_equal(v, 100);
    assert_true(str_to_u64(STR("18446744073709551615"), UINT64_MAX, &v));
    assert_true(v == UINT64_MAX);
    assert_false(str_to_u64(STR("18446744073709551616"), UINT64_MAX, &v));
}

TEST(test_str_to_u64__refuses_signs_blanks_and_nothing)
{
    static const char *const bad[] = {"", "+1", "-1", " 1", "1 ", "0x1", "1.0", "\xd9\xa1"};
    uint64_t v;

    for (size_t i = 0; i < countof(bad); i++)
        assert_false(str_to_u64(str_of(bad[i]), UINT64_MAX, &v));
    assert_true(str_to_u64(STR("007"), 10, &v));
    assert_int_equal(v, 7);
}

TEST(test_str_distance__counts_edits_up_to_the_cap)
{
    assert_int_equal(str_distance(STR("listen"), STR("listen"), 3), 0);
    assert_int_equal(str_distance(STR("lisen"), STR("listen"), 3), 1);
    assert_int_equal(str_distance(STR("Listen"), STR("listen"), 3), 0);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 9), 3);
    assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 3), 3);
    assert_int_equal(str_distance(STR(""), STR("abc"), 9), 3);
    assert_int_equal(str_distance(STR("a"), STR("abcdefgh"), 4), 4);
}

TEST(test_str_icontains__finds_at_every_place)
{
    assert_true(str_icontains(STR("X-Api-Token"), STR("token")));
    assert_true(str_icontains(STR("TOKENS"), STR("token")));
    assert_false(str_icontains(STR("toke"), STR("token")));
    assert_true(str_icontains(STR(""), STR("")));
}

TEST(test_str_cut__keeps_whole_characters)
{
    assert_str(str_cut(STR("abc"), 3), "abc");
    assert_str(str_cut(STR("abcd"), 3), "abc");
    assert_str(str_cut(STR("ab\xc3\xa9"), 3), "ab");
    assert_str(str_cut(STR("ab\xc3\xa9z"), 4), "ab\xc3\xa9");
    assert_str(str_cut(STR("\xf0\x9f\x94\x8d"), 3), "");
    assert_null(str_cut(STR_NONE, 3).p);
}
