/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the changes that other processes made to a shared store (store_changes()), in their order,
 * and passes each to every listener on the loop.  It is the only reader of these rows while the
 * gateway runs.  The store is polled twice a second, so a change takes effect on every node within
 * a second.  If nodes notify each other (store/redis_listen.h), the store is polled at once.
 *
 * If the store does not answer, the position stays, so no change is skipped.  The changes of this
 * process come back too. */
#ifndef HOLDFAST_STORE_CHANGE_POLLER_H
#define HOLDFAST_STORE_CHANGE_POLLER_H

#include "store/lanes.h"

#define CHANGE_POLL_MS 500
#define CHANGE_LISTENERS_MAX 4

struct change_listener {
    void (*take)(void *arg, const struct change_row *row);
    /* Called after each poll that succeeded, also if it found no change; NULL: not needed. */
    void (*polled)(void *arg);
    void *arg;
};
struct change_poller_config {
    struct loop *loop;
    struct lanes *lanes;
    /* From change_poller_position(), read before anything of the store was held in memory. */
    int64_t after;
};
struct change_poller;
/* Blocking: reads the position to start from. */
must_check bool change_poller_position(struct store *store, int64_t *ret, struct error *err);
struct change_poller *change_poller_new(const struct change_poller_config *config) must_check;
/* Before the loop runs; at most CHANGE_LISTENERS_MAX.  Called in the order of addition. */
void change_poller_add(struct change_poller *p, const struct change_listener *listener);
/* Another node has changed something: polls at once.  NULL is fine for all that follow. */
void change_poller_nudge(struct change_poller *p);
void change_poller_stop(struct change_poller *p); /* stops polling */
void change_poller_free(struct change_poller *p); /* after lanes_free() */

#endif
