/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a token of the table is at a position.  Every look ahead either ends in a
 * replacement, which the walk skips, or is short, so that a whole body costs O(n). */
#include "audit/redact_impl.h"

#include <strings.h>

#define BASIC_LOOK 512    /* bytes of base64 in which the colon must be */
#define AUTHORITY_MAX 512 /* bytes of a URL's authority */
#define BARE_USERINFO 20  /* a userinfo without a colon is a token from this length on */
#define LOOK_BACK 20
#define WORD_MAX 256

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_among(char c, unsigned chars)
{
    if (chars & CHARS_HEX)
        return is_hex(c);
    if (chars & CHARS_UPPER)
        return is_digit(c) || is_upper(c);
    return is_word(c) || ((chars & CHARS_URL) && (c == '-' || c == '_')) ||
           ((chars & (CHARS_DOT | CHARS_BASE64)) && c == '.') ||
           ((chars & CHARS_BASE64) && (c == '~' || c == '+' || c == '/' || c == '=')) ||
           ((chars & CHARS_PERCENT) && c == '%');
}

static size_t run_of(struct str in, size_t at, unsigned chars, size_t most)
{
    size_t end = at, stop = in.n - at > most ? at + most : in.n;

    while (end < stop && is_among(in.p[end], chars))
        end++;
    return end;
}

/* Random characters include a digit or a capital; "sk-loading-spinner" does not.  A run longer than
 * any such word counts as a token, so the walk skips it. */
static bool is_mixed(struct str run)
{
    for (size_t i = 0; i < run.n && i < WORD_MAX; i++)
        if (is_digit(run.p[i]) || is_upper(run.p[i]))
            return true;
    return run.n >= WORD_MAX;
}

bool shape_match_prefix(const struct redact_shape *shape, struct str in, size_t at,
                        struct shape_memo *memo unused_arg, size_t *ret_from, size_t *ret_to)
{
    size_t begin = at + shape->prefix.n;
    size_t end = run_of(in, begin, shape->chars, shape->most ? shape->most + 1u : SIZE_MAX);

    if (end - begin < shape->least || (shape->most && end - begin > shape->most) ||
        !(shape->any_case || shape->then || is_mixed(str_n(in.p + begin, end - begin))))
        return false;
    if (shape->then) {
        size_t dot = end;
        if (dot == in.n || in.p[dot] != '.')
            return false;
        end = run_of(in, dot + 1, shape->chars, SIZE_MAX);
        if (end - dot - 1 < shape->then)
            return false;
    }
    *ret_from = at + shape->keep;
    *ret_to = end;
    return true;
}

/* Three base64url parts.  The first is a JSON object: its text begins with { and is therefore
 * encoded as ey or ew. */
bool shape_match_jwt(const struct redact_shape *shape, struct str in, size_t at,
                     struct shape_memo *memo, size_t *ret_from, size_t *ret_to)
{
    if (at < memo->no_jwt_before)
        return false;
    size_t head = run_of(in, at, shape->chars, SIZE_MAX);
    size_t payload =
        head < in.n && in.p[head] == '.' ? run_of(in, head + 1, shape->chars, SIZE_MAX) : head;
    if (payload <= head + 1 || payload >= in.n || in.p[payload] != '.') {
        memo->no_jwt_before = head;
        return false;
    }
    *ret_from = at;
    *ret_to = run_of(in, payload + 1, shape->chars, SIZE_MAX);
    return true;
}

/* A block without its END line ends with the enclosing string. */
bool shape_match_pem(const struct redact_shape *shape unused_arg, struct str in, size_t at,
                     struct shape_memo *memo unused_arg, size_t *ret_from, size_t *ret_to)
{
    const char *quote = memchr(in.p + at, '"', in.n - at);
    size_t stop = quote ? (size_t)(quote - in.p) : in.n;

    while (quote && stop > at && in.p[stop - 1] == '\\')
        stop--;
    const char *end = memmem(in.p + at, stop - at, "-----END ", 9);
    if (end) {
        const char *after = end + 9;
        end = memmem(after, (size_t)(in.p + stop - after), "-----", 5);
    }
    *ret_from = at;
    *ret_to = end ? (size_t)(end - in.p) + 5 : stop;
    return true;
}

static int base64_value(char c)
{
    return is_upper(c)            ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : is_digit(c)          ? c - '0' + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : -1;
}

/* Whether the decoded base64 contains a colon. */
static bool has_colon(struct str text)
{
    uint32_t bits = 0;
    unsigned n = 0;

    for (size_t i = 0; i < text.n && i < BASIC_LOOK && base64_value(text.p[i]) >= 0; i++) {
        bits = bits << 6 | (uint32_t)base64_value(text.p[i]);
        n += 6;
        if (n >= 8) {
            n -= 8;
            if (((bits >> n) & 0xff) == ':')
                return true;
        }
    }
    return false;
}

