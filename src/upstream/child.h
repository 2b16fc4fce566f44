/* SPDX-License-Identifier: Apache-2.0 */
/* One stdio child: LF-terminated JSON lines both ways, stderr always drained into a bounded ring.
 * Knows framing and process life, nothing of JSON-RPC ids. */
#ifndef HOLDFAST_UPSTREAM_CHILD_H
#define HOLDFAST_UPSTREAM_CHILD_H

#include "base/str.h"
#include "upstream/keeper.h"

#include <sys/uio.h>

#define CHILD_MAX_LINE (4 * 1024 * 1024)
#define CHILD_MAX_QUEUE (1024 * 1024)
#define CHILD_STDERR_RING (64 * 1024)

struct child;
struct child_events {
    void (*on_line)(void *arg, struct str line); /* looks like JSON ('{' or '['); lives only for the call */
    /* Once, at the end: exited, failed to start, line too long, too many bad lines.  The child is
     * already being disposed of; the user calls child_free(). */
    void (*on_end)(void *arg, const struct error *why);
};
struct child *child_start(struct loop *loop, struct keeper *k, const struct server_config *server,
                          const struct child_events *events, void *arg) must_check;
/* One message without its LF.  Before the process is up it is queued.  false: the queue is full
 * (CHILD_MAX_QUEUE beyond the first message) or the child is ending. */
must_check bool child_write(struct child *c, const struct iovec *parts, int n);
/* Closes stdin; 5 s later SIGTERM, 5 s later SIGKILL to the group; on_end follows. */
void child_end(struct child *c);
void child_free(struct child *c); /* at any time; kills the group if it still lives; no more callbacks */
int child_pid(const struct child *c); /* 0 until started */
struct str child_stderr_tail(const struct child *c, size_t max); /* newest bytes; valid until the next turn */
uint64_t child_dropped_lines(const struct child *c); /* non-JSON stdout */
bool child_is_up(const struct child *c);

#endif
