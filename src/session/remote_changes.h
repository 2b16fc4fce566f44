/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that other nodes made to sessions which are resident here: a node ended the session, gave
 * it other credentials, or enabled other toolsets.  The store is asked twice a second, so that an
 * end takes effect on every node within a second.  Where nodes notify each other
 * (store/redis_listen.h), the store is asked at once.
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
    int64_t
        after; /* from remote_changes_position(), asked for before the first session was resident */
    /* Told of each end after `sessions`, on the loop; may be NULL. */
    void (*ended)(void *arg, struct str tenant, struct str id);
    /* A transport that is resident here was ended elsewhere; may be NULL. */
    void (*transport_ended)(void *arg, struct transport *t);
    /* Other toolsets are enabled in a resident session than before; may be NULL. */
    void (*toolsets_changed)(void *arg, struct session *s);
    void *arg;
};
struct remote_changes;
/* Blocking: where to begin. */
must_check bool remote_changes_position(struct store *store, int64_t *ret, struct error *err);
struct remote_changes *remote_changes_new(const struct remote_changes_config *config) must_check;
/* Something has changed: asks at once. */
void remote_changes_nudge(struct remote_changes *f);
void remote_changes_stop(struct remote_changes *f); /* no more questions */
void remote_changes_free(struct remote_changes *f); /* after lanes_free(); NULL is fine, to both */

#endif
