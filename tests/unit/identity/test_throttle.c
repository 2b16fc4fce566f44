/* SPDX-License-Identifier: Apache-2.0 */
/* Failures by address: so many at once, so many in a second, and nobody else held up. */
#include "test.h"

#include "identity/throttle.h"

#include <stdio.h>

static void fail_times(struct throttle *t, const char *address, int n, int64_t now_ms)
{
    for (int i = 0; i < n; i++)
        throttle_failed(t, str_of(address), now_ms);
}

TEST(test_throttle__allows_as_many_at_once_and_not_one_more)
{
    struct throttle *t = throttle_new();
    assert_true(throttle_allows(t, STR("10.0.0.1"), 0));
    fail_times(t, "10.0.0.1", THROTTLE_AT_ONCE - 1, 0);
    assert_true(throttle_allows(t, STR("10.0.0.1"), 0));
    fail_times(t, "10.0.0.1", 1, 0);
    assert_false(throttle_allows(t, STR("10.0.0.1"), 0));
    assert_true(throttle_allows(t, STR("10.0.0.2"), 0));
    assert_true(throttle_allows(t, STR_NONE, 0));
    throttle_free(t);
}

TEST(test_throttle__goes_on_at_its_rate_and_fills_up_again)
{
    struct throttle *t = throttle_new();
    fail_times(t, "10.0.0.1", 10 * THROTTLE_AT_ONCE, 1000);
    assert_false(throttle_allows(t, STR("10.0.0.1"), 1000 + 1000 / THROTTLE_PER_S - 1));
    assert_true(throttle_allows(t, STR("10.0.0.1"), 1000 + 1000 / THROTTLE_PER_S));
    fail_times(t, "10.0.0.1", 1, 1100);
    assert_false(throttle_allows(t, STR("10.0.0.1"), 1100));
    assert_false(
        throttle_allows(t, STR("10.0.0.1"), 1000)); /* a clock that steps back gives nothing */
    assert_true(throttle_allows(t, STR("10.0.0.1"), INT64_C(1) << 60));
    fail_times(t, "10.0.0.1", THROTTLE_AT_ONCE - 1, INT64_C(1) << 60);
    assert_true(throttle_allows(t, STR("10.0.0.1"), INT64_C(1) << 60));
    throttle_free(t);
}

TEST(test_throttle__takes_a_network_of_64_bits_for_one)
{
    struct throttle *t = throttle_new();
    fail_times(t, "2001:db8:0:1::1", THROTTLE_AT_ONCE, 0);
    assert_false(throttle_allows(t, STR("2001:db8:0:1:ffff::2"), 0));
    assert_true(throttle_allows(t, STR("2001:db8:0:2::1"), 0));
    throttle_free(t);
}

TEST(test_throttle__forgets_whom_it_has_not_heard_of_for_longest)
{
    struct throttle *t = throttle_new();
    char address[32];
    fail_times(t, "10.0.0.1", THROTTLE_AT_ONCE, 0);
    fail_times(t, "10.0.0.2", THROTTLE_AT_ONCE, 0);
    for (int i = 0; i < THROTTLE_ADDRESSES - 2; i++) {
        snprintf(address, sizeof(address), "10.%d.%d.9", 1 + i / 250, i % 250);
        throttle_failed(t, str_of(address), 0);
    }
    assert_false(throttle_allows(t, STR("10.0.0.1"), 0)); /* just as many as are remembered */
    throttle_failed(t, STR("10.0.0.1"), 0);
    throttle_failed(t, STR("192.0.2.1"), 0);
    assert_false(throttle_allows(t, STR("10.0.0.1"), 0));
    assert_true(throttle_allows(t, STR("10.0.0.2"), 0));
    throttle_free(t);
}
