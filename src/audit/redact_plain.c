/* SPDX-License-Identifier: Apache-2.0 */
/* The quick look before the walk: most bodies hold nothing that any rule of redaction could touch,
 * and one pass over their bytes tells.  It errs on one side only: "plain" means that neither
 * redact_key.c nor redact_shape.c would find anything; what merely resembles a secret is left to
 * them.
 *
 * Every secret name has one of a few four-letter beginnings once case and separators are taken
 * away, every shape a beginning of two to four bytes.  Places where one of them may begin are found
 * 32 at a time where the processor can (redact_scan.c), and only these are looked at here. */
#include "audit/redact.h"
#include "audit/redact_impl.h"

#define WORD(a, b, c, d)                                                                           \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static bool is_separator(unsigned char c)
{
    return c == '-' || c == '_' || c == ' ' || c == '.' || c == '\\';
}

static bool is_beginning(uint32_t word)
{
    switch (word) {
    case WORD('p', 'a', 's', 's'):
    case WORD('s', 'e', 'c', 'r'):
    case WORD('a', 'u', 't', 'h'):
    case WORD('a', 'p', 'i', 'k'):
    case WORD('c', 'o', 'o', 'k'):
    case WORD('c', 'r', 'e', 'd'):
    case WORD('p', 'r', 'i', 'v'):
    case WORD('t', 'o', 'k', 'e'):
    case WORD('b', 'e', 'a', 'r'):
    case WORD('g', 'i', 't', 'h'):
    case WORD('g', 'l', 'p', 'a'):
    case WORD('x', 'o', 'x', 'b'):
    case WORD('x', 'o', 'x', 'p'):
        return true;
    default:
        return false;
    }
}

/* Four letters from here on, lower case and without separators. */
static uint32_t word_at(struct str body, size_t at)
{
    uint32_t word = 0;
    for (unsigned letters = 0; letters < 4 && at < body.n; at++) {
        unsigned char c = (unsigned char)body.p[at];
        if (is_separator(c))
            continue;
        word = word << 8 | (c >= 'A' && c <= 'Z' ? c + 32 : c);
        letters++;
    }
    return word;
}

/* sk-, sk_live_, gh?_, eyJ, -----, and escapes that may spell any letter. */
static bool is_shape(struct str body, size_t at)
{
    const char *p = body.p + at;
    size_t left = body.n - at;
    switch (*p) {
    case '-':
        return left >= 2 && p[1] == '-';
    case '\\':
        return left >= 2 && p[1] == 'u';
    case 's':
        return left >= 3 && p[1] == 'k' && (p[2] == '-' || p[2] == '_');
    case 'g':
        return left >= 4 && p[1] == 'h' && p[3] == '_';
    case 'e':
        return left >= 3 && p[1] == 'y' && p[2] == 'J';
    default:
        return false;
    }
}

bool redact_may_begin(struct str body, size_t at)
{
    return is_shape(body, at) ||
           (!is_separator((unsigned char)body.p[at]) && is_beginning(word_at(body, at)));
}

/* A name too long to be read is taken for a secret one; a long text is not. */
static bool may_end_name(struct str body, size_t quote)
{
    size_t at = quote + 1;
    while (at < body.n &&
           (body.p[at] == ' ' || body.p[at] == '\t' || body.p[at] == '\n' || body.p[at] == '\r'))
        at++;
    return at < body.n && body.p[at] == ':';
}

static bool has_long_name(struct str body)
{
    const char *last = body.p, *end = body.p + body.n;
    if (body.n <= REDACT_KEY_MAX)
        return false;
    for (const char *p = body.p; p < end && (p = memchr(p, '"', (size_t)(end - p))) != NULL; p++) {
        if (p - last > REDACT_KEY_MAX && may_end_name(body, (size_t)(p - body.p)))
            return true;
        last = p;
    }
    return false;
}

bool redact_is_plain(struct str body)
{
    return !redact_scan(body) && !has_long_name(body);
}
