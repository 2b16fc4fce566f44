/* SPDX-License-Identifier: Apache-2.0 */
/* Password hashes: argon2id, 64 MiB, three passes, a random salt each, in the usual text form
 * ("$argon2id$v=19$…").  Hashing and checking block for a tenth of a second or more, so never call
 * them on the loop. */
#ifndef HOLDFAST_IDENTITY_PASSWORD_H
#define HOLDFAST_IDENTITY_PASSWORD_H

#include "base/error.h"
#include "base/str.h"

#define PASSWORD_MIN 8 /* bytes */
#define PASSWORD_MAX 1024
#define PASSWORD_HASH_TEXT 128

/* Checks length, valid UTF-8 and the absence of control characters. */
must_check bool password_check(struct str password, struct error *err);
must_check bool password_hash(struct str password, char ret[PASSWORD_HASH_TEXT], struct error *err);
/* Takes the same time for every answer.  No password fits an absent hash. */
bool password_fits(struct str password, struct str hash);
/* Whether password_hash() could have written this hash. */
bool password_hash_is_sound(struct str hash);

#endif
