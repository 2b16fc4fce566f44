/* SPDX-License-Identifier: Apache-2.0 */
/* Time: fake hands, text form, durations. */
#include "test.h"

#include "base/clock.h"

TEST(test_clock__fake_hands_move_only_when_turned)
{
    clock_set_fake(1000, 50);
    assert_int_equal(clock_wall_ms(), 1000);
    assert_int_equal(clock_mono_ms(), 50);
    assert_int_equal(clock_mono_us(), 50000);
    clock_advance_fake(25);
    assert_int_equal(clock_wall_ms(), 1025);
    assert_int_equal(clock_mono_ms(), 75);
    clock_set_real();
    assert_true(clock_wall_ms() > 1600000000000);
}

TEST(test_clock_mono__does_not_go_back)
{
    int64_t before = clock_mono_us();

    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_mono_us();
        assert_true(now >= before);
        before = now;
    }
}

TEST(test_clock_format__is_iso_utc_with_milliseconds)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1794733323456, "2026-11-15T09:02:03.456Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {253402300800000, "9999-12-31T23:59:59.999Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z"},
        {-1, "1970-01-01T00:00:00.000Z"},
    };
    char text[CLOCK_TEXT];

    for (size_t i = 0; i < countof(rows); i++) {
        clock_format(rows[i].ms, text);
        assert_string_equal(text, rows[i].text);
    }
}

TEST(test_clock_parse__reads_what_format_writes_and_nothing_else)
{
    static const char *const wrong[] = {"2026-11-15T09:02:03.456",
                                        "2026-11-15 09:02:03.456Z",
                                        "2026-02-30T09:02:03.456Z",
                                        "2026-11-15T24:02:03.456Z",
                                        "2026-11-15T09:02:03.4561",
                                        "2026-11-15T 9:02:03.456Z",
                                        ""};
    static const int64_t times[] = {0, 1, 1700000000123, 253402300799999};
    char text[CLOCK_TEXT];
    int64_t ms = 7;

    for (size_t i = 0; i < countof(times); i++) {
        clock_format(times[i], text);
        assert_true(clock_parse(str_of(text), &ms));
        assert_int_equal(ms, times[i]);
    }
    for (size_t i = 0; i < countof(wrong); i++)
        assert_false(clock_parse(str_of(wrong[i]), &ms));
    assert_int_equal(ms, times[countof(times) - 1]);
}

TEST(test_clock_parse_duration__reads_what_people_write)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"0", 0},
        {"90", 90000},
        {"30m", 1800000},
        {"24h", 86400000},
        {"500ms", 500},
        {"1h30m", 5400000},
        {"7d", 604800000},
        {"1s500ms", 1500},
        {"1d2h3m4s5ms", 93784005},
        {"36525d", 3155760000000},
        {"1.5h", 5400000},
        {"0.25s", 250},
        {"1.5h0.5m", 5430000},
        {"1.9ms", 1},
        {"0.9999999999d", 86399999},
    };
    int64_t ms;

    for (size_t i = 0; i < countof(rows); i++) {
        assert_true(clock_parse_duration(str_of(rows[i].text), &ms));
        assert_int_equal(ms, rows[i].ms);
    }
}

TEST(test_clock_parse_duration__refuses_the_rest_and_leaves_the_result)
{
    static const char *const bad[] = {"",
                                      "m",
                                      "1x",
                                      "-1s",
                                      "1.5",
                                      "1.h",
                                      ".5h",
                                      "1..5h",
                                      "1.5.5h",
                                      "36525.1d",
                                      " 1s",
                                      "1s ",
                                      "1m1h",
                                      "1h1h",
                                      "1h30",
                                      "1 h",
                                      "1H",
                                      "36526d",
                                      "36525d1ms",
                                      "99999999999999999999s",
                                      "99999999999999999999"};
    int64_t ms = 77;

    for (size_t i = 0; i < countof(bad); i++)
        assert_false(clock_parse_duration(str_of(bad[i]), &ms));
    assert_int_equal(ms, 77);
}
