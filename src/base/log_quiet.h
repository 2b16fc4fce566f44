/* SPDX-License-Identifier: Apache-2.0 */
/* For log lines that one cause would repeat with every request: the first line is written, lines in
 * the next LOG_QUIET_MS are only counted, and the next line after that includes the count.
 *
 *   static struct log_quiet quiet;
 *   log_warn_quietly(&quiet, "the store refused a write", LZ("why", err.text)); */
#ifndef HOLDFAST_BASE_LOG_QUIET_H
#define HOLDFAST_BASE_LOG_QUIET_H

#include "base/log.h"

#include <stdatomic.h>

#define LOG_QUIET_MS 30000

/* Zero-initialised.  Any thread may use it. */
struct log_quiet {
    _Atomic int64_t until_ms; /* clock_mono_ms() */
    atomic_uint_fast64_t held_back;
};

/* Whether the line may be written; *ret_held_back counts the lines suppressed since the last one
 * written. */
must_check bool log_quiet_passes(struct log_quiet *q, uint64_t *ret_held_back);

#define log_warn_quietly(q, message, ...)                                                          \
    do {                                                                                           \
        uint64_t held_back_;                                                                       \
        if (log_quiet_passes((q), &held_back_))                                                    \
            log_warn(message, ##__VA_ARGS__, LI("held_back", held_back_));                         \
    } while (0)

#endif
