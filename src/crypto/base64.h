/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 in its two alphabets. */
#ifndef HOLDFAST_CRYPTO_BASE64_H
#define HOLDFAST_CRYPTO_BASE64_H

#include "base/arena.h"
#include "base/str.h"

size_t base64url_encode(const void *p, size_t n,
                        char *ret_text); /* no padding; NUL-terminated; returns length */
size_t base64_encode(const void *p, size_t n, char *ret_text); /* standard, padded */
/* Strict: standard alphabet, padding required, no stray bits.  Absent on failure. */
struct str base64_decode(struct str text, struct arena *mem);
/* Strict likewise: url alphabet, no padding, no stray bits.  Also NUL-terminated. */
struct str base64url_decode(struct str text, struct arena *mem);
/* The six bits of one digit of the url alphabet; -1: the character is not a digit. */
int base64url_digit(char c);

#endif
