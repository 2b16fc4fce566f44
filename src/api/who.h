/* SPDX-License-Identifier: Apache-2.0 */
/* Names for people in the rows of the audit: user and key of an owner, client of a session, and the
 * arguments in one line. */
#ifndef HOLDFAST_API_WHO_H
#define HOLDFAST_API_WHO_H

#include "audit/executions.h"
#include "base/map.h"

/* The names that one request has read.  Used on the query lane. */
struct who_names {
    struct store *store;
    struct arena *mem;
    struct map owners, sessions;
    struct str wanted; /* for who_fits() */
};
void who_init(struct who_names *w, struct store *store, struct arena *mem);
void who_release(struct who_names *w);
/* The names of an owner, such as "key:3k9x0q2m7a1z"; absent if it has none, or if they
 * cannot be read. */
void who_owner(struct who_names *w, struct str tenant, struct str owner, struct str *ret_user,
               struct str *ret_key);
/* Sets user, key and client of an execution; a name that cannot be read stays absent. */
void who_fill(struct who_names *w, struct execution *x);
/* For execution_filter.fits: whether w->wanted is the name of the row's user, or the name or id of
 * its key, or "local". */
bool who_fits(void *w, const struct execution *x);
/* Sets the arguments of an execution from the body of its first event, and the reply to a failed
 * call from that of its outcome.  They stay absent if the store is too busy to read it in time. */
must_check bool who_add_arguments(struct who_names *w, struct execution *x, struct error *err);

#endif
