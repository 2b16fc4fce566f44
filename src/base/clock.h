/* SPDX-License-Identifier: Apache-2.0 */
/* Time.  Wall time is for what is stored and shown, monotonic time for every wait.  Tests turn the
 * hands with clock_set_fake().  Callable from any thread. */
#ifndef HOLDFAST_BASE_CLOCK_H
#define HOLDFAST_BASE_CLOCK_H

#include "base/str.h"

int64_t clock_wall_ms(void); /* since 1970, UTC */
int64_t clock_mono_ms(void); /* CLOCK_BOOTTIME: counts through suspend */
int64_t clock_mono_us(void);
void clock_set_fake(int64_t wall_ms, int64_t mono_ms); /* tests: freeze both */
void clock_advance_fake(int64_t ms);
void clock_set_real(void);
#define CLOCK_TEXT 25 /* "2026-11-15T09:02:03.456Z" + NUL */
void clock_format(int64_t wall_ms, char ret_text[CLOCK_TEXT]);
/* "30m", "24h", "1h30m", "500ms", "90" (seconds), "7d"; false on anything else. */
must_check bool clock_parse_duration(struct str s, int64_t *ret_ms);

#endif
