/* SPDX-License-Identifier: Apache-2.0 */
/* Times that people write. */
#include "test.h"

#include "base/clock.h"
#include "cli/when.h"

#include <stdlib.h>
#include <time.h>

#define NOW INT64_C(1763197323456) /* 2025-11-15 09:02:03 UTC */

static void use_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static void expect(const char *text, bool utc, const char *wanted)
{
    char got[CLOCK_TEXT];
    int64_t ms = 0;
    assert_true(when_parse(str_of(text), NOW, utc, &ms));
    clock_format(ms, got);
    assert_string_equal(got, wanted);
}

TEST(test_when__reads_durations_days_and_times_in_the_local_zone)
{
    use_zone("XXX-2"); /* two hours east of UTC */
    expect("30m", false, "2025-11-15T08:32:03.456Z");
    expect("2d", false, "2025-11-13T09:02:03.456Z");
    expect("today", false, "2025-11-14T22:00:00.000Z");
    expect("yesterday", false, "2025-11-13T22:00:00.000Z");
    expect("yesterday", true, "2025-11-14T00:00:00.000Z");
    expect("2025-11-13", false, "2025-11-12T22:00:00.000Z");
    expect("2025-11-13 14:00", false, "2025-11-13T12:00:00.000Z");
    expect("2025-11-13T14:00:05Z", false, "2025-11-13T14:00:05.000Z");
    expect("08:30", false, "2025-11-15T06:30:00.000Z");
}

TEST(test_when__refuses_what_is_no_time)
{
    static const char *const bad[] = {
        "",      "soon",  "2025-02-30",  "2025-13-01",  "2025-11-1",
        "25:00", "12:60", "2025-11-13 ", "2025-11-13x", "2025-11-13 14"};
    int64_t ms;
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(when_parse(str_of(bad[i]), NOW, true, &ms));
}

TEST(test_when__times_of_today_have_no_date)
{
    char text[WHEN_TEXT];
    use_zone("XXX-2");
    assert_string_equal(when_format(NOW, NOW, false, text), "11:02:03");
    assert_string_equal(when_format(NOW, NOW, true, text), "09:02:03");
    assert_string_equal(when_format(NOW - 86400000, NOW, false, text), "2025-11-14 11:02:03");
}
