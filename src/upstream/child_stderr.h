/* SPDX-License-Identifier: Apache-2.0 */
/* What a child writes to stderr: the newest 64 KiB kept, its lines logged at a bounded rate.
 * Always taken, whatever it holds, so that a talkative child can never block on us. */
#ifndef HOLDFAST_UPSTREAM_CHILD_STDERR_H
#define HOLDFAST_UPSTREAM_CHILD_STDERR_H

#include "base/str.h"
#include "io/loop.h"

struct child_stderr;
struct known;
/* `server` is borrowed. */
struct child_stderr *child_stderr_new(struct loop *loop, const char *server) must_check;
void child_stderr_free(struct child_stderr *s);
/* Secrets of the child's session, taken out of what is logged and told; a reference is taken. */
void child_stderr_set_known(struct child_stderr *s, struct known *known);
void child_stderr_take(struct child_stderr *s, struct str bytes, int64_t now_ms);
void child_stderr_flush(struct child_stderr *s, int64_t now_ms); /* logs an unfinished line */
struct str child_stderr_newest(const struct child_stderr *s, size_t max); /* until the next take */
/* Why it ended, as far as its last lines tell: the first that looks like an error and the two that
 * follow it, then the last one; else the last three.  " | " between, escaped, cut to `size`; ""
 * when it wrote nothing. */
void child_stderr_summary(const struct child_stderr *s, char *ret_text, size_t size);
uint64_t child_stderr_logged(const struct child_stderr *s); /* lines, for tests */
uint64_t child_stderr_suppressed(const struct child_stderr *s);

#endif
