/* SPDX-License-Identifier: Apache-2.0 */
/* JSON numbers as decimals in their written form: exact at any size, without conversion. */
#ifndef HOLDFAST_SCHEMA_NUMBER_H
#define HOLDFAST_SCHEMA_NUMBER_H

#include "schema/schema.h"

/* digits * 10^exponent; the digits have no zero at either end.  Zero has no digits. */
struct decimal {
    const char *p, *end; /* first significant digit, past the last; a point may be between */
    size_t n;            /* number of digits */
    int64_t exponent;    /* of the last digit */
    bool negative;       /* false for zero */
};

/* `text` is a JSON number.  false: the exponent is past SCHEMA_EXPONENT_MAX. */
must_check bool decimal_read(struct str text, struct decimal *ret);
int decimal_compare(const struct decimal *a, const struct decimal *b); /* -1, 0, 1 */
static inline bool decimal_is_integer(const struct decimal *d)
{
    return d->n == 0 || d->exponent >= 0;
}
/* Whether value / divisor is an integer; unsure if the divisor has too many digits.  The divisor
 * must not be zero. */
enum schema_answer decimal_divides(const struct decimal *divisor, const struct decimal *value);
/* False: negative or not an integer.  A value that does not fit gives UINT64_MAX. */
must_check bool decimal_to_count(const struct decimal *d, uint64_t *ret);
uint64_t decimal_hash(const struct decimal *d); /* equal numbers have equal hashes */

#endif
