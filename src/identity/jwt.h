/* SPDX-License-Identifier: Apache-2.0 */
/* A bearer token (JWT, RFC 7519, compact form, signed) to what it claims, or a refusal.  Pure:
 * keys, rules and the time are given (threats T10).
 *
 * The key is always one of ours; nothing in the token can bring one (jwk, jku, x5c and x5u are not
 * looked at), and the algorithm is the key's.  What the issuer may say is the issuer's name, whom
 * the token is for, who bears it, until when, and, in claims the configuration names, the tenant
 * and the role. */
#ifndef HOLDFAST_IDENTITY_JWT_H
#define HOLDFAST_IDENTITY_JWT_H

#include "base/principal.h"
#include "identity/jwt_key.h"

#define JWT_BYTES_MAX 8192
#define JWT_SUBJECT_MAX 255
#define JWT_NAME_MAX 64     /* of a tenant */
#define JWT_LEEWAY_MS 60000 /* of clocks that are behind; an end is an end */
/* However long a token lives: it is checked again after that, so that a key which is gone stops
 * working. */
#define JWT_TRUST_MAX_MS 300000

struct jwt_rules {
    struct str issuer;
    const struct str *audiences; /* one of them must be among the token's */
    size_t n_audiences;
    struct str tenant_claim; /* empty: tokens do not say; all are of `tenant` */
    struct str role_claim;   /* empty: tokens do not say; all are members */
    struct str tenant;       /* of tokens that name none; absent: they must */
    /* Which ones tokens may be of; none: any. */
    const struct str *tenants, *roles;
    size_t n_tenants, n_roles;
};

/* In the arena given. */
struct jwt_claims {
    struct str issuer, subject, tenant;
    struct str id;    /* jti; absent: none */
    struct str scope; /* as written, parted by blanks; absent: none */
    enum role role;
    int64_t expires_ms;
    int64_t trust_until_ms; /* when to check the token again at the latest */
};

/* Why a token is refused: for the log and for tests, never for whoever sent it. */
enum jwt_fault {
    JWT_OK,
    JWT_TOO_LONG,
    JWT_PARTS,
    JWT_BASE64,
    JWT_HEADER, /* not a JSON object, or a parameter of the wrong type */
    JWT_ALG,    /* none, unknown, or not the key's */
    JWT_TYP,
    JWT_CRIT, /* asks for something we would have to understand */
    JWT_KID,  /* malformed */
    JWT_NO_KEY,
    JWT_SIGNATURE,
    JWT_PAYLOAD, /* not a JSON object */
    JWT_ISS,
    JWT_AUD,
    JWT_EXP, /* none, or no time */
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

/* *ret is filled on JWT_OK only. */
must_check enum jwt_fault jwt_check(const struct jwt_keys *keys, const struct jwt_rules *rules,
                                    struct str token, int64_t now_ms, struct arena *mem,
                                    struct jwt_claims *ret);
/* The same, with the one text that the bearer may read (ERR_UNAUTHENTICATED); the reason goes to
 * the debug log. */
must_check bool jwt_verify(const struct jwt_keys *keys, const struct jwt_rules *rules,
                           struct str token, int64_t now_ms, struct arena *mem,
                           struct jwt_claims *ret, struct error *err);
bool jwt_refuse(enum jwt_fault f, struct error *err);

/* What the token says its issuer is, unproved: good only for choosing the rules to check it by.
 * Absent when it says nothing. */
struct str jwt_claimed_issuer(struct str token, struct arena *mem);

#endif
