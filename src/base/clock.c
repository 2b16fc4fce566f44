/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the machine and their text forms.  The fake times are atomics, so a test may change
 * them while other threads read.  In a build with faults, two files shift the clocks of a running
 * process: HOLDFAST_FAULT_CLOCK names a file with the seconds to add to the wall clock, and
 * HOLDFAST_FAULT_SLEEP names a file with the seconds that the machine has slept, which are added to
 * all clocks. */
#include "base/clock.h"
#include "base/clock_impl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static _Atomic bool fake;
static _Atomic int64_t fake_wall_ms, fake_mono_ms;

static int64_t read_us(clockid_t id)
{
    struct timespec now;

    if (clock_gettime(id, &now) != 0)
        die("clock_gettime does not work here; a Linux kernel of 2.6.39 or later is needed");
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#ifdef HOLDFAST_FAULTS
#define SHIFT_EVERY_US 20000

struct shift {
    const char *variable;
    _Atomic int64_t ms, next_us;
};
static struct shift set = {.variable = "HOLDFAST_FAULT_CLOCK"};
static struct shift slept = {.variable = "HOLDFAST_FAULT_SLEEP"};

static int64_t shift_ms(struct shift *s)
{
    const char *path = getenv(s->variable);
    int64_t now_us = path ? read_us(CLOCK_BOOTTIME) : 0;
    long long seconds;
    FILE *f;

    if (!path || now_us < s->next_us)
        return s->ms;
    s->next_us = now_us + SHIFT_EVERY_US;
    f = fopen(path, "re");
    if (f && fscanf(f, "%lld", &seconds) == 1)
        s->ms = seconds * 1000;
    if (f)
        fclose(f);
    return s->ms;
}
#else
#define shift_ms(s) 0
#endif

int64_t clock_wall_ms(void)
{
    return unlikely(fake) ? fake_wall_ms : clock_wall_us() / 1000;
}

int64_t clock_wall_us(void)
{
    return unlikely(fake) ? fake_wall_ms * 1000
                          : read_us(CLOCK_REALTIME) + (shift_ms(&set) + shift_ms(&slept)) * 1000;
}

int64_t clock_mono_ms(void)
{
    return clock_mono_us() / 1000;
}

int64_t clock_mono_us(void)
{
    return unlikely(fake) ? fake_mono_ms * 1000 : read_us(CLOCK_BOOTTIME) + shift_ms(&slept) * 1000;
}

void clock_set_fake(int64_t wall_ms, int64_t mono_ms)
{
    fake_wall_ms = wall_ms;
    fake_mono_ms = mono_ms;
    fake = true;
    clock_life_begin();
}

void clock_advance_fake(int64_t ms)
{
    fake_wall_ms += ms;
    fake_mono_ms += ms;
}

void clock_jump_fake(int64_t wall_delta_ms)
{
    fake_wall_ms += wall_delta_ms;
}

void clock_set_real(void)
{
    fake = false;
    clock_life_begin();
}

#define LAST_MS 253402300799999 /* 9999-12-31T23:59:59.999Z, the last time with a four-digit year */

static char *put_digits(char *to, unsigned number, unsigned digits, char after)
{
    for (unsigned i = digits; i > 0; i--) {
        to[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    to[digits] = after;
    return to + digits + 1;
}

void clock_format(int64_t wall_ms, char ret_text[CLOCK_TEXT])
{
    int64_t ms = wall_ms < 0 ? 0 : wall_ms > LAST_MS ? LAST_MS : wall_ms;
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char *at = ret_text;

    gmtime_r(&seconds, &tm);
    at = put_digits(at, (unsigned)tm.tm_year + 1900, 4, '-');
    at = put_digits(at, (unsigned)tm.tm_mon + 1, 2, '-');
    at = put_digits(at, (unsigned)tm.tm_mday, 2, 'T');
    at = put_digits(at, (unsigned)tm.tm_hour, 2, ':');
    at = put_digits(at, (unsigned)tm.tm_min, 2, ':');
    at = put_digits(at, (unsigned)tm.tm_sec, 2, '.');
    at = put_digits(at, (unsigned)(ms % 1000), 3, 'Z');
    *at = '\0';
}

void clock_format_local(int64_t wall_ms, char ret_text[CLOCK_LOCAL_TEXT])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm at;

    if (!localtime_r(&seconds, &at) || !strftime(ret_text, CLOCK_LOCAL_TEXT, "%H:%M:%S", &at))
        memcpy(ret_text, "--:--:--", CLOCK_LOCAL_TEXT);
}

bool clock_parse(struct str text, int64_t *ret_wall_ms)
{
    char copy[CLOCK_TEXT], again[CLOCK_TEXT];
    struct tm tm = {0};
    unsigned ms = 0;

    if (text.n != CLOCK_TEXT - 1)
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if (sscanf(copy, "%4d-%2d-%2dT%2d:%2d:%2d.%3uZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms) != 7)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t wall_ms = (int64_t)timegm(&tm) * 1000 + ms;
    clock_format(wall_ms, again);
    if (strcmp(copy, again) != 0) /* a date that does not exist, or signs and blanks */
        return false;
    *ret_wall_ms = wall_ms;
    return true;
}

static const struct {
    const char *name;
    int64_t ms;
} units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};
#define LONGEST_MS (36525LL * 86400000) /* a hundred years: a longer duration is a typing error */

/* Finds the unit, which must be smaller than the previous unit: "30m1h" is an error. */
static bool unit_of(struct str name, size_t *at, int64_t *ret_ms)
{
    for (size_t i = *at; i < countof(units); i++) {
        if (!str_eq(name, str_of(units[i].name)))
            continue;
        *at = i + 1;
        *ret_ms = units[i].ms;
        return true;
    }
    return false;
}

static size_t span(struct str s, bool digits)
{
    size_t n = 0;

    while (n < s.n && (s.p[n] >= '0' && s.p[n] <= '9') == digits)
        n++;
    return n;
}

/* Reads ".5" in front of a unit and returns the fraction in billionths.  Nine digits are enough for
 * any unit; further digits are ignored. */
static bool take_fraction(struct str *s, int64_t *ret_billionths)
{
    int64_t part = 0, scale = 100000000;

    *ret_billionths = 0;
    if (s->n == 0 || s->p[0] != '.')
        return true;
    size_t n = span(str_n(s->p + 1, s->n - 1), true);
    for (size_t i = 1; i <= n; i++, scale /= 10)
        part += (s->p[i] - '0') * scale;
    *s = str_n(s->p + 1 + n, s->n - 1 - n);
    *ret_billionths = part;
    return n > 0;
}

bool clock_parse_duration(struct str s, int64_t *ret_ms)
{
    int64_t total = 0, unit_ms, part;
    uint64_t count;
    size_t n, next_unit = 0;

    if (str_to_u64(s, LONGEST_MS / 1000, &count)) {
        *ret_ms = (int64_t)count * 1000;
        return true;
    }
    if (s.n == 0)
        return false;
    while (s.n > 0) {
        n = span(s, true);
        if (!str_to_u64(str_n(s.p, n), LONGEST_MS, &count))
            return false;
        s = str_n(s.p + n, s.n - n);
        if (!take_fraction(&s, &part))
            return false;
        n = span(s, false);
        if (!unit_of(str_n(s.p, n), &next_unit, &unit_ms))
            return false;
        part = part * unit_ms / 1000000000;
        if ((int64_t)count > (LONGEST_MS - total - part) / unit_ms)
            return false;
        total += (int64_t)count * unit_ms + part;
        s = str_n(s.p + n, s.n - n);
    }
    *ret_ms = total;
    return true;
}
