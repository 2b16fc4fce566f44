/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: removes what the rules of `audit` in the configuration no longer keep.
 *
 *   timer → query lane: plan a slice (plan.h) → write lane: commit it → pause → the next slice …
 *         → an event in each tenant tells what was removed → unused pages of the file are given back
 *
 * A slice is small, and the next one waits while calls wait for the write lane.  Several nodes may run
 * it on one store: a slice that was planned before another one was committed is refused and planned
 * anew.  All functions are on the loop thread. */
#ifndef HOLDFAST_RETENTION_RETENTION_H
#define HOLDFAST_RETENTION_RETENTION_H

#include "config/config.h"
#include "store/lanes.h"

struct audit;
struct retention;
struct retention *retention_new(struct loop *loop, struct lanes *lanes, struct audit *audit,
                                struct config *c) must_check;
/* A new configuration; a run under way ends by the old one. */
void retention_apply(struct retention *r, struct config *c);
void retention_stop(struct retention *r); /* before lanes_free: nothing new begins */
void retention_free(struct retention *r); /* after lanes_free, before the audit */

#endif
