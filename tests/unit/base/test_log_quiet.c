/* SPDX-License-Identifier: Apache-2.0 */
/* A line that is repeated is written once, then counted. */
#include "test.h"

#include "base/clock.h"
#include "base/log_quiet.h"

TEST(test_log_quiet__first_line_passes_and_the_next_after_a_while_tells_the_count)
{
    struct log_quiet q = {0};
    uint64_t held_back = 7;
    clock_set_fake(1000, 1000);
    assert_true(log_quiet_passes(&q, &held_back));
    assert_int_equal(held_back, 0);
    for (int i = 0; i < 500; i++)
        assert_false(log_quiet_passes(&q, &held_back));
    clock_advance_fake(LOG_QUIET_MS - 1);
    assert_false(log_quiet_passes(&q, &held_back));
    clock_advance_fake(1);
    assert_true(log_quiet_passes(&q, &held_back));
    assert_int_equal(held_back, 501);
    assert_false(log_quiet_passes(&q, &held_back));
    clock_set_real();
}
