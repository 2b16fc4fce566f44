/* SPDX-License-Identifier: Apache-2.0 */
/* Applies changes by other nodes (store/change_poller.h) to the sessions that are resident here.
 *
 * A session that was handed over is passed to sessions_handed_over().  A carrier that was
 * bound to a session is looked up at its next use.
 *
 * An ended session is dropped.  An ended transport is passed to transport_ended().  If a node gave a
 * resident session other credentials, toolsets or setup, its row is read again; other credentials are then
 * passed to sessions_sealed(), and toolsets are taken over. */
#ifndef HOLDFAST_SESSION_REMOTE_CHANGES_H
#define HOLDFAST_SESSION_REMOTE_CHANGES_H

#include "session/session.h"
#include "store/change_poller.h"

struct remote_changes_config {
    struct lanes *lanes;
    struct sessions *sessions;
    struct change_poller *poller;
    /* Called for each end after `sessions` was updated, on the loop; may be NULL. */
    void (*ended)(void *arg, struct str tenant, struct str id);
    /* Called when another node ended a resident transport; may be NULL. */
    void (*transport_ended)(void *arg, struct transport *t);
    /* Called when the toolsets of a resident session changed; may be NULL. */
    void (*toolsets_changed)(void *arg, struct session *s);
    void *arg;
};
struct remote_changes;
/* Listens to the poller until the poller is stopped. */
struct remote_changes *remote_changes_new(const struct remote_changes_config *config) must_check;
void remote_changes_stop(struct remote_changes *f); /* applies no more changes */
void remote_changes_free(struct remote_changes *f); /* after lanes_free(); NULL is fine for both */

#endif
