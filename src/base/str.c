/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that are too long to be inline in str.h.  Views only: nothing here allocates. */
#include "base/str.h"

static unsigned char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : (unsigned char)c;
}

/* Compares eight bytes at once.  They may differ in the case bit, and only where there is a letter:
 * adding carries into the high bit of a byte from 'a' on, and from '{' on. */
static bool ieq8(const char *a, const char *b)
{
    const uint64_t ones = 0x0101010101010101, high = 0x80 * ones;
    uint64_t x, y, differ, small, letter;

    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    differ = x ^ y;
    if (differ & ~(0x20 * ones))
        return false;
    small = (x | 0x20 * ones) & ~high;
    letter = (small + (0x80 - 'a') * ones) & ~(small + (0x80 - '{') * ones) & ~x & high;
    return (differ & ~(letter >> 2)) == 0;
}

bool str_ieq(struct str a, struct str b)
{
    size_t i = 0;

    if (a.n != b.n)
        return false;
    for (; a.n - i >= 8; i += 8)
        if (!ieq8(a.p + i, b.p + i))
            return false;
    if (a.n >= 8) /* the rest; compares some bytes twice */
        return i == a.n || ieq8(a.p + a.n - 8, b.p + a.n - 8);
    for (; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

bool str_icontains(struct str s, struct str part)
{
    for (size_t i = 0; i + part.n <= s.n; i++)
        if (str_ieq(str_n(s.p + i, part.n), part))
            return true;
    return false;
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;

    if (order != 0)
        return order < 0 ? -1 : 1;
    return a.n < b.n ? -1 : a.n > b.n;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct str str_trim(struct str s)
{
    while (s.n > 0 && is_blank(s.p[0]))
        s = str_n(s.p + 1, s.n - 1);
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

struct str str_cut(struct str s, size_t max)
{
    if (s.n <= max)
        return s;
    while (max > 0 && ((unsigned char)s.p[max] & 0xc0) == 0x80)
        max--;
    return str_n(s.p, max);
}

size_t str_find(struct str s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

struct str str_split(struct str *rest, char sep)
{
    size_t at = str_find(*rest, sep);
    struct str head = str_n(rest->p, at);

    *rest = at < rest->n ? str_n(rest->p + at + 1, rest->n - at - 1) : STR_NONE;
    return head;
}

char *str_put_u64(char *to, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    memcpy(to, digits + at, sizeof(digits) - at);
    return to + (sizeof(digits) - at);
}

bool str_to_u64(struct str s, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (value > max)
        return false;
    *ret = value;
    return true;
}

/* Names are short.  A longer name counts as far, which bounds the work. */
#define DISTANCE_LONGEST 64

unsigned str_distance(struct str a, struct str b, unsigned cap)
{
    unsigned row[DISTANCE_LONGEST + 1];
    size_t gap = a.n > b.n ? a.n - b.n : b.n - a.n;

    if (a.n > DISTANCE_LONGEST || b.n > DISTANCE_LONGEST || gap >= cap)
        return str_eq(a, b) ? 0 : cap;
    for (unsigned j = 0; j <= b.n; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.n; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.n; j++) {
            unsigned best = diagonal + (lower(a.p[i - 1]) != lower(b.p[j - 1]));
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b.n] < cap ? row[b.n] : cap;
}
