/* SPDX-License-Identifier: Apache-2.0 */
/* The newest stderr lines of one server, over all of its processes, in memory.  It has references
 * because a process that is ending may outlive its server.  Loop thread only. */
#ifndef HOLDFAST_UPSTREAM_STDERR_LOG_H
#define HOLDFAST_UPSTREAM_STDERR_LOG_H

#include "base/str.h"

#define STDERR_LOG_LINES 200
#define STDERR_LOG_BYTES (64u * 1024)

struct stderr_line {
    int64_t at_ms;      /* clock_wall_ms() */
    uint64_t number;    /* counts all lines of the server, from 1 */
    struct str session; /* row id of the session of the process; absent: not of one session */
    struct str text;    /* redacted, not escaped */
};

struct stderr_log;
struct stderr_log *stderr_log_new(void) must_check;
struct stderr_log *stderr_log_ref(struct stderr_log *log);
void stderr_log_unref(struct stderr_log *log); /* accepts NULL */
/* Copies the line.  The oldest lines are dropped beyond the limits. */
void stderr_log_add(struct stderr_log *log, int64_t at_ms, struct str session, struct str text);
/* Calls fn for the newest `max` lines with a number above `after`, oldest first. */
void stderr_log_each(const struct stderr_log *log, size_t max, uint64_t after,
                     void (*fn)(void *arg, const struct stderr_line *line), void *arg);

#endif
