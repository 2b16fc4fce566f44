/* SPDX-License-Identifier: Apache-2.0 */
/* Decimals by their text.  Because neither end has zeros, two numbers are equal exactly if sign,
 * digits and exponent are equal.  A number whose last digit has a lower exponent than that of a
 * divisor is not a multiple of it. */
#include "schema/number.h"

#include "base/map.h"

/* The part after the sign and before the exponent: digits with at most one point. */
static struct str mantissa(struct str text)
{
    return str_n(text.p, str_find(str_n(text.p, str_find(text, 'e')), 'E'));
}

static bool read_exponent(struct str text, int64_t *ret)
{
    bool negative = text.n && text.p[0] == '-';
    int64_t value = 0;

    for (size_t i = text.n && (text.p[0] == '-' || text.p[0] == '+'); i < text.n; i++) {
        value = value * 10 + (text.p[i] - '0');
        if (value > SCHEMA_EXPONENT_MAX)
            return false;
    }
    *ret = negative ? -value : value;
    return true;
}

static size_t count_digits(const char *p, const char *end)
{
    return (size_t)(end - p) - (memchr(p, '.', (size_t)(end - p)) != NULL);
}

bool decimal_read(struct str text, struct decimal *ret)
{
    bool negative = text.n && text.p[0] == '-';
    struct str body = mantissa(str_n(text.p + negative, text.n - negative));
    const char *stop = body.p + body.n, *p = body.p, *end = stop;
    const char *point = memchr(body.p, '.', body.n);
    size_t rest = text.n - negative - body.n;
    int64_t exponent = 0;

    while (p < end && (*p == '0' || *p == '.'))
        p++;
    while (end > p && (end[-1] == '0' || end[-1] == '.'))
        end--;
    if (p == end) {
        *ret = (struct decimal){.p = body.p, .end = body.p};
        return true;
    }
    if (rest > 1 && !read_exponent(str_n(stop + 1, rest - 1), &exponent))
        return false;
    exponent += (int64_t)count_digits(end, stop);
    exponent -= point ? stop - point - 1 : 0;
    *ret = (struct decimal){p, end, count_digits(p, end), exponent, negative};
    return true;
}

static int next_digit(const char **p, const char *end)
{
    if (*p < end && **p == '.')
        (*p)++;
    return *p < end ? *(*p)++ - '0' : 0;
}

static int compare_digits(const struct decimal *a, const struct decimal *b)
{
    const char *p = a->p, *q = b->p;
    size_t n = a->n > b->n ? a->n : b->n;

    for (size_t i = 0; i < n; i++) {
        int x = next_digit(&p, a->end), y = next_digit(&q, b->end);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

int decimal_compare(const struct decimal *a, const struct decimal *b)
{
    int64_t size_a = a->exponent + (int64_t)a->n, size_b = b->exponent + (int64_t)b->n;
    int sign_a = a->n == 0 ? 0 : a->negative ? -1 : 1;
    int sign_b = b->n == 0 ? 0 : b->negative ? -1 : 1;

    if (sign_a != sign_b)
        return sign_a < sign_b ? -1 : 1;
    if (sign_a == 0)
        return 0;
    if (size_a != size_b)
        return (size_a < size_b ? -1 : 1) * sign_a;
    return compare_digits(a, b) * sign_a;
}

static uint64_t multiply_mod(uint64_t a, uint64_t b, uint64_t m)
{
    return (uint64_t)((unsigned __int128)a * b % m);
}

static uint64_t power_of_ten_mod(uint64_t exponent, uint64_t m)
{
    uint64_t power = 1 % m, base = 10 % m;

    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            power = multiply_mod(power, base, m);
        base = multiply_mod(base, base, m);
    }
    return power;
}

enum schema_answer decimal_divides(const struct decimal *divisor, const struct decimal *value)
{
    const char *p = divisor->p;
    uint64_t m = 0, left = 0;

    if (value->n == 0)
        return SCHEMA_VALID;
    if (divisor->n == 0 || divisor->n > SCHEMA_DIVISOR_MAX)
        return SCHEMA_UNSURE;
    if (value->exponent < divisor->exponent)
        return SCHEMA_INVALID;
    for (size_t i = 0; i < divisor->n; i++)
        m = m * 10 + (uint64_t)next_digit(&p, divisor->end);
    if (m == 0)
        return SCHEMA_UNSURE;
    p = value->p;
    for (size_t i = 0; i < value->n; i++)
        left =
            (uint64_t)(((unsigned __int128)left * 10 + (uint64_t)next_digit(&p, value->end)) % m);
    left =
        multiply_mod(left, power_of_ten_mod((uint64_t)(value->exponent - divisor->exponent), m), m);
    return left == 0 ? SCHEMA_VALID : SCHEMA_INVALID;
}

bool decimal_to_count(const struct decimal *d, uint64_t *ret)
{
    const char *p = d->p;
    uint64_t count = 0;

    if (d->negative || !decimal_is_integer(d))
        return false;
    if ((int64_t)d->n + d->exponent > 19) {
        *ret = UINT64_MAX;
        return true;
    }
    for (size_t i = 0; i < d->n + (d->n ? (size_t)d->exponent : 0); i++)
        count = count * 10 + (uint64_t)next_digit(&p, d->end);
    *ret = count;
    return true;
}

uint64_t decimal_hash(const struct decimal *d)
{
    uint64_t parts[3] = {0, (uint64_t)d->exponent, d->negative};
    const char *p = d->p;

    if (d->n == 0)
        return 0;
    for (size_t i = 0; i < d->n; i++)
        parts[0] = parts[0] * 1099511628211u + (uint64_t)next_digit(&p, d->end) + 1;
    return map_hash(str_n((const char *)parts, sizeof(parts)));
}
