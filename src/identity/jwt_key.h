/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that check tokens.  A key is bound to one algorithm.  A token with another "alg" is refused
 * (threats T10).  A key holds either a shared secret or a public key, so one cannot be used as the
 * other.
 *
 * Keys come from the configuration (PEM, secrets) and from key sets (jwks.h).  jwt.c selects
 * one. */
#ifndef HOLDFAST_IDENTITY_JWT_KEY_H
#define HOLDFAST_IDENTITY_JWT_KEY_H

#include "base/arena.h"
#include "base/error.h"
#include "crypto/hash.h"

#define JWT_KEYS_MAX 64
#define JWT_KID_MAX 255
#define JWT_SECRET_MIN 32
#define JWT_RSA_BITS_MIN 2048
#define JWT_RSA_BITS_MAX 8192 /* larger keys make checks slow */

enum jwt_alg { JWT_RS256, JWT_PS256, JWT_ES256, JWT_ES384, JWT_EDDSA, JWT_HS256, JWT_ALG_COUNT };

struct evp_pkey_st;
struct jwt_key {
    struct str kid; /* absent: no kid */
    enum jwt_alg alg;
    struct evp_pkey_st *public_key; /* NULL for HS256 */
    struct hmac_key *secret;        /* NULL for all other algorithms */
};

/* One thread at a time. */
struct jwt_keys {
    struct arena *mem; /* holds the kids */
    struct jwt_key *keys;
    size_t n;
};

struct jwt_keys *jwt_keys_new(void) must_check;
void jwt_keys_free(struct jwt_keys *k); /* NULL is fine */

const char *jwt_alg_name(enum jwt_alg alg); /* "RS256" */
/* Exact match: case matters, and blanks are refused. */
must_check bool jwt_alg_parse(struct str name, enum jwt_alg *ret);

/* Adds a public key and takes ownership of it, even on failure.  Refuses a key that does not suit
 * the algorithm (type, curve, size of the RSA modulus, weak exponent), a second key with the same
 * kid and algorithm, and a 65th key. */
must_check bool jwt_keys_take(struct jwt_keys *k, struct str kid, enum jwt_alg alg,
                              struct evp_pkey_st *public_key, struct error *err);
/* Adds the public key of a PEM text; refuses a text with a private key. */
must_check bool jwt_keys_add_pem(struct jwt_keys *k, struct str kid, enum jwt_alg alg,
                                 struct str pem, struct error *err);
/* Adds a secret for HS256: at least 32 bytes, with enough distinct byte values. */
must_check bool jwt_keys_add_secret(struct jwt_keys *k, struct str kid, struct str secret,
                                    struct error *err);

/* Whether `signature` is a valid signature of `text` by this key and its algorithm. */
must_check bool jwt_key_verify(const struct jwt_key *key, struct str text, struct str signature);

#endif