bool shape_match_basic(const struct redact_shape *shape, struct str in, size_t at,
                       struct shape_memo *memo unused_arg, size_t *ret_from, size_t *ret_to)
{
    size_t begin = at + shape->prefix.n;
    size_t end = run_of(in, begin, shape->chars, SIZE_MAX);

    *ret_from = begin;
    *ret_to = end;
    return end - begin >= shape->least && has_colon(str_n(in.p + begin, end - begin));
}

static bool ends_authority(char c)
{
    return c == '/' || c == '?' || c == '#' || c == '"' || c == '\'' || c == '<' || c == '>' ||
           c == '\\' || c == '`' || (unsigned char)c <= ' ';
}

/* Characters that begin a placeholder in place of a password. */
static bool is_placeholder(char c)
{
    return c == '$' || c == '{' || c == '<' || c == '*' || c == '[' || c == '%';
}

/* Matches user:password@ after "://". */
bool shape_match_url(const struct redact_shape *shape, struct str in, size_t at,
                     struct shape_memo *memo unused_arg, size_t *ret_from, size_t *ret_to)
{
    size_t begin = at + shape->prefix.n, end = begin, colon = 0, host = 0;

    if (at == 0 || !is_word(in.p[at - 1]))
        return false;
    for (; end < in.n && end - begin < AUTHORITY_MAX && !ends_authority(in.p[end]); end++) {
        if (in.p[end] == '@')
            host = end;
        else if (in.p[end] == ':' && !colon && !host)
            colon = end;
    }
    if (!host || (!colon && host - begin < BARE_USERINFO))
        return false;
    *ret_from = colon ? colon + 1 : begin;
    *ret_to = host;
    return *ret_to > *ret_from && !is_placeholder(in.p[*ret_from]);
}

/* Matches 123456789:AA… */
bool shape_match_telegram(const struct redact_shape *shape, struct str in, size_t at,
                          struct shape_memo *memo unused_arg, size_t *ret_from, size_t *ret_to)
{
    size_t from = at;

    while (from > 0 && at - from < LOOK_BACK && is_digit(in.p[from - 1]))
        from--;
    *ret_from = from;
    *ret_to = run_of(in, at + 1, shape->chars, SIZE_MAX);
    return at - from >= 8 && at - from <= 12 && *ret_to - at - 1 >= shape->least;
}

/* Three characters, 8Q~, and at least 31 more. */
bool shape_match_azure(const struct redact_shape *shape, struct str in, size_t at,
                       struct shape_memo *memo unused_arg, size_t *ret_from, size_t *ret_to)
{
    size_t begin = at + shape->prefix.n;

    *ret_to = begin;
    while (*ret_to < in.n && *ret_to - begin < 64 &&
           (is_among(in.p[*ret_to], shape->chars) || in.p[*ret_to] == '~'))
        (*ret_to)++;
    *ret_from = at - (at < 3 ? at : 3);
    for (size_t i = *ret_from; i < at; i++)
        if (!is_among(in.p[i], shape->chars) && in.p[i] != '~')
            return false;
    return at >= 3 && *ret_to - begin >= shape->least;
}

/* Whether no letter or digit precedes the position, except as the end of an escape: \n, \u000a,
 * %3D. */
static bool is_boundary(struct str in, size_t at)
{
    size_t back, n = 0;

    if (at == 0 || !is_word(in.p[at - 1]))
        return true;
    if (at >= 3 && in.p[at - 3] == '%')
        return true;
    back = at >= 6 && in.p[at - 5] == 'u' && in.p[at - 6] == '\\' ? at - 5 : at - 1;
    if (back == at - 1 && !strchr("nrtbf", in.p[back]))
        return false;
    while (n < back && in.p[back - 1 - n] == '\\')
        n++;
    return n > 0;
}

bool redact_shape_at(const struct redact_shape *shape, struct str in, size_t at,
                     struct shape_memo *memo, size_t *ret_from, size_t *ret_to)
{
    const char *p = in.p + at;

    if (in.n - at < shape->prefix.n ||
        (shape->any_case ? strncasecmp(p, shape->prefix.p, shape->prefix.n) != 0
                         : memcmp(p, shape->prefix.p, shape->prefix.n) != 0) ||
        !(shape->anywhere || is_boundary(in, at)))
        return false;
    return shape->match ? shape->match(shape, in, at, memo, ret_from, ret_to)
                        : shape_match_prefix(shape, in, at, memo, ret_from, ret_to);
}
