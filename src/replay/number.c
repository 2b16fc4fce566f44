/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/number.h"

#define EXPONENT_MAX INT64_C(1000000000000000)

/* Beyond EXPONENT_MAX the value stays there: no number that anybody means. */
static int64_t exponent_of(struct str s)
{
    bool is_negative = s.n && s.p[0] == '-';
    int64_t value = 0;

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= '0' && s.p[i] <= '9' && value < EXPONENT_MAX)
            value = value * 10 + (s.p[i] - '0');
    return is_negative ? -value : value;
}

void number_canonical(struct str number, struct buf *out)
{
    struct str mantissa = number, exponent = STR("0");
    int64_t power, after_point = 0;
    size_t begin = out->n, first;
    bool has_point = false;

    for (size_t i = 0; i < number.n; i++)
        if (number.p[i] == 'e' || number.p[i] == 'E') {
            mantissa = str_n(number.p, i);
            exponent = str_n(number.p + i + 1, number.n - i - 1);
            break;
        }
    if (mantissa.n && mantissa.p[0] == '-')
        buf_addc(out, '-');
    first = out->n;
    for (size_t i = 0; i < mantissa.n; i++) {
        char c = mantissa.p[i];
        if (c == '.')
            has_point = true;
        if (c < '0' || c > '9')
            continue;
        after_point += has_point;
        if (c != '0' || out->n > first) /* no zeros in front */
            buf_addc(out, c);
    }
    power = exponent_of(exponent) - after_point;
    while (out->n > first && out->p[out->n - 1] == '0') {
        out->n--;
        power++;
    }
    if (out->n == first) {
        out->n = begin; /* 0 and -0 */
        buf_addc(out, '0');
        return;
    }
    buf_addf(out, "e%lld", (long long)power);
}
