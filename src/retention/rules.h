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

struct rule {
    struct str tenant;
    int64_t events_before_ms, bodies_before_ms; /* 0: none are removed */
    struct str keep, bodies;                    /* "keep 90d", "bodies 7d" */
};
struct rules;
struct rules *rules_new(const struct config *c, int64_t now_ms) must_check;
void rules_free(struct rules *r);
void rules_hold(struct rules *r, const struct held_row *rows, size_t n);
/* The rule of a tenant; lives as long as `r`. */
const struct rule *rules_of(struct rules *r, struct str tenant);
bool rules_hold_event(const struct rules *r, const struct event_row *e);
/* Whether anything can be removed, and the latest time that any tenant's rule names. */
bool rules_remove_events(const struct rules *r, int64_t *ret_before_ms);
bool rules_remove_bodies(const struct rules *r, int64_t *ret_before_ms);
/* A digest of holds and configuration: while it is the same, and time goes on, only more becomes old
 * enough. */
uint64_t rules_mark(const struct rules *r);
/* Whether any rule of the configuration removes something. */
bool rules_are_set(const struct config *c, int64_t *ret_shortest_ms);

#endif
