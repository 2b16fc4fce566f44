/* SPDX-License-Identifier: Apache-2.0 */
/* Finds positions in a body where a secret may be.  It examines every audited byte.
 *
 * The windows are spread over sixteen buckets, one bit each.  For each of the four letters, a table
 * lookup by the two halves of a byte gives the buckets in which that byte may occur.  A position is
 * a candidate if its four bytes have a bucket in common.  A hash of the four bytes then confirms
 * the candidate.  Buckets are chosen so that ordinary text yields as few candidates as possible. */
#include "audit/redact_impl.h"

#include <pthread.h>
#include <stdlib.h>

#define BLOCK 35         /* 32 positions, and the three bytes after the last */
#define FOLD 0x20202020u /* upper case and lower case have the same hash */
#define GREEDY_MOST 1024 /* windows beyond this are spread round-robin */
#define RUN_WEIGHT 0.01F /* weight of one character, added to the share that passes by letters */
#define N_CLASSES 3      /* which letter may be any byte: none, the last, the first */

static const struct {
    unsigned wild;
    unsigned char mask[SCAN_LETTERS];
} classes[N_CLASSES] = {
    {0, {0xff, 0xff, 0xff, 0xff}}, {8, {0xff, 0xff, 0xff, 0}}, {1, {0, 0xff, 0xff, 0xff}}};
static uint32_t class_masks[N_CLASSES];
/* The frequency in ordinary text of bytes with that high half and a low half from a set.  One table
 * for low halves below 8, one for the others. */
static float weights[16][2][256];

static float weight_of(unsigned c)
{
    if (c == ' ')
        return 0.16F;
    if (c >= 'a' && c <= 'z')
        return strchr("etaonisrhl", (int)c) ? 0.06F : 0.02F;
    if (c >= '0' && c <= '9')
        return 0.008F;
    if (c >= 'A' && c <= 'Z')
        return 0.003F;
    if (c == '_' || c == '"' || c == '\\' || c == ',' || c == ':')
        return 0.02F;
    return c == '-' || c == '.' ? 0.012F : c < 0x80 ? 0.004F : 0.0005F;
}

static void prepare(void)
{
    for (unsigned c = 0; c < 256; c++)
        for (unsigned set = 0; set < 256; set++)
            if (set & (1u << (c & 7)))
                weights[c >> 4][(c >> 3) & 1][set] += weight_of(c);
    for (unsigned i = 0; i < N_CLASSES; i++)
        memcpy(&class_masks[i], classes[i].mask, sizeof(class_masks[i]));
}

void scanner_init(struct scanner *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, prepare);
    memset(s, 0, sizeof(*s));
}

void scanner_copy(struct scanner *s, const struct scanner *from)
{
    *s = *from;
    s->heads = NULL;
    s->room = from->n;
    s->windows = xmalloc((s->room ? s->room : 1) * sizeof(*s->windows));
    memcpy(s->windows, from->windows, from->n * sizeof(*s->windows));
}

void scanner_release(struct scanner *s)
{
    free(s->windows);
    free(s->heads);
    memset(s, 0, sizeof(*s));
}

/* The half bytes that a window accepts at each letter. */
struct halves_wanted {
    uint16_t lows[SCAN_LETTERS], highs[SCAN_LETTERS];
};

static void want(struct halves_wanted *h, unsigned letter, unsigned char c)
{
    h->lows[letter] |= (uint16_t)(1u << (c & 15));
    h->highs[letter] |= (uint16_t)(1u << (c >> 4));
}

