/* SPDX-License-Identifier: Apache-2.0 */
/* A strict UTF-8 decoder: overlong forms, surrogates and anything beyond U+10FFFF are invalid. */
#ifndef HOLDFAST_BASE_UTF8_H
#define HOLDFAST_BASE_UTF8_H

#include "base/str.h"

/* Returns the length of the character at p (1 to 4 bytes), or 0 when it is not valid.  p < end. */
static inline size_t utf8_decode(const char *p, const char *end, uint32_t *ret_code)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t left = (size_t)(end - p);
    uint32_t c = u[0];

    if (c < 0x80) {
        *ret_code = c;
        return 1;
    }
    if (c >= 0xc2 && c < 0xe0 && left >= 2 && (u[1] & 0xc0) == 0x80) {
        *ret_code = (c & 0x1f) << 6 | (u[1] & 0x3fu);
        return 2;
    }
    if (c >= 0xe0 && c < 0xf0 && left >= 3 && (u[1] & 0xc0) == 0x80 && (u[2] & 0xc0) == 0x80) {
        c = (c & 0x0f) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
        *ret_code = c;
        return c >= 0x800 && (c < 0xd800 || c > 0xdfff) ? 3 : 0;
    }
    if (c >= 0xf0 && c < 0xf5 && left >= 4 && (u[1] & 0xc0) == 0x80 && (u[2] & 0xc0) == 0x80 &&
        (u[3] & 0xc0) == 0x80) {
        c = (c & 0x07) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
        *ret_code = c;
        return c >= 0x10000 && c <= 0x10ffff ? 4 : 0;
    }
    return 0;
}

/* Writes 1 to 4 bytes; `code` is a scalar value (no surrogate, at most U+10FFFF). */
static inline size_t utf8_encode(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Reads eight bytes at a time while they are ASCII, as most text is. */
static inline bool utf8_is_valid(struct str s)
{
    uint64_t word;
    uint32_t code;

    for (size_t i = 0, n; i < s.n; i += n) {
        if (s.n - i >= sizeof(word)) {
            memcpy(&word, s.p + i, sizeof(word));
            n = sizeof(word);
            if (!(word & UINT64_C(0x8080808080808080)))
                continue;
        }
        if (!(n = utf8_decode(s.p + i, s.p + s.n, &code)))
            return false;
    }
    return true;
}

/* How many characters a valid text has. */
static inline size_t utf8_count(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

/* Characters that reorder text on a screen. */
static inline bool utf8_is_bidi_control(uint32_t c)
{
    return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

#endif
