/* SPDX-License-Identifier: Apache-2.0 */
/* Whose tokens are taken: the issuers of the configuration, each with its rules and its keys, and
 * the question whether a token holds.  Most are answered at once; a token of a key that is not
 * known (yet) waits for one fetch of its issuer's keys, 5 s at most.
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

/* Whether the key files of a configuration hold keys; nothing is kept.  A complaint is ERR_CONFIG
 * and says where. */
must_check bool issuers_try(const struct config *c, struct error *err);
/* Reads key files and begins to fetch key sets.  Files that do not hold keys are ERR_CONFIG, with
 * the place in the configuration; a URL that does not answer is not. */
must_check bool issuers_new(struct loop *loop, struct config *c, struct issuers **ret,
                            struct error *err);
/* Another configuration (or the same, on SIGHUP): all files are read again.  On failure everything
 * is as it was. */
must_check bool issuers_apply(struct issuers *is, struct config *c, struct error *err);
void issuers_free(struct issuers *is); /* NULL is fine; no question may be open */
bool issuers_any(const struct issuers *is);
/* Another number after every change of rules or keys: what was proved before is to be proved again.
 */
uint64_t issuers_epoch(const struct issuers *is);

/* One question.  Embedded in whoever asks; what it points to stays until it is answered. */
struct token_question {
    struct str token;
    struct arena *mem;                      /* of the claims */
    void (*done)(struct token_question *q); /* from the loop */
    /* Out. */
    bool ok;
    struct jwt_claims claims;
    enum jwt_fault fault; /* for tests and logs; JWT_OK with !ok: there are no keys to check with */
    struct error err;     /* ERR_UNAUTHENTICATED, or ERR_UNAVAILABLE when the keys cannot be had */
    /* private */
    struct issuers *from;
    struct jwks_waiter waiter;
    bool has_waited;
};
/* true: answered now.  false: `done` comes. */
must_check bool issuers_ask(struct issuers *is, struct token_question *q);
/* The asker goes away before `done`. */
void token_question_cancel(struct token_question *q);

#endif
