/* SPDX-License-Identifier: Apache-2.0 */
/* Where an old_string stands. */
#include "docs/critic/critic.h"
#include "test.h"

static void finds(const char *text, const char *needle, size_t count, size_t at, size_t n)
{
    size_t got_at, got_n, got_count;

    critic_find(str_of(text), str_of(needle), &got_at, &got_n, &got_count);
    assert_int_equal(got_count, count);
    assert_int_equal(got_at, at);
    assert_int_equal(got_n, n);
}

TEST(test_find__exact_places_are_counted_overlapping_ones_too)
{
    finds("abcabc", "bc", 2, 1, 2);
    finds("aaaa", "aaa", 2, 0, 3);
    finds("ababab", "abab", 2, 0, 4);
    finds("abc", "x", 0, 0, 0);
    finds("ab", "abc", 0, 0, 0);
    finds("abc", "", 0, 0, 0);
    finds("", "a", 0, 0, 0);
}

TEST(test_find__curly_quotes_stand_for_straight_ones_when_nothing_is_exact)
{
    finds("say \xe2\x80\x9chi\xe2\x80\x9d now", "\"hi\"", 1, 4, 8);
    finds("say \"hi\" now", "\xe2\x80\x9chi\xe2\x80\x9d", 1, 4, 4);
    finds("it\xe2\x80\x99s", "it's", 1, 0, 6);
    finds("it\xe2\x80\x99s it's", "it's", 1, 7, 4);
    finds("it\xe2\x80\x99s it\xe2\x80\x98s", "it's", 2, 0, 6);
    finds("a\xe2\x80\x94"
          "b",
          "a-b", 0, 0, 0);
    finds("x\xe2\x80", "\xe2\x80", 1, 1, 2);
}

TEST(test_find__line_ends_stand_for_each_other_when_nothing_is_exact)
{
    finds("one\r\ntwo\r\n", "one\ntwo", 1, 0, 8);
    finds("a\r\none\r\ntwo\r\n", "\none\ntwo\n", 1, 1, 12);
    finds("one\ntwo", "one\r\ntwo", 1, 0, 7);
    finds("a\nb\r\na\nb", "a\nb", 2, 0, 3);
    finds("a\r\nb \xe2\x80\x99 a\r\nb", "a\nb", 2, 0, 4);
    finds("a\rb", "a\nb", 0, 0, 0);
}

TEST(test_find__hostile_needles_take_linear_time)
{
    static char text[1 << 20], needle[1 << 19];
    size_t at, n, count;

    memset(text, 'a', sizeof text);
    memset(needle, 'a', sizeof needle);
    critic_find(str_n(text, sizeof text), str_n(needle, sizeof needle), &at, &n, &count);
    assert_int_equal(count, sizeof text - sizeof needle + 1);
}
