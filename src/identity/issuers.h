/* SPDX-License-Identifier: Apache-2.0 */
/* The issuers of the configuration, each with its rules and keys, and the check of their tokens.
 * Most tokens are checked at once.  A token with an unknown key waits for one fetch of its issuer's
 * keys, 5 s at most.
 *
 *   identity.c ──token──> issuers.c ──rules, keys──> jwt.c
 *                              └──> jwks_source.c ──> issuer_keys.c (files), http/client.h (URLs)
 *
 * Loop thread only. */
#ifndef HOLDFAST_IDENTITY_ISSUERS_H
#define HOLDFAST_IDENTITY_ISSUERS_H

#include "config/config.h"
#include "identity/jwks_source.h"
#include "identity/jwt.h"

struct issuers;

/* Checks that the key files of a configuration hold keys, and keeps nothing.  An error is
 * ERR_CONFIG and names the position in the configuration. */
must_check bool issuers_try(const struct config *c, struct error *err);
/* Reads key files and starts to fetch key sets.  A file without keys is ERR_CONFIG and names the
 * position in the configuration.  An unreachable URL is not an error. */
must_check bool issuers_new(struct loop *loop, struct config *c, struct issuers **ret,
                            struct error *err);
/* Applies another configuration, or the same on SIGHUP, and reads all files again.  On failure
 * nothing changes. */
must_check bool issuers_apply(struct issuers *is, struct config *c, struct error *err);
void issuers_free(struct issuers *is); /* NULL is fine; no question may be pending */
bool issuers_any(const struct issuers *is);
/* Changes with every change of rules or keys.  Proofs of an earlier epoch must be repeated. */
uint64_t issuers_epoch(const struct issuers *is);

/* A token to check.  The caller embeds it and keeps `token` and `mem` until it is answered. */
struct token_question {
    struct str token;
    struct arena *mem;                      /* holds the claims */
    void (*done)(struct token_question *q); /* from the loop */
    /* Output. */
    bool ok;
    struct jwt_claims claims;
    /* For tests and logs.  JWT_OK with !ok: the issuer has no keys to check with. */
    enum jwt_fault fault;
    /* ERR_UNAUTHENTICATED, or ERR_UNAVAILABLE when the keys cannot be fetched. */
    struct error err;
    /* private */
    struct issuers *from;
    struct jwks_waiter waiter;
    bool has_waited;
};
/* Returns true when `q` is answered at once, false when `done` will be called. */
must_check bool issuers_ask(struct issuers *is, struct token_question *q);
/* Cancels the question before `done` is called. */
void token_question_cancel(struct token_question *q);

#endif