static bool is_letter(unsigned char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static struct halves_wanted wanted_by(const char *bytes, unsigned wild, bool any_case)
{
    struct halves_wanted h = {0};

    for (unsigned k = 0; k < SCAN_LETTERS; k++) {
        unsigned char c = (unsigned char)bytes[k];
        if (wild & (1u << k)) {
            h.lows[k] = h.highs[k] = UINT16_MAX;
            continue;
        }
        want(&h, k, c);
        if (any_case && is_letter(c))
            want(&h, k, c ^ 32);
    }
    return h;
}

/* Counts the characters of which a run passes a bucket: every position of such a run would be a
 * candidate. */
static unsigned runs_that_pass(const uint16_t lows[SCAN_LETTERS],
                               const uint16_t highs[SCAN_LETTERS])
{
    unsigned n = 0;

    for (unsigned h = 2; h < 8; h++) {
        unsigned both = UINT16_MAX;
        for (unsigned k = 0; k < SCAN_LETTERS; k++)
            both &= highs[k] & (1u << h) ? lows[k] : 0;
        n += (unsigned)__builtin_popcount(both);
    }
    return n;
}

/* The share of ordinary text that a bucket lets pass.  Runs of dashes, blanks and digits are
 * ordinary too, and weigh more than their letters would by chance. */
static float passes(const uint16_t lows[SCAN_LETTERS], const uint16_t highs[SCAN_LETTERS])
{
    float all = 1, runs = (float)runs_that_pass(lows, highs) * RUN_WEIGHT;

    for (unsigned k = 0; k < SCAN_LETTERS; k++) {
        float sum = 0;
        for (unsigned h = 0; h < 16; h++)
            if (highs[k] & (1u << h))
                sum += weights[h][0][lows[k] & 255] + weights[h][1][lows[k] >> 8];
        all *= sum;
    }
    return all + runs;
}

/* Returns the bucket that the window makes grow least. */
static unsigned bucket_for(const struct scanner *s, const struct halves_wanted *h)
{
    unsigned best = 0;
    float least = 1e9F;

    for (unsigned b = 0; b < SCAN_BUCKETS; b++) {
        uint16_t lows[SCAN_LETTERS], highs[SCAN_LETTERS];
        for (unsigned k = 0; k < SCAN_LETTERS; k++) {
            lows[k] = s->lows[b][k] | h->lows[k];
            highs[k] = s->highs[b][k] | h->highs[k];
        }
        float more = passes(lows, highs) - s->passing[b];
        if (more < least) {
            least = more;
            best = b;
        }
    }
    return best;
}

static uint32_t load(const char *p)
{
    uint32_t x;

    memcpy(&x, p, sizeof(x));
    return x | FOLD;
}

static unsigned class_of(unsigned wild)
{
    unsigned i = 0;

    while (classes[i].wild != wild)
        i++;
    return i;
}

void scanner_add(struct scanner *s, const char *bytes, unsigned wild, bool any_case, size_t offset,
                 enum window_kind kind, size_t item)
{
    struct halves_wanted h = wanted_by(bytes, wild, any_case);
    unsigned b = s->n < GREEDY_MOST ? bucket_for(s, &h) : (unsigned)s->n % SCAN_BUCKETS;
    unsigned class = class_of(wild);

    for (unsigned k = 0; k < SCAN_LETTERS; k++) {
        s->lows[b][k] |= h.lows[k];
        s->highs[b][k] |= h.highs[k];
    }
    s->passing[b] = passes(s->lows[b], s->highs[b]);
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        s->windows = xrealloc(s->windows, s->room * sizeof(*s->windows));
    }
    s->windows[s->n++] = (struct window){.key = load(bytes) & class_masks[class],
                                         .mask = class_masks[class],
                                         .item = (uint32_t)item,
                                         .offset = (uint16_t)offset,
                                         .kind = (uint8_t)kind,
                                         .class = (uint8_t) class};
}

size_t scanner_rarest(struct str text)
{
    size_t best = 0;
    float least = 1e9F;

    for (size_t at = 0; at + SCAN_LETTERS <= text.n && at <= SCAN_OFFSET_MAX; at++) {
        float all = 1;
        for (unsigned k = 0; k < SCAN_LETTERS; k++)
            all *= weight_of((unsigned char)text.p[at + k]);
        if (all < least) {
            least = all;
            best = at;
        }
    }
    return best;
}

static uint32_t hash_of(uint32_t key, unsigned class, unsigned shift)
{
    return ((key ^ (class * 0x85ebca6bu)) * 0x9e3779b1u) >> shift;
}

/* Hashes three folded letters to one of SCAN_SEEN_BITS. */
static inline unsigned seen_bit(uint32_t letters)
{
    return (letters * 0x9e3779b1u) >> (32 - 13);
}
_Static_assert(SCAN_SEEN_BITS == 1 << 13, "seen_bit() gives 13 bits");

static inline unsigned head_bit(uint32_t key)
{
    return seen_bit(key & class_masks[1]);
}

static inline unsigned tail_bit(uint32_t key)
{
    return seen_bit(key & class_masks[2]);
}

