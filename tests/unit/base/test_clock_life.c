/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of lifetimes: what leads it, what does not, and what a restart leaves of it. */
#include "test.h"

#include "base/clock.h"
#include "base/metric.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define START INT64_C(1794733323456)
#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define YEAR (365 * 24 * HOUR)

static int64_t jump_gauge(void)
{
    struct metric *m = metric_register(METRIC_GAUGE, "holdfast_clock_jump_seconds", "", "", 1);
    return metric_value(metric_cell(m, NULL, 0));
}

/* As a running process looks at it: at least once a second. */
static void pass(int64_t ms)
{
    for (; ms >= 1000; ms -= 1000) {
        clock_advance_fake(1000);
        (void)clock_life_ms();
    }
    clock_advance_fake(ms);
}

TEST(test_clock_life__begins_at_the_wall_clock_and_follows_the_monotonic_one)
{
    clock_set_fake(START, 500);
    assert_int_equal(clock_life_ms(), START);
    pass(MINUTE);
    assert_int_equal(clock_life_ms(), START + MINUTE);
    clock_set_real();
    assert_true(llabs(clock_life_ms() - clock_wall_ms()) < 1000);
}

TEST(test_clock_life__stays_whoever_sets_the_wall_clock)
{
    static const int64_t jumps[] = {HOUR, -HOUR, YEAR, -YEAR, MINUTE + 1, -MINUTE - 1};

    for (size_t i = 0; i < countof(jumps); i++) {
        clock_set_fake(START, 0);
        assert_int_equal(clock_life_ms(), START);
        clock_jump_fake(jumps[i]);
        pass(10 * MINUTE);
        assert_int_equal(clock_life_ms(), START + 10 * MINUTE);
        assert_int_equal(jump_gauge(), jumps[i] / 1000);
        clock_jump_fake(-jumps[i]);
        pass(1000);
        assert_int_equal(jump_gauge(), 0);
    }
    clock_set_real();
}

TEST(test_clock_life__is_led_by_five_seconds_a_minute_when_a_minute_or_less_is_missing)
{
    static const int64_t signs[] = {1, -1};

    for (size_t i = 0; i < countof(signs); i++) {
        clock_set_fake(START, 0);
        (void)clock_life_ms();
        clock_jump_fake(signs[i] * MINUTE);
        pass(MINUTE);
        int64_t led = signs[i] * (clock_life_ms() - START - MINUTE);
        assert_true(led > 4900 && led <= 5000);
        pass(13 * MINUTE);
        assert_int_equal(clock_life_ms(), clock_wall_ms());
        assert_int_equal(jump_gauge(), 0);
    }
    clock_set_real();
}

TEST(test_clock_life__is_led_by_no_more_after_a_long_silence)
{
    clock_set_fake(START, 0);
    (void)clock_life_ms();
    clock_jump_fake(30000);
    clock_advance_fake(HOUR);
    assert_int_equal(clock_life_ms(), START + HOUR + 5000);
    clock_set_real();
}

TEST(test_clock_life__takes_the_wall_clock_when_it_was_never_set_before)
{
    clock_set_fake(1000, 0);
    assert_int_equal(clock_life_ms(), 1000);
    clock_jump_fake(START);
    pass(1000);
    assert_int_equal(clock_life_ms(), START + 2000);
    clock_set_real();
}

TEST(test_clock_life_of_wall__takes_a_jump_out_and_is_never_in_the_future)
{
    clock_set_fake(START, 0);
    (void)clock_life_ms();
    assert_int_equal(clock_life_of_wall(START - HOUR), START - HOUR);
    assert_int_equal(clock_life_of_wall(START + 1), START);
    clock_jump_fake(YEAR);
    assert_int_equal(clock_life_of_wall(START + YEAR), START);
    assert_int_equal(clock_life_of_wall(START + YEAR - 7), START - 7);
    clock_jump_fake(-2 * YEAR);
    assert_int_equal(clock_life_of_wall(START - YEAR), START);
    assert_int_equal(clock_life_of_wall(START), START); /* stamped before the jump */
    clock_set_real();
}

static void kept_file(char ret[64])
{
    snprintf(ret, 64, "/tmp/life-clock.%d", (int)getpid());
    unlink(ret);
}

TEST(test_clock_life_continue__goes_on_where_another_process_of_this_boot_was)
{
    char path[64];

    kept_file(path);
    clock_set_fake(START, 1000);
    clock_life_continue(path);
    clock_set_fake(START + YEAR, 61000); /* another process, a minute later */
    clock_life_continue(path);
    assert_int_equal(clock_life_ms(), START + MINUTE);
    assert_int_equal(jump_gauge(), (YEAR - MINUTE) / 1000);
    clock_set_real();
    unlink(path);
}

TEST(test_clock_life_continue__keeps_what_it_was_led_to)
{
    char path[64];

    kept_file(path);
    clock_set_fake(START, 0);
    clock_life_continue(path);
    clock_jump_fake(3000);
    pass(MINUTE);
    assert_int_equal(clock_life_ms(), START + MINUTE + 3000);
    clock_life_keep();
    clock_set_fake(START + HOUR + YEAR, HOUR);
    clock_life_continue(path);
    assert_int_equal(clock_life_ms(), START + HOUR + 3000);
    clock_set_real();
    unlink(path);
}

TEST(test_clock_life_continue__begins_at_the_wall_clock_after_a_reboot_or_with_a_broken_file)
{
    static const char *const texts[] = {"00000000-0000-0000-0000-000000000000 12345\n", "",
                                        "nonsense", "\n\n\n",
                                        "00000000-0000-0000-0000-000000000000"};
    char path[64];

    for (size_t i = 0; i < countof(texts); i++) {
        kept_file(path);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(texts[i], f);
        fclose(f);
        clock_set_fake(START, 7);
        clock_life_continue(path);
        assert_int_equal(clock_life_ms(), START);
    }
    clock_set_real();
    unlink(path);
}
