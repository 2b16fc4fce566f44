/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of one issuer as time goes by.  Files are looked at when keys are asked for, at most
 * every 10 s; a URL is fetched every 10 minutes and, at most every 30 s, when a token names a key
 * that is not known.  What cannot be had leaves the old keys in use, for a day.
 *
 * Loop thread only. */
#ifndef HOLDFAST_IDENTITY_JWKS_SOURCE_H
#define HOLDFAST_IDENTITY_JWKS_SOURCE_H

#include "base/list.h"
#include "identity/issuer_keys.h"
#include "io/loop.h"

#define JWKS_LOOK_MS 10000
#define JWKS_REFRESH_MS 600000
#define JWKS_UNKNOWN_MS 30000 /* between two fetches for tokens of unknown keys */
#define JWKS_RETRY_MS 5000    /* between two fetches while there are no keys at all */
#define JWKS_FETCH_MS 5000
#define JWKS_STALE_MS 86400000

struct jwks_source;

/* Reads the files, which must hold what they should (ERR_CONFIG); of a URL the first fetch begins.
 * `c` must stay as long as the source. */
must_check bool jwks_source_new(struct loop *loop, const struct issuer_config *c,
                                struct jwks_source **ret, struct error *err);
void jwks_source_free(struct jwks_source *s); /* NULL is fine; nobody may wait any more */
/* Takes over what was fetched from the same URL before, so that a new configuration has no gap. */
void jwks_source_inherit(struct jwks_source *s, const struct jwks_source *before);

/* The keys to check with now; they stay until control returns to the loop.  NULL: there are none,
 * not yet or no longer. */
const struct jwt_keys *jwks_source_keys(struct jwks_source *s);
/* Another number when other keys are in use. */
unsigned jwks_source_version(const struct jwks_source *s);

/* Somebody whom other keys might help. */
struct jwks_waiter {
    struct list node;
    void (*fn)(struct jwks_waiter *w); /* from the loop, within 5 s, whatever came of it */
};
/* true: a fetch is under way, `fn` comes.  false: there is nothing to wait for. */
must_check bool jwks_source_wait(struct jwks_source *s, struct jwks_waiter *w);
void jwks_waiter_cancel(struct jwks_waiter *w); /* also when it does not wait */
/* Moves all who wait to `to`. */
void jwks_source_take_waiters(struct jwks_source *s, struct list *to);

#endif
