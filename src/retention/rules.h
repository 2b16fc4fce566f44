/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of one run: what of each tenant is old enough to be removed.  They are fixed when the run
 * begins.  Times are compared with the wall clock times of events, and "now" is the earlier of wall
 * clock and life time, so a clock that was set forward removes nothing early. */
#ifndef HOLDFAST_RETENTION_RULES_H
#define HOLDFAST_RETENTION_RULES_H

#include "base/arena.h"
#include "config/config.h"
#include "holds/store/rows.h"
#include "store/rows.h"
#include "store/sizes.h"

struct rule {
    struct str tenant;
    int64_t events_before_ms, bodies_before_ms; /* 0: none are removed for their age */
    struct str keep, bodies;                    /* "keep 90d", "bodies 7d" */
    /* For their size: so many bytes have to go, the oldest first; the plan counts them down.  The days
     * that have these bytes end at the times. */
    int64_t more_bodies, bodies_until_ms;
    int64_t more_events, events_until_ms;
    struct str size; /* "max_size 10GiB" */
};
struct rules;
struct rules *rules_new(const struct config *c, int64_t now_ms) must_check;
void rules_free(struct rules *r);
void rules_hold(struct rules *r, const struct held_row *rows, size_t n);
/* The rule of a tenant; lives as long as `r`. */
struct rule *rules_of(struct rules *r, struct str tenant);
/* What is stored, by tenant and day, in this order: what exceeds max_size has to go. */
void rules_measure(struct rules *r, const struct size_row *rows, size_t n);
/* So many bytes that were to go as bodies go with their events. */
void rules_leave_to_events(struct rules *r, struct rule *rule, int64_t bytes);
bool rules_hold_event(const struct rules *r, const struct event_row *e);
/* The latest time that the rule of any tenant names; 0: nothing is removed. */
int64_t rules_events_before(const struct rules *r);
int64_t rules_bodies_before(const struct rules *r);
/* How often to look: by the shortest age and by max_size; 0: no rule is set. */
int64_t rules_interval_ms(const struct config *c);

#endif
