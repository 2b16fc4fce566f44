/* SPDX-License-Identifier: Apache-2.0 */
/* Erases persons: removes the bodies of a person's events and every name of the person.
 *
 *   begin (erasure/api) ──▶ sessions end ──▶ walks ──▶ rows ──▶ authors ──▶ names ──▶ clean ──▶ done
 *
 * The begin is one commit: from then on the person cannot call, and a row tells what remains.  A walk
 * goes through all stored bodies, a few segments at a time, and takes those of the person out; digests
 * and seals stay.  Walks repeat until one finds nothing and no call of the person was open when it
 * began.  Every step can be repeated, so after a crash any process goes on from the row.  One person
 * at a time; loop thread only. */
#ifndef HOLDFAST_ERASURE_ERASE_H
#define HOLDFAST_ERASURE_ERASE_H

#include "config/config.h"
#include "io/loop.h"
#include "session/registry.h"
#include "store/lanes.h"

struct erasures_config {
    struct loop *loop;
    struct lanes *lanes;
    struct registry *registry;
    const struct config *const *config; /* replaced by a reload */
    bool is_shared;                     /* other processes write to the store too */
};
struct erasures;
/* Soon goes on with what an earlier process has left. */
struct erasures *erasures_new(const struct erasures_config *config) must_check;
/* An erasure was begun; this process does it. */
void erasures_wake(struct erasures *e, struct str id);
void erasures_stop(struct erasures *e); /* before lanes_free() */
void erasures_free(struct erasures *e); /* after lanes_free(); NULL is fine */

/* Whether the text contains the name, whatever the case of its letters. */
bool erasure_names(struct str text, struct str name);

#endif
