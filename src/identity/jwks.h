/* SPDX-License-Identifier: Apache-2.0 */
/* A JWK Set (RFC 7517): what an issuer publishes of its keys.  Public keys only: RSA, P-256, P-384,
 * Ed25519.  A key that is for something else, or of a kind we do not know, is passed over; a set
 * that gives away a private key is refused whole, because whoever made it should hear of it. */
#ifndef HOLDFAST_IDENTITY_JWKS_H
#define HOLDFAST_IDENTITY_JWKS_H

#include "identity/jwt_key.h"

#define JWKS_BYTES_MAX (256u << 10)

struct jwks_report {
    size_t n_taken;
    size_t n_skipped;
    struct error why; /* the first was passed over; ERR_NONE: none was */
};

/* Adds the keys of a set.  On failure `keys` is as it was.  A set without a usable key is a
 * failure: nothing could be checked with it. */
must_check bool jwks_parse(struct str json, struct jwt_keys *keys, struct jwks_report *ret_report,
                           struct error *err);

#endif
