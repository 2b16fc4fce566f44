/* SPDX-License-Identifier: Apache-2.0 */
/* Access tokens of our own: JWTs signed with Ed25519, good for a quarter of an hour, checked by
 * jwt.c as any other issuer's are.  `jti` names the sign-in (a row of user_sessions), `sub` the
 * user; whether both still stand is looked up where the token is proved. */
#ifndef HOLDFAST_IDENTITY_OWN_TOKENS_H
#define HOLDFAST_IDENTITY_OWN_TOKENS_H

#include "identity/jwt.h"
#include "store/rows.h"

#define OWN_ISSUER "holdfast"
#define OWN_TOKEN_MS (INT64_C(15) * 60 * 1000)

struct own_tokens;
/* The seed is the private key; nodes that share a store share it. */
struct own_tokens *own_tokens_new(const uint8_t seed[32]) must_check;
void own_tokens_free(struct own_tokens *o); /* NULL is fine */
/* A digest of the public half. */
void own_tokens_fingerprint(const struct own_tokens *o, uint8_t ret[32]);
/* In mem. */
struct str own_token_mint(struct own_tokens *o, const struct login_row *login,
                          const struct user_row *user, int64_t now_ms, struct arena *mem);
/* Does it say it is ours?  Proves nothing. */
bool own_token_is(struct str token, struct arena *mem);
must_check bool own_token_verify(struct own_tokens *o, struct str token, int64_t now_ms,
                                 struct arena *mem, struct jwt_claims *ret, struct error *err);

#endif