void scanner_finish(struct scanner *s)
{
    unsigned bits = 6;

    while (((size_t)1 << bits) < 8 * s->n && bits < 24)
        bits++;
    s->shift = 32 - bits;
    free(s->heads);
    s->heads = xcalloc((size_t)1 << bits, sizeof(*s->heads));
    for (size_t i = 0; i < s->n; i++) {
        struct window *w = &s->windows[i];
        uint32_t *head = &s->heads[hash_of(w->key, w->class, s->shift)];
        w->next = *head;
        *head = (uint32_t)i + 1;
        if (classes[w->class].wild & 1)
            s->tails_seen[tail_bit(w->key) >> 5] |= 1u << (tail_bit(w->key) & 31);
        else
            s->heads_seen[head_bit(w->key) >> 5] |= 1u << (head_bit(w->key) & 31);
    }
    memset(s->low, 0, sizeof(s->low));
    memset(s->high, 0, sizeof(s->high));
    memset(s->by_byte, 0, sizeof(s->by_byte));
    for (unsigned b = 0; b < SCAN_BUCKETS; b++)
        for (unsigned k = 0; k < SCAN_LETTERS; k++) {
            uint8_t bit = (uint8_t)(1u << (b % 8));
            for (unsigned i = 0; i < 16; i++) {
                s->low[b / 8][k][i] |= (s->lows[b][k] >> i) & 1 ? bit : 0;
                s->high[b / 8][k][i] |= (s->highs[b][k] >> i) & 1 ? bit : 0;
            }
            for (unsigned c = 0; c < 256; c++)
                if ((s->lows[b][k] >> (c & 15)) & (s->highs[b][k] >> (c >> 4)) & 1)
                    s->by_byte[k][c] |= 1u << b;
        }
}

static inline const struct window *first_at(const struct scanner *s, const char *p, unsigned class)
{
    uint32_t key = load(p) & class_masks[class];
    uint32_t i = s->heads[hash_of(key, class, s->shift)];

    for (; i; i = s->windows[i - 1].next)
        if (s->windows[i - 1].key == key && s->windows[i - 1].class == class)
            return &s->windows[i - 1];
    return NULL;
}

static inline bool has_window(const struct scanner *s, const char *p)
{
    uint32_t key = load(p);
    unsigned head = head_bit(key), tail = tail_bit(key);

    return (s->heads_seen[head >> 5] & (1u << (head & 31)) &&
            (first_at(s, p, 0) || first_at(s, p, 1))) ||
           (s->tails_seen[tail >> 5] & (1u << (tail & 31)) && first_at(s, p, 2));
}

bool scanner_each(const struct scanner *s, struct str in, size_t at, enum window_kind kind,
                  bool (*take)(void *arg, const struct window *w), void *arg)
{
    for (unsigned class = 0; class < N_CLASSES; class ++) {
        const struct window *first = first_at(s, in.p + at, class);
        for (const struct window *w = first; w; w = w->next ? &s->windows[w->next - 1] : NULL)
            if (w->key == first->key && w->class == class && w->kind == kind && take(arg, w))
                return true;
    }
    return false;
}

static size_t next_by_bytes(const struct scanner *s, struct str in, size_t at, size_t end)
{
    const unsigned char *p = (const unsigned char *)in.p;

    for (; at < end && at + SCAN_LETTERS <= in.n; at++)
        if (unlikely(s->by_byte[0][p[at]] & s->by_byte[1][p[at + 1]]) &&
            (s->by_byte[0][p[at]] & s->by_byte[1][p[at + 1]] & s->by_byte[2][p[at + 2]] &
             s->by_byte[3][p[at + 3]]) &&
            has_window(s, in.p + at))
            return at;
    return end;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* 32 bytes split into halves, as the table lookups need them. */
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

/* The buckets in which each of the 32 bytes may occur as letter k. */
AVX2 static inline __m256i buckets_of(const struct scanner *s, unsigned group, unsigned k,
                                      struct halves bytes)
{
    __m256i l = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)s->low[group][k]));
    __m256i h = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)s->high[group][k]));

    return _mm256_and_si256(_mm256_shuffle_epi8(l, bytes.low), _mm256_shuffle_epi8(h, bytes.high));
}

