/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords: argon2id, 64 MiB and three passes, a salt of its own for each, in the usual text form
 * ("$argon2id$v=19$…").  Both calls block for a tenth of a second or more: never on the loop. */
#ifndef HOLDFAST_IDENTITY_PASSWORD_H
#define HOLDFAST_IDENTITY_PASSWORD_H

#include "base/error.h"
#include "base/str.h"

#define PASSWORD_MIN 8 /* bytes */
#define PASSWORD_MAX 1024
#define PASSWORD_HASH_TEXT 128

/* Long enough, not too long, valid UTF-8 without control characters. */
must_check bool password_check(struct str password, struct error *err);
must_check bool password_hash(struct str password, char ret[PASSWORD_HASH_TEXT], struct error *err);
/* Costs the same whatever the answer, also for an absent hash, which nothing fits. */
bool password_fits(struct str password, struct str hash);
/* Is this what password_hash() writes? */
bool password_hash_is_sound(struct str hash);

#endif
