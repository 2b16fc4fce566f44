/* SPDX-License-Identifier: Apache-2.0 */
/* Time.  Wall time is for what is logged and shown, monotonic time for every wait, life time for
 * what is stored and compared later: when something was used, when it ends.  Tests turn the hands
 * with clock_set_fake().  Callable from any thread. */
#ifndef HOLDFAST_BASE_CLOCK_H
#define HOLDFAST_BASE_CLOCK_H

#include "base/str.h"

int64_t clock_wall_ms(void); /* since 1970, UTC */
int64_t clock_mono_ms(void); /* CLOCK_BOOTTIME: counts through suspend */
int64_t clock_mono_us(void);

/* Milliseconds since 1970 like the wall clock's, but moved on by the monotonic clock alone, so that
 * nobody who sets the clock ends every session or makes one immortal.  While the two differ by at
 * most a minute it is led towards the wall clock, by at most 5 s per minute (and so may step back
 * by less than 0.1 s); when they differ by more it stays, says so once per jump, and the gauge
 * holdfast_clock_jump_seconds tells by how much the wall clock is ahead. */
int64_t clock_life_ms(void);
/* The life time of something that the wall clock stamped: what a jump put into it is taken out, and
 * it is never in the future. */
int64_t clock_life_of_wall(int64_t wall_ms);
/* Life time goes on where it was when a process of this boot last kept it in `path`; of another
 * boot, or without such a file, it begins at the wall clock.  Before the first clock_life_ms(). */
void clock_life_continue(const char *path);
/* Writes it down where it has been led elsewhere since.  Now and then, from one thread. */
void clock_life_keep(void);

void clock_set_fake(int64_t wall_ms, int64_t mono_ms); /* tests: freeze both */
void clock_advance_fake(int64_t ms);
void clock_jump_fake(int64_t wall_delta_ms); /* somebody sets the wall clock */
void clock_set_real(void);
#define CLOCK_TEXT 25 /* "2026-11-15T09:02:03.456Z" + NUL */
void clock_format(int64_t wall_ms, char ret_text[CLOCK_TEXT]);
/* "30m", "24h", "1h30m", "1.5h", "500ms", "90" (seconds), "7d"; false on anything else.  What is
 * less than a millisecond is dropped. */
must_check bool clock_parse_duration(struct str s, int64_t *ret_ms);

#endif
