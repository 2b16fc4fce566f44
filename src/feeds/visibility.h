/* SPDX-License-Identifier: Apache-2.0 */
/* The events that a reader may see: its tenant, its owner, its scopes.
 *
 *   local admin        every tenant, also Holdfast's own events
 *   admin, auditor     the events of the tenant
 *   member, service    the events of its own owner
 *
 * A credential with scopes sees no event of a server or tool outside of them.  Events of other owners
 * that name no server (sessions, reports), and those of the server "docs" under a credential with
 * folders, stay hidden too: such a record does not say what it touched. */
#ifndef HOLDFAST_FEEDS_VISIBILITY_H
#define HOLDFAST_FEEDS_VISIBILITY_H

#include "base/arena.h"
#include "base/principal.h"
#include "store/store.h"

struct visibility {
    struct str tenant;    /* absent: every tenant */
    struct str owner;     /* absent: every owner of the tenant */
    bool limited;         /* the scopes of `who` hide something */
    struct principal who; /* only if limited */
};

/* Every event of one tenant, or of every tenant (absent): for Holdfast's own readers. */
struct visibility visibility_of_tenant(struct str tenant);
/* A deep copy in mem. */
struct visibility visibility_dup(const struct visibility *v, struct arena *mem);
/* Texts stay those of `who`. */
struct visibility visibility_of(const struct principal *who, bool is_local_admin);
bool visibility_shows(const struct visibility *v, const struct event_row *e);
/* Narrows a filter of the store, so that a page skips hidden events.  A page may still hold some. */
void visibility_narrow(const struct visibility *v, struct event_filter *filter);

#endif
