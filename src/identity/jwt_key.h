/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that tokens are checked with.  A key is made for one algorithm and never used with another:
 * what the token says about itself can only agree with that or be refused (threats T10).  Shared
 * secrets and public keys never stand for each other: a key holds one or the other.
 *
 * Keys come from the configuration (PEM, secrets) and from key sets (jwks.h); jwt.c picks one. */
#ifndef HOLDFAST_IDENTITY_JWT_KEY_H
#define HOLDFAST_IDENTITY_JWT_KEY_H

#include "base/arena.h"
#include "base/error.h"
#include "crypto/hash.h"

#define JWT_KEYS_MAX 64
#define JWT_KID_MAX 255
#define JWT_SECRET_MIN 32
#define JWT_RSA_BITS_MIN 2048
#define JWT_RSA_BITS_MAX 8192 /* a check takes ever longer with more */

enum jwt_alg { JWT_RS256, JWT_PS256, JWT_ES256, JWT_ES384, JWT_EDDSA, JWT_HS256, JWT_ALG_COUNT };

struct evp_pkey_st;
struct jwt_key {
    struct str kid; /* absent: none */
    enum jwt_alg alg;
    struct evp_pkey_st *public_key; /* NULL for HS256 */
    struct hmac_key *secret;        /* NULL for all others */
};

/* One thread at a time. */
struct jwt_keys {
    struct arena *mem; /* of the kids */
    struct jwt_key *keys;
    size_t n;
};

struct jwt_keys *jwt_keys_new(void) must_check;
void jwt_keys_free(struct jwt_keys *k); /* NULL is fine */

const char *jwt_alg_name(enum jwt_alg alg); /* "RS256" */
/* Exact: no other case, no blanks. */
must_check bool jwt_alg_parse(struct str name, enum jwt_alg *ret);

/* Adds a public key, which is taken in any case.  Refuses one that does not suit the algorithm (its
 * type, its curve, an RSA modulus that is too short or too long, an exponent that proves nothing),
 * a second key of the same kid and algorithm, and the 65th. */
must_check bool jwt_keys_take(struct jwt_keys *k, struct str kid, enum jwt_alg alg,
                              struct evp_pkey_st *public_key, struct error *err);
/* PEM of a public key; one with a private key in it is refused. */
must_check bool jwt_keys_add_pem(struct jwt_keys *k, struct str kid, enum jwt_alg alg,
                                 struct str pem, struct error *err);
/* For HS256.  At least 32 bytes that are not all but the same. */
must_check bool jwt_keys_add_secret(struct jwt_keys *k, struct str kid, struct str secret,
                                    struct error *err);

/* Whether `signature` is this key's, for its own algorithm, over `text`. */
must_check bool jwt_key_verify(const struct jwt_key *key, struct str text, struct str signature);

#endif
