/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the records of a request for the credential of that request.
 *
 * Most requests have a credential, and each caller has a different one, so no set of known values
 * is built: the needle is on the stack, takes a few dozen nanoseconds to build, and copies nothing.
 * An accepted credential is a key or a token: only letters, digits and - _ . occur in it.  JSON and
 * percent encoding do not change these, so only base64 has other forms: three, one for each
 * alignment in the encoded text. */
#include "audit/redact_impl.h"

#include "crypto/base64.h"

#define GROUP 3       /* bytes that base64 writes as four characters */
#define STEP 12       /* bytes encoded at a time; most candidates differ in the first step */
#define RAW 3         /* the plain form; a base64 form is the number of bytes that it skips */
#define GROUPS_MOST 8 /* groups tried for one without + and /, which have two spellings */

static uint32_t load(const char *p)
{
    uint32_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

static void add_window(struct needle *n, const char *bytes, size_t offset, unsigned form)
{
    n->windows[n->n++] =
        (struct needle_window){.bytes = load(bytes), .offset = offset, .form = (uint8_t)form};
}

/* Searches from the end: the last groups hold the most random bytes of a key or token. */
static void add_base64(struct needle *n, unsigned cut)
{
    size_t groups = (n->value.n - cut) / GROUP;
    char text[8];

    for (size_t i = 1; i <= groups && i <= GROUPS_MOST; i++) {
        size_t group = groups - i;
        (void)base64_encode(n->value.p + cut + GROUP * group, GROUP, text);
        if (!memchr(text, '+', 4) && !memchr(text, '/', 4)) {
            add_window(n, text, 4 * group, cut);
            return;
        }
    }
}

void needle_init(struct needle *n, struct str value)
{
    n->value = value;
    n->n = 0;
    if (value.n < KNOWN_LEAST)
        return;
    add_window(n, value.p + value.n - SCAN_LETTERS, value.n - SCAN_LETTERS, RAW);
    for (unsigned cut = 0; cut < GROUP; cut++)
        add_base64(n, cut);
}

static char plain_digit(char c)
{
    return (char)(c == '-' ? '+' : c == '_' ? '/' : c);
}

/* Compares only characters that depend on nothing but the credential's own bytes. */
static bool matches_base64(struct str value, struct str in, size_t at, size_t *ret_n)
{
    size_t length = value.n * 4 / GROUP;
    char text[STEP * 4 / GROUP + 8];

    if (in.n - at < length)
        return false;
    *ret_n = length;
    for (size_t done = 0; done < length;) {
        size_t n = value.n < STEP ? value.n : STEP, most = STEP * 4 / GROUP;
        (void)base64_encode(value.p, n, text);
        for (size_t i = 0; i < most && done < length; i++, done++)
            if (plain_digit(in.p[at + done]) != text[i])
                return false;
        value = str_n(value.p + n, value.n - n);
    }
    return true;
}

bool needle_at(const struct needle *n, struct str in, size_t at, size_t *ret_from, size_t *ret_to)
{
    for (size_t i = 0; i < n->n; i++) {
        const struct needle_window *w = &n->windows[i];
        size_t from = at - w->offset, length = n->value.n;
        if (at < w->offset || load(in.p + at) != w->bytes)
            continue;
        bool is_here = w->form == RAW
                           ? in.n - from >= length && memcmp(in.p + from, n->value.p, length) == 0
                           : matches_base64(str_n(n->value.p + w->form, n->value.n - w->form), in,
                                            from, &length);
        if (is_here) {
            *ret_from = from;
            *ret_to = from + length;
            return true;
        }
    }
    return false;
}

static bool has_window(const struct needle *n, const char *p)
{
    uint32_t bytes = load(p);

    for (size_t i = 0; i < n->n; i++)
        if (n->windows[i].bytes == bytes)
            return true;
    return false;
}

static size_t next_by_bytes(const struct needle *n, struct str in, size_t at, size_t end)
{
    uint32_t firsts[256 / 32] = {0};

    for (size_t i = 0; i < n->n; i++) {
        unsigned char first;
        memcpy(&first, &n->windows[i].bytes, 1);
        firsts[first / 32] |= 1u << (first % 32);
    }
    for (; at < end && at + SCAN_LETTERS <= in.n; at++) {
        unsigned char c = (unsigned char)in.p[at];
        if (unlikely(firsts[c / 32] & (1u << (c % 32))) && has_window(n, in.p + at))
            return at;
    }
    return end;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define COMPARED 3 /* letters compared of each window: few other positions match all of them */
#define PLACES 32  /* positions tested together */

AVX2 static size_t next_by_blocks(const struct needle *n, struct str in, size_t at, size_t end)
{
    __m256i letters[NEEDLE_WINDOWS][COMPARED];

    for (size_t i = 0; i < NEEDLE_WINDOWS; i++)
        for (size_t k = 0; k < COMPARED; k++) {
            char bytes[SCAN_LETTERS];
            memcpy(bytes, &n->windows[i < n->n ? i : 0].bytes, sizeof(bytes));
            letters[i][k] = _mm256_set1_epi8(bytes[k]);
        }
    for (; at < end && in.n - at >= PLACES + SCAN_LETTERS; at += PLACES) {
        __m256i text[COMPARED], any = _mm256_setzero_si256();
        for (size_t k = 0; k < COMPARED; k++)
            text[k] = _mm256_loadu_si256((const __m256i *)(in.p + at + k));
        for (size_t i = 0; i < NEEDLE_WINDOWS; i++) {
            __m256i all = _mm256_cmpeq_epi8(text[0], letters[i][0]);
            for (size_t k = 1; k < COMPARED; k++)
                all = _mm256_and_si256(all, _mm256_cmpeq_epi8(text[k], letters[i][k]));
            any = _mm256_or_si256(any, all);
        }
        for (uint32_t places = (uint32_t)_mm256_movemask_epi8(any); unlikely(places != 0);
             places &= places - 1) {
            size_t place = at + (size_t)__builtin_ctz(places);
            if (has_window(n, in.p + place))
                return place < end ? place : end;
        }
    }
    return next_by_bytes(n, in, at, end);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
static size_t next_by_blocks(const struct needle *n, struct str in, size_t at, size_t end)
{
    return next_by_bytes(n, in, at, end);
}

static bool has_avx2(void)
{
    return false;
}
#endif

size_t needle_next(const struct needle *n, struct str in, size_t at, size_t end, bool wide)
{
    if (!n->n)
        return end;
    return wide && has_avx2() ? next_by_blocks(n, in, at, end) : next_by_bytes(n, in, at, end);
}
