/* SPDX-License-Identifier: Apache-2.0 */
/* The publish point: after a transaction commits, its events go to the subscribers, on the loop
 * thread.  All events that this process appends pass the write hook of the chain, so one place
 * publishes every kind: intents, outcomes, notes, records, anchors, changes of keys and tools.
 *
 * Order: by event id.  All published events have the writer number of this process, and the ids of
 * one writer have no gaps, so a subscriber gets consecutive ids.
 *
 * Promises to a subscriber:
 * - An event is published once, and only after its commit is durable.  An event whose commit failed
 *   is not published.
 * - A commit of unknown fate (the connection broke before the store answered) is published when the
 *   chain has reread its heads from the store, before any later event.  The chain does so before
 *   the next transaction.
 * - A page of events that is read from the store after audit_subscribe() has returned holds every
 *   event that is not published to this subscriber.  Events may be in the page and be published
 *   too: the subscriber compares ids.
 *
 * Without subscribers nothing is copied: the write lane looks at one pointer per transaction.  With
 * subscribers, it copies the rows for the loop.  The publish point never waits for a subscriber; a
 * subscriber bounds what it keeps. */
#ifndef HOLDFAST_AUDIT_PUBLISH_H
#define HOLDFAST_AUDIT_PUBLISH_H

#include "base/list.h"
#include "store/store.h"

struct audit;
struct loop;

struct audit_subscriber {
    /* Rows as they are stored: redacted, with bodies.  They live until the function returns.  It
     * may add and remove subscribers, also itself. */
    void (*on_events)(struct audit_subscriber *s, const struct event_row *rows, size_t n);
    struct list link; /* this and `since` belong to the publish point */
    uint64_t since;
};
/* Both on the loop thread.  The caller owns the subscriber; it must not move while it is
 * subscribed.  A subscriber that is added by a callback gets its first events with the next batch.
 */
void audit_subscribe(struct audit *a, struct audit_subscriber *s);
void audit_unsubscribe(struct audit *a, struct audit_subscriber *s);

/* The rest is for the audit's own files and for tests. */
struct chain;
struct publish_point;
struct publish_point *publish_point_new(struct chain *chain, struct loop *loop) must_check;
/* After lanes_free(), on the loop thread.  Batches that are still posted are dropped.  NULL is
 * fine. */
void publish_point_free(struct publish_point *p);
void publish_subscribe(struct publish_point *p, struct audit_subscriber *s);
void publish_unsubscribe(struct publish_point *p, struct audit_subscriber *s);
/* Number of batches that were copied for the loop, for tests.  Any thread. */
uint64_t publish_count_batches(struct publish_point *p);

/* The chain calls these on the write lane.  Publishes the events of a committed transaction that
 * have ids greater than `after`. */
void publish_committed(struct publish_point *p, const struct store_op *ops, size_t n,
                       int64_t after);
/* Reads the events with ids in (after, until] from the store and publishes them.  Returns the id
 * up to which all events are published; less than `until` when the store could not be read. */
int64_t publish_stored(struct publish_point *p, struct store *store, int64_t after, int64_t until);

#endif
