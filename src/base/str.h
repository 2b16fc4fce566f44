/* SPDX-License-Identifier: Apache-2.0 */
/* (pointer, length) views of bytes: passed by value, never owning, not NUL-terminated.
 * An absent value has p == NULL; an empty one has p != NULL and n == 0. */
#ifndef HOLDFAST_BASE_STR_H
#define HOLDFAST_BASE_STR_H

#include "base/base.h"

#include <string.h>

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_NONE ((struct str){NULL, 0})
/* For "%.*s": printf("%.*s", STR_ARG(s)). */
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct str str_of(const char *cstr)
{
    return cstr ? (struct str){cstr, strlen(cstr)} : STR_NONE;
}
static inline struct str str_n(const char *p, size_t n)
{
    return (struct str){p, n};
}
static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n && memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0;
}
static inline bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}
/* ASCII case only. */
bool str_ieq(struct str a, struct str b);
bool str_icontains(struct str s, struct str part); /* ASCII case only */
int str_cmp(struct str a, struct str b);
struct str str_trim(struct str s); /* SP and HTAB off both ends */
/* At most `max` bytes of UTF-8, never half a character. */
struct str str_cut(struct str s, size_t max);
/* Position of the first `c`, or s.n. */
size_t str_find(struct str s, char c);
/* Cuts *rest at the first `sep`: returns the part before, leaves the part after (absent at the
 * end). */
struct str str_split(struct str *rest, char sep);
/* Writes the decimal digits, at most 20, without a NUL; returns the place behind them. */
char *str_put_u64(char *to, uint64_t value);
/* Decimal digits only, no sign, no blanks, <= max; *ret untouched on failure. */
must_check bool str_to_u64(struct str s, uint64_t max, uint64_t *ret);
/* Edit distance for did-you-mean, capped: returns `cap` when it is at least that far. */
unsigned str_distance(struct str a, struct str b, unsigned cap);

#endif
