/* SPDX-License-Identifier: Apache-2.0 */
/* Changes by other nodes to sessions that are resident here: a node ended the session, gave it
 * other credentials, or enabled other toolsets.  The store is polled twice a second, so an end
 * takes effect on every node within a second.  If nodes notify each other (store/redis_listen.h),
 * the store is polled at once.
 *
 * An ended session is dropped.  Other credentials are passed to sessions_sealed().  An ended
 * transport is passed to transport_ended().  Toolsets are taken over from the store. */
#ifndef HOLDFAST_SESSION_REMOTE_CHANGES_H
#define HOLDFAST_SESSION_REMOTE_CHANGES_H

#include "session/session.h"

#define REMOTE_CHANGES_MS 500

struct remote_changes_config {
    struct loop *loop;
    struct lanes *lanes;
    struct sessions *sessions;
    /* From remote_changes_position(), read before the first session was resident. */
    int64_t after;
    /* Called for each end after `sessions` was updated, on the loop; may be NULL. */
    void (*ended)(void *arg, struct str tenant, struct str id);
    /* Called when another node ended a resident transport; may be NULL. */
    void (*transport_ended)(void *arg, struct transport *t);
    /* Called when the toolsets of a resident session changed; may be NULL. */
    void (*toolsets_changed)(void *arg, struct session *s);
    void *arg;
};
struct remote_changes;
/* Blocking: reads the position to start from. */
must_check bool remote_changes_position(struct store *store, int64_t *ret, struct error *err);
struct remote_changes *remote_changes_new(const struct remote_changes_config *config) must_check;
/* Another node has changed something: polls at once. */
void remote_changes_nudge(struct remote_changes *f);
void remote_changes_stop(struct remote_changes *f); /* stops polling */
void remote_changes_free(struct remote_changes *f); /* after lanes_free(); NULL is fine for both */

#endif
