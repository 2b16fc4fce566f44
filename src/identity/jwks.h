/* SPDX-License-Identifier: Apache-2.0 */
/* A JWK Set (RFC 7517): the published keys of an issuer.  Public keys only: RSA, P-256, P-384,
 * Ed25519.  A key for another use, or of an unknown type, is skipped.  A set with a private key is
 * refused as a whole, so that its publisher notices. */
#ifndef HOLDFAST_IDENTITY_JWKS_H
#define HOLDFAST_IDENTITY_JWKS_H

#include "identity/jwt_key.h"

#define JWKS_BYTES_MAX (256u << 10)

struct jwks_report {
    size_t n_taken;
    size_t n_skipped;
    struct error why; /* why the first key was skipped; ERR_NONE: no key was skipped */
};

/* Adds the keys of a set.  On failure `keys` is unchanged.  A set without a usable key is an
 * error. */
must_check bool jwks_parse(struct str json, struct jwt_keys *keys, struct jwks_report *ret_report,
                           struct error *err);

#endif
