/* SPDX-License-Identifier: Apache-2.0 */
/* Access tokens that Holdfast issues: JWTs signed with Ed25519, valid for 15 minutes.  jwt.c checks
 * them like tokens of other issuers.  `jti` is the id of the sign-in (a row of user_sessions),
 * `sub` the user.  proof.c looks up both. */
#ifndef HOLDFAST_IDENTITY_OWN_TOKENS_H
#define HOLDFAST_IDENTITY_OWN_TOKENS_H

#include "identity/jwt.h"
#include "store/rows.h"

#define OWN_ISSUER "holdfast"
#define OWN_TOKEN_MS (INT64_C(15) * 60 * 1000)

struct own_tokens;
/* The seed is the private key.  Nodes that share a store share the seed. */
struct own_tokens *own_tokens_new(const uint8_t seed[32]) must_check;
void own_tokens_free(struct own_tokens *o); /* NULL is fine */
/* A digest of the public key. */
void own_tokens_fingerprint(const struct own_tokens *o, uint8_t ret[32]);
/* In mem. */
struct str own_token_mint(struct own_tokens *o, const struct login_row *login,
                          const struct user_row *user, int64_t now_ms, struct arena *mem);
/* Whether the unverified issuer claim is OWN_ISSUER. */
bool own_token_is(struct str token, struct arena *mem);
must_check bool own_token_verify(struct own_tokens *o, struct str token, int64_t now_ms,
                                 struct arena *mem, struct jwt_claims *ret, struct error *err);

#endif