/* Returns a bit for each of the 32 positions at p that is a candidate; reads 35 bytes. */
AVX2 static inline uint32_t places_at(const struct scanner *s, const char *p)
{
    struct halves b[SCAN_LETTERS] = {halves_at(p), halves_at(p + 1), halves_at(p + 2),
                                     halves_at(p + 3)};
    __m256i any = _mm256_setzero_si256();

    for (unsigned g = 0; g < SCAN_GROUPS; g++)
        any = _mm256_or_si256(
            any, _mm256_and_si256(
                     _mm256_and_si256(buckets_of(s, g, 0, b[0]), buckets_of(s, g, 1, b[1])),
                     _mm256_and_si256(buckets_of(s, g, 2, b[2]), buckets_of(s, g, 3, b[3]))));
    __m256i none = _mm256_cmpeq_epi8(any, _mm256_setzero_si256());
    return ~(uint32_t)_mm256_movemask_epi8(none);
}

/* Returns the first of these candidates in a block at which there is a window; SIZE_MAX if there is
 * none. */
static inline size_t first_place(const struct scanner *s, struct str in, size_t block,
                                 uint32_t places)
{
    do {
        size_t place = block + (size_t)__builtin_ctz(places);
        if (has_window(s, in.p + place))
            return place;
        places &= places - 1;
    } while (places);
    return SIZE_MAX;
}

AVX2 static size_t next_by_blocks(const struct scanner *s, struct str in, size_t at, size_t end,
                                  struct scan_cursor *c)
{
    size_t place;

    if (c->is_filled && at >= c->block && at - c->block < 32) {
        uint32_t left = c->places & (UINT32_MAX << (at - c->block));
        place = left ? first_place(s, in, c->block, left) : SIZE_MAX;
        if (place != SIZE_MAX)
            return place < end ? place : end;
        at = c->block + 32;
    }
    for (; at < end && in.n - at >= BLOCK; at += 32) {
        uint32_t places = places_at(s, in.p + at);
        if (!places)
            continue;
        place = first_place(s, in, at, places);
        if (place != SIZE_MAX) {
            *c = (struct scan_cursor){at, places, true};
            return place < end ? place : end;
        }
    }
    return next_by_bytes(s, in, at, end);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
static size_t next_by_blocks(const struct scanner *s, struct str in, size_t at, size_t end,
                             struct scan_cursor *c unused_arg)
{
    return next_by_bytes(s, in, at, end);
}

static bool has_avx2(void)
{
    return false;
}
#endif

size_t scanner_next(const struct scanner *s, struct str in, size_t at, size_t end,
                    struct scan_cursor *c, bool wide)
{
    return wide && has_avx2() ? next_by_blocks(s, in, at, end, c) : next_by_bytes(s, in, at, end);
}

static struct scanner table_scanner;

/* The scanner finds a shape by the rarest four bytes of its prefix. */
static void add_shape(size_t i)
{
    const struct redact_shape *shape = &redact_shapes[i];
    char bytes[SCAN_LETTERS];

    memset(bytes, '?', sizeof(bytes));
    if (shape->prefix.n == 2) { /* hexadecimal digits follow */
        memcpy(bytes, shape->prefix.p, 2);
        for (const char *digit = "0123456789abcdef"; *digit; digit++) {
            bytes[2] = *digit;
            scanner_add(&table_scanner, bytes, 8, false, 0, WINDOW_SHAPE, i);
        }
        return;
    }
    if (shape->prefix.n == 3) {
        memcpy(bytes, shape->prefix.p, 3);
        scanner_add(&table_scanner, bytes, 8, shape->any_case, 0, WINDOW_SHAPE, i);
        return;
    }
    size_t at = scanner_rarest(shape->prefix);
    scanner_add(&table_scanner, shape->prefix.p + at, 0, shape->any_case, at, WINDOW_SHAPE, i);
}

static void prepare_table(void)
{
    scanner_init(&table_scanner);
    for (size_t i = 0; i < redact_n_name_windows; i++) {
        const char *w = redact_name_windows[i];
        scanner_add(&table_scanner, w,
                    w[0] == '?'   ? 1
                    : w[3] == '?' ? 8
                                  : 0,
                    true, 0, WINDOW_NAME, i);
    }
    for (size_t i = 0; i < redact_n_shapes; i++)
        add_shape(i);
    scanner_finish(&table_scanner);
}

const struct scanner *redact_table_scanner(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, prepare_table);
    return &table_scanner;
}
