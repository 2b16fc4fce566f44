/* SPDX-License-Identifier: Apache-2.0 */
/* Read-your-writes for sessions: a client that changed a session reads that change.
 *
 * The code that queues a change of a session on the write lane touches the session's names here.  A
 * cached row is up to date as long as its name still has the stamp under which the row was read.  A
 * change that is an event reaches the row only with the fold.  A read after such a change first
 * waits for a fold that was requested after the change was queued.  Names share a bounded table, so
 * two names may share a slot: that costs an extra read, but never returns stale data.  Loop thread
 * only. */
#ifndef HOLDFAST_SESSION_READ_YOUR_WRITES_H
#define HOLDFAST_SESSION_READ_YOUR_WRITES_H

#include "io/deadline.h"
#include "store/lanes.h"

/* A read waits at most this long for the fold, then shows the row as it is. */
#define READ_YOUR_WRITES_WAIT_MS 1000

struct read_your_writes;
struct read_your_writes *read_your_writes_new(struct loop *loop, struct lanes *lanes) must_check;
void read_your_writes_free(struct read_your_writes *f); /* after lanes_free; NULL is fine */

/* The owner of a session name.  A touch is made for the owner of the session.  The reads that wait
 * are those of this owner and, with `owner` absent, of principals that may see the whole tenant.  A
 * read does not wait for another owner's session: the wait alone would reveal that the session
 * exists. */
struct touch_scope {
    struct str tenant, owner;
};
/* The slots of a name: one for the tenant, one for the owner.  A session that is touched with every
 * call computes them once. */
struct touch_slots {
    uint32_t wide, own;
};
struct touch_slots touch_slots_of(struct touch_scope scope, struct str name);
/* `by_event`: the change is an event, and reaches the row with the fold. */
void read_your_writes_touch(struct read_your_writes *f, struct touch_slots name, bool by_event);
uint64_t read_your_writes_stamp(struct read_your_writes *f, struct str tenant, struct str name);
uint64_t read_your_writes_stamp_at(struct read_your_writes *f, struct touch_slots name);
/* Moves a mark to the current state.  Returns false when the mark was already current: no stamp was
 * taken and no fold requested since, so names touched by an event then need not be touched again.
 * A new mark is 0. */
bool read_your_writes_move_mark(const struct read_your_writes *f, uint64_t *mark);

struct fold_wait {
    struct list node;
    struct deadline late;
    uint64_t epoch;
    void (*done)(struct fold_wait *w);
};
/* Returns true when every event of this name (absent: of all names) is folded.  Returns false when
 * `done` will be called from the loop, after the fold or a timeout. */
must_check bool read_your_writes_await(struct read_your_writes *f, struct fold_wait *w,
                                       struct touch_scope scope, struct str name);

#endif
