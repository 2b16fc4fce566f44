/* SPDX-License-Identifier: Apache-2.0 */
/* API keys: "hf_" + a public id of 12 characters [a-z0-9] + "_" + 256 random bits in base64url.
 * The id finds the row; the row holds the SHA-256 of the whole text and nothing it could be made
 * from.  (256 random bits need no slow hash, and nobody can guess their way to a digest.) */
#ifndef HOLDFAST_IDENTITY_KEY_H
#define HOLDFAST_IDENTITY_KEY_H

#include "base/arena.h"
#include "base/error.h"
#include "store/rows.h"

#define KEY_ID_LENGTH 12
#define KEY_LENGTH 59
#define KEY_PREFIX "hf_"
/* How far behind last_used_ms of a row may be. */
#define KEY_USED_EVERY_MS (5 * 60 * 1000)

struct key_text {
    char text[KEY_LENGTH + 1]; /* to be wiped by whoever has shown it */
    char id[KEY_ID_LENGTH + 1];
    uint8_t hash[32];
};
void key_make(struct key_text *ret);
/* Whether it has the form of a key; *ret_id is the part of it that may be shown. */
must_check bool key_parse(struct str text, struct str *ret_id);
bool key_id_is_valid(struct str id);
/* Is `text` the key of this row (NULL: there is none), and does it still hold?  The texts of
 * unknown and wrong ones are the same, and take as long. */
must_check bool key_check(const struct key_row *row, struct str text, int64_t now_ms,
                          struct error *err);
/* What it proves, in mem. */
must_check bool key_principal(const struct key_row *row, struct arena *mem, struct principal *ret,
                              struct error *err);

#endif
