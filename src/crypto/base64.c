/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 in its two alphabets.  Encoding need not be constant-time: secrets are compared by hash or
 * with crypto_equal(). */
#include "crypto/base64.h"

static const char url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char standard_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t encode(const void *p, size_t n, const char *alphabet, bool padded, char *out)
{
    const uint8_t *in = p;
    char *start = out;

    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t group = (uint32_t)in[i] << 16 | (uint32_t)(left > 1 ? in[i + 1] : 0) << 8 |
                         (left > 2 ? in[i + 2] : 0);
        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        if (left > 1)
            *out++ = alphabet[group >> 6 & 63];
        else if (padded)
            *out++ = '=';
        if (left > 2)
            *out++ = alphabet[group & 63];
        else if (padded)
            *out++ = '=';
    }
    *out = '\0';
    return (size_t)(out - start);
}

size_t base64url_encode(const void *p, size_t n, char *ret_text)
{
    return encode(p, n, url_alphabet, false, ret_text);
}

size_t base64_encode(const void *p, size_t n, char *ret_text)
{
    return encode(p, n, standard_alphabet, true, ret_text);
}

static int digit_of(char c, const char *alphabet)
{
    const char *at = c ? strchr(alphabet, c) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

int base64url_digit(char c)
{
    return digit_of(c, url_alphabet);
}

/* Decodes one group of four; `pad` of its digits are '=' or left out.  Returns false on a bad digit
 * or stray bits. */
static bool decode_group(const char *in, size_t pad, const char *alphabet, uint8_t *out)
{
    uint32_t group = 0;

    for (size_t i = 0; i < 4 - pad; i++) {
        int digit = digit_of(in[i], alphabet);
        if (digit < 0)
            return false;
        group |= (uint32_t)digit << (18 - 6 * i);
    }
    if ((pad == 1 && (group & 0xff)) || (pad == 2 && (group & 0xffff)))
        return false;
    for (size_t i = 0; i < 3 - pad; i++)
        out[i] = (uint8_t)(group >> (16 - 8 * i));
    return true;
}

struct str base64_decode(struct str text, struct arena *mem)
{
    size_t pad = 0, n;
    uint8_t *out;

    if (!text.p || text.n % 4 != 0)
        return STR_NONE;
    while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
        pad++;
    n = text.n / 4 * 3 - pad;
    out = arena_alloc(mem, n + 1);
    for (size_t i = 0; i < text.n; i += 4)
        if (!decode_group(text.p + i, i + 4 == text.n ? pad : 0, standard_alphabet,
                          out + i / 4 * 3))
            return STR_NONE;
    out[n] = 0;
    return str_n((const char *)out, n);
}

struct str base64url_decode(struct str text, struct arena *mem)
{
    size_t pad = text.n % 4 ? 4 - text.n % 4 : 0, n;
    uint8_t *out;

    if (!text.p || pad == 3)
        return STR_NONE;
    n = (text.n + pad) / 4 * 3 - pad;
    out = arena_alloc(mem, n + 1);
    for (size_t i = 0; i < text.n; i += 4)
        if (!decode_group(text.p + i, text.n - i < 4 ? pad : 0, url_alphabet, out + i / 4 * 3))
            return STR_NONE;
    out[n] = 0;
    return str_n((const char *)out, n);
}
