/* SPDX-License-Identifier: Apache-2.0 */
/* Names that Holdfast mints: 256 random bits in base64url.  A name is not a credential: its holder
 * must still authenticate as its owner. */
#ifndef HOLDFAST_CRYPTO_TOKEN_H
#define HOLDFAST_CRYPTO_TOKEN_H

#include "base/arena.h"
#include "base/str.h"

#define HANDLE_LENGTH 47 /* "ses_" + 43 */
#define TRANSPORT_ID_LENGTH 43
void token_handle(char ret_text[HANDLE_LENGTH + 1]);
void token_transport_id(char ret_text[TRANSPORT_ID_LENGTH + 1]);
bool token_looks_like_handle(struct str s);
bool token_looks_like_transport_id(struct str s);
size_t base64url_encode(const void *p, size_t n,
                        char *ret_text); /* no padding; NUL-terminated; returns length */
size_t base64_encode(const void *p, size_t n, char *ret_text); /* standard, padded */
/* Strict: standard alphabet, padding required, no stray bits.  Absent on failure. */
struct str base64_decode(struct str text, struct arena *mem);
/* Strict likewise: url alphabet, no padding, no stray bits.  Also NUL-terminated. */
struct str base64url_decode(struct str text, struct arena *mem);

#endif
