/* SPDX-License-Identifier: Apache-2.0 */
/* The format of log lines; log.c decides where they go. */
#ifndef HOLDFAST_BASE_LOG_TEXT_H
#define HOLDFAST_BASE_LOG_TEXT_H

#include "base/buf.h"
#include "base/log.h"

/* Longest line, so that a write to a pipe is atomic (PIPE_BUF). */
#define LOG_LINE_LONGEST 4096

/* Appends one line with its newline, at most LOG_LINE_LONGEST bytes: values that do not fit are cut
 * and fields that do not fit are left out. */
void log_text_json(struct buf *out, enum log_level level, int64_t wall_ms, const char *message,
                   const struct log_field *fields, size_t n);
/* A sentence for people: local time, level, message, the reason (`why`, `warning`, `note`), then the
 * other fields.  `colour`: the level in colour, for a terminal. */
void log_text_human(struct buf *out, enum log_level level, int64_t wall_ms, const char *message,
                    const struct log_field *fields, size_t n, bool colour);
/* For the journal of systemd: begins with the priority ("<3>"), without a time, which the journal
 * has itself. */
void log_text_journal(struct buf *out, enum log_level level, const char *message,
                      const struct log_field *fields, size_t n);
/* Whether values under this key are never shown. */
bool log_key_is_secret(const char *key);

#endif
