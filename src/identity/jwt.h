/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a bearer token (JWT, RFC 7519, compact form, signed) and reads its claims.  A pure
 * function: the caller passes keys, rules and the time (threats T10).
 *
 * The key is always one of the given keys.  A token cannot bring its own: jwk, jku, x5c and x5u are
 * ignored.  The algorithm is that of the key.  The claims that count are issuer, audience, subject,
 * expiry and, under configured names, tenant and role. */
#ifndef HOLDFAST_IDENTITY_JWT_H
#define HOLDFAST_IDENTITY_JWT_H

#include "base/principal.h"
#include "identity/jwt_key.h"

#define JWT_BYTES_MAX 8192
#define JWT_SUBJECT_MAX 255
#define JWT_NAME_MAX 64     /* of a tenant's name */
#define JWT_LEEWAY_MS 60000 /* tolerance for nbf and iat; exp has no tolerance */
/* A token is checked again after this time even if it lives longer, so tokens of a removed key stop
 * working. */
#define JWT_TRUST_MAX_MS 300000

struct jwt_rules {
    struct str issuer;
    const struct str *audiences; /* the token must name one of them */
    size_t n_audiences;
    struct str tenant_claim; /* empty: not read; all tokens are of `tenant` */
    struct str role_claim;   /* empty: not read; all tokens are members */
    struct str tenant;       /* of tokens without the claim; absent: the claim is required */
    /* Allowed values; empty: any. */
    const struct str *tenants, *roles;
    size_t n_tenants, n_roles;
};

/* The strings are in the caller's arena. */
struct jwt_claims {
    struct str issuer, subject, tenant;
    struct str id;    /* jti; absent when the token has none */
    struct str scope; /* as written, separated by blanks; absent when the token has none */
    enum role role;
    int64_t expires_ms;
    int64_t trust_until_ms; /* check the token again at this time */
};

/* Why a token is refused: for the log and tests, never shown to the sender. */
enum jwt_fault {
    JWT_OK,
    JWT_TOO_LONG,
    JWT_PARTS,
    JWT_BASE64,
    JWT_HEADER, /* not a JSON object, or a parameter of the wrong type */
    JWT_ALG,    /* missing, unknown, or not the key's */
    JWT_TYP,
    JWT_CRIT, /* requires an unsupported extension */
    JWT_KID,  /* malformed */
    JWT_NO_KEY,
    JWT_SIGNATURE,
    JWT_PAYLOAD, /* not a JSON object */
    JWT_ISS,
    JWT_AUD,
    JWT_EXP, /* missing, or not a time */
    JWT_EXPIRED,
    JWT_NBF,
    JWT_IAT,
    JWT_SUB,
    JWT_TENANT,
    JWT_ROLE,
    JWT_CLAIM, /* jti or scope of the wrong type */
    JWT_FAULT_COUNT
};
const char *jwt_fault_name(enum jwt_fault f); /* "no_key" */

/* *ret is set only on JWT_OK. */
must_check enum jwt_fault jwt_check(const struct jwt_keys *keys, const struct jwt_rules *rules,
                                    struct str token, int64_t now_ms, struct arena *mem,
                                    struct jwt_claims *ret);
/* Like jwt_check(), with one error text for all refusals (ERR_UNAUTHENTICATED); the reason goes to
 * the debug log. */
must_check bool jwt_verify(const struct jwt_keys *keys, const struct jwt_rules *rules,
                           struct str token, int64_t now_ms, struct arena *mem,
                           struct jwt_claims *ret, struct error *err);
bool jwt_refuse(enum jwt_fault f, struct error *err);

/* The unverified issuer claim; use it only to select the rules for the check.  Absent when the
 * token has none. */
struct str jwt_claimed_issuer(struct str token, struct arena *mem);

#endif
