/* SPDX-License-Identifier: Apache-2.0 */
/* The current keys of one issuer.  Files are checked for changes when keys are requested, at most
 * every 10 s.  A URL is fetched every 10 minutes and, at most every 30 s, when a token names an
 * unknown key.  After a failure the old keys stay in use, for a day if they were fetched.
 *
 * Loop thread only. */
#ifndef HOLDFAST_IDENTITY_JWKS_SOURCE_H
#define HOLDFAST_IDENTITY_JWKS_SOURCE_H

#include "base/list.h"
#include "identity/issuer_keys.h"
#include "io/loop.h"

#define JWKS_LOOK_MS 10000
#define JWKS_REFRESH_MS 600000
#define JWKS_UNKNOWN_MS 30000 /* between two fetches because of unknown keys */
#define JWKS_RETRY_MS 5000    /* between two fetches while there are no keys */
#define JWKS_FETCH_MS 5000
#define JWKS_STALE_MS 86400000

struct jwks_source;

/* Reads the files; ERR_CONFIG when they are unusable.  Starts the first fetch of a URL.  `c` must
 * outlive the source. */
must_check bool jwks_source_new(struct loop *loop, const struct issuer_config *c,
                                struct jwks_source **ret, struct error *err);
void jwks_source_free(struct jwks_source *s); /* NULL is fine; no waiter may be left */
/* Takes over the key set fetched from the same URL, so that a reload leaves no gap. */
void jwks_source_inherit(struct jwks_source *s, const struct jwks_source *before);

/* The keys to check with; valid until control returns to the loop.  NULL: no keys, not yet or no
 * longer. */
const struct jwt_keys *jwks_source_keys(struct jwks_source *s);
/* Changes whenever the keys are replaced. */
unsigned jwks_source_version(const struct jwks_source *s);

/* Waits for the next fetch of keys. */
struct jwks_waiter {
    struct list node;
    /* From the loop, within 5 s, whether the fetch succeeded or not. */
    void (*fn)(struct jwks_waiter *w);
};
/* Returns true when a fetch is running and `fn` will be called; false when there is nothing to wait
 * for. */
must_check bool jwks_source_wait(struct jwks_source *s, struct jwks_waiter *w);
void jwks_waiter_cancel(struct jwks_waiter *w); /* also when it does not wait */
/* Moves all waiters to `to`. */
void jwks_source_take_waiters(struct jwks_source *s, struct list *to);

#endif
