/* SPDX-License-Identifier: Apache-2.0 */
/* Time.  Wall time is for logs and display, monotonic time for every wait, and life time for stored
 * times that are compared later, such as last use and expiry.  Tests control time with
 * clock_set_fake().  Callable from any thread. */
#ifndef HOLDFAST_BASE_CLOCK_H
#define HOLDFAST_BASE_CLOCK_H

#include "base/str.h"

int64_t clock_wall_ms(void); /* since 1970, UTC */
int64_t clock_wall_us(void);
int64_t clock_mono_ms(void); /* CLOCK_BOOTTIME: counts through suspend */
int64_t clock_mono_us(void);

/* Milliseconds since 1970, like the wall clock, but advanced by the monotonic clock alone, so that
 * setting the wall clock neither ends every session nor makes one immortal.  While the two differ
 * by at most a minute, life time is slewed towards the wall clock by at most 5 s per minute (and so
 * may step back by less than 0.1 s).  If they differ by more, life time is not slewed: a log line
 * reports each such jump once, and the gauge holdfast_clock_jump_seconds shows how far the wall
 * clock is ahead. */
int64_t clock_life_ms(void);
/* Converts a wall clock timestamp to life time: subtracts the current jump; the result is never in
 * the future. */
int64_t clock_life_of_wall(int64_t wall_ms);
/* Continues the life time that a process of this boot last saved in `path`.  After another boot, or
 * without the file, life time starts at the wall clock.  Call it before the first
 * clock_life_ms(). */
void clock_life_continue(const char *path);
/* Saves the offset of life time if it has changed since.  Call it now and then, from one thread. */
void clock_life_keep(void);

void clock_set_fake(int64_t wall_ms, int64_t mono_ms); /* tests: freeze both */
void clock_advance_fake(int64_t ms);
void clock_jump_fake(int64_t wall_delta_ms); /* simulates setting the wall clock */
void clock_set_real(void);
#define CLOCK_TEXT 25 /* "2026-11-15T09:02:03.456Z" + NUL */
void clock_format(int64_t wall_ms, char ret_text[CLOCK_TEXT]);
#define CLOCK_LOCAL_TEXT 9                                                 /* "09:02:03" + NUL */
void clock_format_local(int64_t wall_ms, char ret_text[CLOCK_LOCAL_TEXT]); /* in the zone of TZ */
/* Reads what clock_format() writes; false on anything else. */
must_check bool clock_parse(struct str text, int64_t *ret_wall_ms);
/* "30m", "24h", "1h30m", "1.5h", "500ms", "90" (seconds), "7d"; false on anything else.  Fractions
 * of a millisecond are dropped. */
must_check bool clock_parse_duration(struct str s, int64_t *ret_ms);

#endif
