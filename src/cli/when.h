/* SPDX-License-Identifier: Apache-2.0 */
/* Times as people read and write them: in the zone of the machine (TZ), or in UTC. */
#ifndef HOLDFAST_CLI_WHEN_H
#define HOLDFAST_CLI_WHEN_H

#include "base/str.h"

#define WHEN_TEXT 24
/* "14:03:11" for a time of today, else "2026-11-17 14:03:11". */
const char *when_format(int64_t ms, int64_t now_ms, bool utc, char ret[WHEN_TEXT]);
/* Reads a duration before now (30m, 2d), a date (2026-11-17), a date and time ("2026-11-17 14:00"),
 * a time of today (14:00), now, today or yesterday; a day alone means its beginning.  A time that
 * ends with Z is in UTC.  false on anything else. */
must_check bool when_parse(struct str text, int64_t now_ms, bool utc, int64_t *ret_ms);

#endif
