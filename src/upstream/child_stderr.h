/* SPDX-License-Identifier: Apache-2.0 */
/* The stderr of a child: keeps the newest 64 KiB and logs lines at a bounded rate.  Everything is
 * read, so that a talkative child never blocks. */
#ifndef HOLDFAST_UPSTREAM_CHILD_STDERR_H
#define HOLDFAST_UPSTREAM_CHILD_STDERR_H

#include "base/str.h"
#include "io/loop.h"

struct child_stderr;
struct own_secrets;
struct stderr_log;
/* `server` is borrowed. */
struct child_stderr *child_stderr_new(struct loop *loop, const char *server) must_check;
void child_stderr_free(struct child_stderr *s);
/* Secrets of the child's session, redacted in logs and summaries; references are taken.  The
 * credential of a request is ignored. */
void child_stderr_set_secrets(struct child_stderr *s, const struct own_secrets *own);
/* Lines that are logged are also kept in `log`, as lines of this session (row id; absent: none).  A
 * reference is taken, and the session is copied. */
void child_stderr_set_log(struct child_stderr *s, struct stderr_log *log, struct str session);
void child_stderr_take(struct child_stderr *s, struct str bytes, int64_t now_ms);
void child_stderr_flush(struct child_stderr *s, int64_t now_ms); /* logs an unfinished line */
/* Valid until the next take. */
struct str child_stderr_newest(const struct child_stderr *s, size_t max);
/* The reason of the end, as far as the last lines show it: the first line that looks like an error
 * and the two after it, then the last line; else the last three.  Separated by " | ", escaped, cut
 * to `size`; "" when nothing was written. */
void child_stderr_summary(const struct child_stderr *s, char *ret_text, size_t size);
uint64_t child_stderr_logged(const struct child_stderr *s); /* lines, for tests */
uint64_t child_stderr_suppressed(const struct child_stderr *s);

#endif
