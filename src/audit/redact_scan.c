/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a body may a secret's name or shape begin?  Asked of every byte that is audited, so it
 * is asked 32 bytes at a time where the processor has AVX2, byte by byte elsewhere.  Both only
 * choose the places at which redact_may_begin() is asked; that a place is passed over means that it
 * would have said no.
 *
 * The beginnings are spread over eight buckets, one bit each.  For each of the four letters a table
 * tells from the two halves of a byte in which buckets it may stand there; a place is worth asking
 * when the four bytes from it on have a bucket in common.  Separators do not count as letters: a
 * second byte that is one is passed over and the third taken for it; after a later one the rest is
 * not looked at. */
#include "audit/redact_impl.h"

#include <pthread.h>

#define LETTERS 4
#define BLOCK 35 /* 32 places, and the three bytes behind the last */
#define SEPARATORS "-_ .\\"

/* For each letter of a beginning the bytes it may be; "*" is any. */
static const struct beginning {
    uint8_t bucket;
    const char *letters[LETTERS];
} beginnings[] = {
    {0, {"p", "ar", "si", "sv"}},   /* pass, priv */
    {1, {"s", "e", "c", "r"}},      /* secr */
    {1, {"s", "k", "-_", "*"}},     /* sk-, sk_ */
    {2, {"a", "up", "ti", "hk"}},   /* auth, apik */
    {3, {"c", "or", "oe", "kd"}},   /* cook, cred */
    {4, {"tb", "oe", "ka", "er"}},  /* toke, bear */
    {5, {"g", "il", "tp", "ha"}},   /* gith, glpa */
    {6, {"xe", "oy", "xj", "*"}},   /* xox?, eyJ */
    {7, {"g-\\", "h-u", "*", "*"}}, /* gh?_, --, \u */
};

static uint8_t by_byte[LETTERS][256];               /* buckets of a byte at each letter */
static uint8_t low[LETTERS][16], high[LETTERS][16]; /* the same by half bytes, and a little more */
/* Separators by half bytes, exactly: a bit for each value of the high half that one has. */
static uint8_t separator_low[16], separator_high[16];

static void allow(unsigned letter, unsigned char c, unsigned bucket)
{
    unsigned char upper = c >= 'a' && c <= 'z' ? c - 32 : c;
    by_byte[letter][c] |= (uint8_t)(1u << bucket);
    by_byte[letter][upper] |= (uint8_t)(1u << bucket);
}

static void prepare(void)
{
    for (size_t i = 0; i < countof(beginnings); i++)
        for (unsigned k = 0; k < LETTERS; k++)
            for (const char *p = beginnings[i].letters[k]; *p; p++)
                for (unsigned c = *p == '*' ? 0 : (unsigned char)*p;
                     c <= (*p == '*' ? 255 : (unsigned char)*p); c++)
                    allow(k, (unsigned char)c, beginnings[i].bucket);
    for (const char *p = SEPARATORS; *p; p++) {
        separator_low[*p & 15] |= (uint8_t)(1u << (*p >> 4));
        separator_high[*p >> 4] |= (uint8_t)(1u << (*p >> 4));
    }
    for (unsigned k = 0; k < LETTERS; k++)
        for (unsigned c = 0; c < 256; c++) {
            low[k][c & 15] |= by_byte[k][c];
            high[k][c >> 4] |= by_byte[k][c];
        }
}

/* One by one: what can begin with this byte at all is asked. */
static bool scan_bytes(struct str body, size_t from)
{
    for (size_t i = from; i < body.n; i++)
        if (unlikely(by_byte[0][(unsigned char)body.p[i]]) && redact_may_begin(body, i))
            return true;
    return false;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* 32 bytes by their halves, which is how tables are asked. */
struct halves {
    __m256i low, high;
};

AVX2 static inline struct halves halves_at(const char *p)
{
    const __m256i half = _mm256_set1_epi8(15);
    __m256i bytes = _mm256_loadu_si256((const __m256i *)p);
    return (struct halves){_mm256_and_si256(bytes, half),
                           _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half)};
}

AVX2 static inline __m256i look_up(const uint8_t by_low[16], const uint8_t by_high[16],
                                   struct halves bytes)
{
    __m256i l = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)by_low));
    __m256i h = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)by_high));
    return _mm256_and_si256(_mm256_shuffle_epi8(l, bytes.low), _mm256_shuffle_epi8(h, bytes.high));
}

/* In which buckets each of the 32 bytes may stand for letter k. */
AVX2 static inline __m256i buckets_of(struct halves bytes, unsigned k)
{
    return look_up(low[k], high[k], bytes);
}

/* All bits where a byte is a separator. */
AVX2 static inline __m256i separators_of(struct halves bytes)
{
    __m256i none =
        _mm256_cmpeq_epi8(look_up(separator_low, separator_high, bytes), _mm256_setzero_si256());
    return _mm256_xor_si256(none, _mm256_set1_epi8(-1));
}

/* A bit for each of the 32 places at p that is worth asking; reads 35 bytes. */
AVX2 static inline uint32_t places_at(const char *p)
{
    struct halves b0 = halves_at(p), b1 = halves_at(p + 1), b2 = halves_at(p + 2),
                  b3 = halves_at(p + 3);
    __m256i sep1 = separators_of(b1), sep2 = separators_of(b2), sep3 = separators_of(b3);
    __m256i first = buckets_of(b0, 0), second = buckets_of(b1, 1);
    __m256i third = _mm256_or_si256(buckets_of(b2, 2), sep2);
    __m256i fourth = _mm256_or_si256(_mm256_or_si256(buckets_of(b3, 3), sep3), sep2);
    __m256i later = _mm256_and_si256(sep1, _mm256_or_si256(buckets_of(b2, 1), sep2));
    __m256i rest =
        _mm256_or_si256(_mm256_and_si256(second, _mm256_and_si256(third, fourth)), later);
    __m256i none = _mm256_cmpeq_epi8(_mm256_and_si256(first, rest), _mm256_setzero_si256());
    return ~(uint32_t)_mm256_movemask_epi8(none);
}

AVX2 static bool scan_block(struct str body, size_t at)
{
    for (uint32_t places = places_at(body.p + at); places; places &= places - 1)
        if (redact_may_begin(body, at + (size_t)__builtin_ctz(places)))
            return true;
    return false;
}

/* The last block overlaps the one before it, so that only three bytes are left over. */
AVX2 static bool scan_blocks(struct str body)
{
    for (size_t at = 0; body.n - at > BLOCK; at += 32)
        if (scan_block(body, at))
            return true;
    return scan_block(body, body.n - BLOCK) || scan_bytes(body, body.n - 3);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
static bool scan_blocks(struct str body)
{
    return scan_bytes(body, 0);
}

static bool has_avx2(void)
{
    return false;
}
#endif

bool redact_scan_with(struct str body, bool blocks)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    return blocks && body.n >= BLOCK && has_avx2() ? scan_blocks(body) : scan_bytes(body, 0);
}

bool redact_scan(struct str body)
{
    return redact_scan_with(body, true);
}
