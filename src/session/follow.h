/* SPDX-License-Identifier: Apache-2.0 */
/* Where several nodes share a store, others end sessions that are resident here, give them other
 * credentials or enable other toolsets in them.  Asks twice a second what has ended and lets go of
 * it, so that an end is honoured everywhere within a second; where nodes hear of each other
 * (store/redis_listen.h), at once.  Sessions with other credentials are told to sessions_sealed(),
 * transports to whoever asked; what is enabled in a session becomes what the store has. */
#ifndef HOLDFAST_SESSION_FOLLOW_H
#define HOLDFAST_SESSION_FOLLOW_H

#include "session/session.h"

#define FOLLOW_MS 500

struct follow_config {
    struct loop *loop;
    struct lanes *lanes;
    struct sessions *sessions;
    int64_t after; /* from follow_position(), asked for before the first session was resident */
    /* Told of each end after `sessions`, on the loop; may be NULL. */
    void (*ended)(void *arg, struct str tenant, struct str id);
    /* A transport that is resident here was ended elsewhere; may be NULL. */
    void (*transport_ended)(void *arg, struct transport *t);
    /* Other toolsets are enabled in a resident session than before; may be NULL. */
    void (*toolsets_changed)(void *arg, struct session *s);
    void *arg;
};
struct follow;
/* Blocking: where to begin. */
must_check bool follow_position(struct store *store, int64_t *ret, struct error *err);
struct follow *follow_new(const struct follow_config *config) must_check;
/* Something has changed: asks at once. */
void follow_nudge(struct follow *f);
void follow_stop(struct follow *f); /* no more questions */
void follow_free(struct follow *f); /* after lanes_free(); NULL is fine, to both */

#endif
