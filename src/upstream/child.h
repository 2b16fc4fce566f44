/* SPDX-License-Identifier: Apache-2.0 */
/* One stdio child: LF-terminated JSON lines both ways, stderr always drained into a bounded ring.
 * Handles framing and the process, not JSON-RPC ids. */
#ifndef HOLDFAST_UPSTREAM_CHILD_H
#define HOLDFAST_UPSTREAM_CHILD_H

#include "base/str.h"
#include "upstream/keeper.h"

#include <sys/uio.h>

#define CHILD_MAX_LINE (4 * 1024 * 1024)
#define CHILD_MAX_QUEUE (1024 * 1024)
#define CHILD_STDERR_RING (64 * 1024)
#define CHILD_MAX_BAD_LINES 100  /* in a row, on stdout */
#define CHILD_NONSENSE_MS 5000   /* for a JSON line to come after a first line that is not JSON */
#define CHILD_LOG_LINES_PER_S 20 /* lines of stderr; further lines are counted */

struct child;
struct own_secrets;
struct child_events {
    /* The line looks like JSON ('{' or '['); it lives only for the call. */
    void (*on_line)(void *arg, struct str line);
    /* Called once, at the end: exited, failed to start, line too long, too many bad lines.  The
     * child is already being disposed of; the user calls child_free(). */
    void (*on_end)(void *arg, const struct error *why);
};
struct child *child_start(struct loop *loop, struct keeper *k, const struct server_config *server,
                          const struct child_events *events, void *arg) must_check;
/* Queues one message: valid JSON without its LF; line ends between its tokens become blanks.  It
 * may be called before the process is up.  False, and nothing of it is sent: the queue is full
 * (CHILD_MAX_QUEUE beyond the first message, LFs counted), the message is longer than two
 * CHILD_MAX_LINE, or the child is ending. */
must_check bool child_write(struct child *c, const struct iovec *parts, int n);
/* Closes stdin once the queue is written; 5 s later SIGTERM, 5 s later SIGKILL to the group.
 * on_end follows, with ERR_CANCELLED.  Lines still come until then. */
void child_end(struct child *c);
/* At any time.  Kills the group if it is still alive.  No callback follows.  Accepts NULL. */
void child_free(struct child *c);
/* child_free() for a healthy child: no callback follows, and it ends as by child_end() while its
 * pipes are still read.  keeper_stop() kills the rest. */
void child_retire(struct child *c);
int child_pid(const struct child *c); /* 0 until started */
/* Secrets of its session, which must be redacted in its stderr; references are taken. */
void child_set_secrets(struct child *c, const struct own_secrets *own);
/* Its stderr lines are also kept in `log` (child_stderr.h). */
struct stderr_log;
void child_set_log(struct child *c, struct stderr_log *log, struct str session);
/* The newest bytes; valid until the next turn. */
struct str child_stderr_tail(const struct child *c, size_t max);
/* For tests: the times from child_end() to each step. */
void child_set_end_steps(struct child *c, int64_t term_ms, int64_t kill_ms);
uint64_t child_dropped_lines(const struct child *c); /* lines of stdout that are not JSON */
bool child_is_up(const struct child *c);

#endif
