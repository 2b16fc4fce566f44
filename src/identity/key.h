/* SPDX-License-Identifier: Apache-2.0 */
/* API keys: "hf_" + a public id of 12 characters [a-z0-9] + "_" + 256 random bits in base64url.
 * The id finds the row.  The row holds only the SHA-256 of the whole key.  (256 random bits need no
 * slow hash, because they cannot be guessed.) */
#ifndef HOLDFAST_IDENTITY_KEY_H
#define HOLDFAST_IDENTITY_KEY_H

#include "base/arena.h"
#include "base/error.h"
#include "store/rows.h"

#define KEY_ID_LENGTH 12
#define KEY_LENGTH 59
#define KEY_PREFIX "hf_"
/* How far last_used_ms of a row may lag behind. */
#define KEY_USED_EVERY_MS (5 * 60 * 1000)

struct key_text {
    char text[KEY_LENGTH + 1]; /* the caller wipes it after showing it */
    char id[KEY_ID_LENGTH + 1];
    uint8_t hash[32];
};
void key_make(struct key_text *ret);
/* Whether the text has the form of a key; *ret_id is its public part. */
must_check bool key_parse(struct str text, struct str *ret_id);
bool key_id_is_valid(struct str id);
/* Whether `text` is the key of this row (NULL: no such row) and is still valid.  Unknown and wrong
 * keys get the same error after the same time. */
must_check bool key_check(const struct key_row *row, struct str text, int64_t now_ms,
                          struct error *err);
/* The principal of the key, in mem. */
must_check bool key_principal(const struct key_row *row, struct arena *mem, struct principal *ret,
                              struct error *err);

#endif
