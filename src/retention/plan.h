/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the removals of one run, slice by slice: reads some segments, decides about their events, and
 * fills a batch (removal.h).  Query lane.
 *
 * Bodies: of every event that is older than its tenant's `bodies`.
 *
 * Events: of every event that is older than `keep`, and not held, and whose execution goes whole: an
 * intent goes only with its outcome, and stays while it is open.  The last event of a writer stays, as
 * the end from which its chains are continued.  Each event is checked against its seal before it goes:
 * what was tampered with stays, as evidence, and stops the removal of that writer's events. */
#ifndef HOLDFAST_RETENTION_PLAN_H
#define HOLDFAST_RETENTION_PLAN_H

#include "audit/chain.h"
#include "retention/removal.h"
#include "retention/rules.h"

/* Method of the events that tell of removals. */
#define RETENTION_METHOD "audit/removed"

struct plan;
/* `c` is borrowed.  The rules are taken. */
struct plan *plan_new(struct chain *c, struct rules *rules) must_check;
void plan_free(struct plan *p);
/* First, once: reads what is held, what is open and how far everything is folded. */
must_check bool plan_begin(struct plan *p, struct store *store, struct error *err);
/* The next slice, in `mem`.  *ret_more: call again, after ret->ops was written, if there are more than
 * one.  If the write failed, the run is over.  ERR_CONFLICT: somebody else removed or held something;
 * the run is over. */
must_check bool plan_next(struct plan *p, struct store *store, struct arena *mem,
                          struct removal *ret, bool *ret_more, struct error *err);
/* After ret->ops was written. */
void plan_written(struct plan *p);
/* A tampered event that the plan met; NULL: none. */
const char *plan_complaint(const struct plan *p);

#endif
