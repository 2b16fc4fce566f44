/* SPDX-License-Identifier: Apache-2.0 */
/* How the loop knows whether what it has read of a session is still so.
 *
 * Whoever hands a change of a session to the write lane touches its names here.  A row that was
 * read is fresh as long as its name's stamp is the one it was read under.  A change that is an
 * event reaches the row only with the fold: who reads after it first waits for a fold that was
 * asked for later than the change was handed in.  Names share a bounded table, so two may be taken
 * for one another; that costs a read and is never wrong.  Loop thread only. */
#ifndef HOLDFAST_SESSION_FRESH_H
#define HOLDFAST_SESSION_FRESH_H

#include "io/deadline.h"
#include "store/lanes.h"

/* A read waits no longer than this for the fold, and then shows what there is. */
#define FRESH_WAIT_MS 1000

struct fresh;
struct fresh *fresh_new(struct loop *loop, struct lanes *lanes) must_check;
void fresh_free(struct fresh *f); /* after lanes_free; NULL is fine */

/* Whose session a name means.  A touch is made for its owner; who waits for it is that owner, or,
 * with `owner` absent, somebody who reaches the whole tenant.  Nobody waits for another's: the wait
 * alone would tell that the session exists. */
struct fresh_whose {
    struct str tenant, owner;
};
/* Where a name's touches are kept, for the whole tenant and for its owner: worked out once by those
 * who touch it with every call. */
struct fresh_name {
    uint32_t wide, own;
};
struct fresh_name fresh_name_of(struct fresh_whose whose, struct str name);
/* `by_event`: the change is in an event, and in the row once that is folded. */
void fresh_touch(struct fresh *f, struct fresh_name name, bool by_event);
uint64_t fresh_stamp(struct fresh *f, struct str tenant, struct str name);
/* Moves a mark to now.  False: it is there already, for nobody has taken a stamp or asked for a
 * fold since, so what was touched by an event then need not be touched again.  A new mark is 0. */
bool fresh_mark_move(const struct fresh *f, uint64_t *mark);

struct fold_wait {
    struct list node;
    struct deadline late;
    uint64_t epoch;
    void (*done)(struct fold_wait *w);
};
/* true: every event of this name (absent: of any at all) is folded.  false: `done` comes from the
 * loop when it is, or when that took too long. */
must_check bool fresh_await(struct fresh *f, struct fold_wait *w, struct fresh_whose whose,
                            struct str name);

#endif
