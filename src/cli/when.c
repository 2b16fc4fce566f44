/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes times of people. */
#include "cli/when.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static struct tm parts_of(int64_t ms, bool utc)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm ret = {0};

    if (utc)
        gmtime_r(&seconds, &ret);
    else
        localtime_r(&seconds, &ret);
    return ret;
}

static int64_t ms_of(struct tm parts, bool utc)
{
    parts.tm_isdst = -1;
    return (int64_t)(utc ? timegm(&parts) : mktime(&parts)) * 1000;
}

const char *when_format(int64_t ms, int64_t now_ms, bool utc, char ret[WHEN_TEXT])
{
    struct tm then = parts_of(ms, utc), now = parts_of(now_ms, utc);
    bool is_today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;

    if (!strftime(ret, WHEN_TEXT, is_today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then))
        ret[0] = '\0';
    return ret;
}

/* The beginning of the day that is `back` days before now. */
static int64_t day_begin(int64_t now_ms, int back, bool utc)
{
    struct tm day = parts_of(now_ms, utc);

    day.tm_mday -= back;
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    return ms_of(day, utc);
}

/* Whether `parts` names a real time: mktime() would move 30 February to March. */
static bool to_ms(struct tm parts, bool utc, int64_t *ret_ms)
{
    int64_t ms = ms_of(parts, utc);
    struct tm back = parts_of(ms, utc);

    if (back.tm_year != parts.tm_year || back.tm_mon != parts.tm_mon ||
        back.tm_mday != parts.tm_mday || parts.tm_hour > 23 || parts.tm_min > 59 ||
        parts.tm_sec > 59)
        return false;
    *ret_ms = ms;
    return true;
}

static bool digits(struct str *s, size_t n, int *ret)
{
    uint64_t value;

    if (s->n < n || !str_to_u64(str_n(s->p, n), 9999, &value))
        return false;
    *s = str_n(s->p + n, s->n - n);
    *ret = (int)value;
    return true;
}

static bool mark(struct str *s, char c)
{
    if (!s->n || s->p[0] != c)
        return false;
    *s = str_n(s->p + 1, s->n - 1);
    return true;
}

static bool read_time(struct str *s, struct tm *ret)
{
    ret->tm_sec = 0;
    return digits(s, 2, &ret->tm_hour) && mark(s, ':') && digits(s, 2, &ret->tm_min) &&
           (!mark(s, ':') || digits(s, 2, &ret->tm_sec));
}

static bool read_date(struct str *s, struct tm *ret)
{
    if (!digits(s, 4, &ret->tm_year) || !mark(s, '-') || !digits(s, 2, &ret->tm_mon) ||
        !mark(s, '-') || !digits(s, 2, &ret->tm_mday))
        return false;
    ret->tm_year -= 1900;
    ret->tm_mon -= 1;
    return true;
}

static bool read_calendar(struct str text, int64_t now_ms, bool utc, int64_t *ret_ms)
{
    bool is_utc = utc || (text.n && text.p[text.n - 1] == 'Z');
    struct str rest = str_n(text.p, text.n - (text.n && text.p[text.n - 1] == 'Z'));
    struct tm parts = {0};

    if (str_find(rest, '-') == rest.n) {
        parts = parts_of(now_ms, is_utc);
        return read_time(&rest, &parts) && !rest.n && to_ms(parts, is_utc, ret_ms);
    }
    return read_date(&rest, &parts) &&
           (!rest.n || ((mark(&rest, ' ') || mark(&rest, 'T')) && read_time(&rest, &parts))) &&
           !rest.n && to_ms(parts, is_utc, ret_ms);
}

bool when_parse(struct str text, int64_t now_ms, bool utc, int64_t *ret_ms)
{
    int64_t ms;

    if (str_eq(text, STR("now")))
        *ret_ms = now_ms;
    else if (str_eq(text, STR("today")))
        *ret_ms = day_begin(now_ms, 0, utc);
    else if (str_eq(text, STR("yesterday")))
        *ret_ms = day_begin(now_ms, 1, utc);
    else if (clock_parse_duration(text, &ms))
        *ret_ms = now_ms - ms;
    else
        return read_calendar(text, now_ms, utc, ret_ms);
    return true;
}
