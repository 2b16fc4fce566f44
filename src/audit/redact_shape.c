/* SPDX-License-Identifier: Apache-2.0 */
/* What secrets look like when nothing around them says so: a table of prefixes, JWTs and PEM
 * blocks. Every look ahead either ends in a replacement that is jumped over or is short, so that a
 * whole body costs O(n). */
#include "audit/redact_impl.h"

#include <strings.h>

enum chars { CHARS_WORD = 1, CHARS_URL = 2, CHARS_BASE64 = 4 };

static const struct shape {
    struct str prefix;
    size_t keep;  /* of the prefix, for the reader */
    size_t least; /* characters that must follow */
    unsigned chars;
    bool any_case;
} shapes[] = {
    {STR("Bearer "), .keep = 7, .least = 8, CHARS_WORD | CHARS_URL | CHARS_BASE64,
     .any_case = true},
    {STR("sk-"), .least = 16, CHARS_WORD | CHARS_URL},
    {STR("sk_live_"), .least = 16, CHARS_WORD},
    {STR("sk_test_"), .least = 16, CHARS_WORD},
    {STR("ghp_"), .least = 20, CHARS_WORD},
    {STR("gho_"), .least = 20, CHARS_WORD},
    {STR("ghu_"), .least = 20, CHARS_WORD},
    {STR("ghs_"), .least = 20, CHARS_WORD},
    {STR("ghr_"), .least = 20, CHARS_WORD},
    {STR("github_pat_"), .least = 20, CHARS_WORD | CHARS_URL},
    {STR("glpat-"), .least = 16, CHARS_WORD | CHARS_URL},
    {STR("xoxb-"), .least = 16, CHARS_WORD | CHARS_URL},
    {STR("xoxp-"), .least = 16, CHARS_WORD | CHARS_URL},
};

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool is_among(char c, unsigned chars)
{
    return is_word(c) || ((chars & CHARS_URL) && (c == '-' || c == '_')) ||
           ((chars & CHARS_BASE64) && (c == '.' || c == '~' || c == '+' || c == '/' || c == '='));
}

static size_t run_of(struct str text, size_t at, unsigned chars)
{
    size_t end = at;
    while (end < text.n && is_among(text.p[end], chars))
        end++;
    return end;
}

static bool has_prefix(struct str text, size_t at, const struct shape *shape)
{
    if (text.n - at < shape->prefix.n)
        return false;
    const char *p = text.p + at;
    return shape->any_case ? strncasecmp(p, shape->prefix.p, shape->prefix.n) == 0
                           : memcmp(p, shape->prefix.p, shape->prefix.n) == 0;
}

static bool match_prefix(struct str text, size_t at, size_t *ret_from, size_t *ret_to)
{
    for (size_t i = 0; i < countof(shapes); i++) {
        if (!has_prefix(text, at, &shapes[i]))
            continue;
        size_t begin = at + shapes[i].prefix.n;
        size_t end = run_of(text, begin, shapes[i].chars);
        if (end - begin < shapes[i].least)
            continue;
        *ret_from = at + shapes[i].keep;
        *ret_to = end;
        return true;
    }
    return false;
}

/* Three base64url parts, the first of them an object: its text begins {" and so reads eyJ. */
static bool match_jwt(struct str text, size_t at, size_t *no_jwt_before, size_t *ret_to)
{
    if (at < *no_jwt_before || text.n - at < 3 || memcmp(text.p + at, "eyJ", 3) != 0)
        return false;
    size_t head = run_of(text, at, CHARS_URL);
    size_t payload =
        head < text.n && text.p[head] == '.' ? run_of(text, head + 1, CHARS_URL) : head;
    if (payload <= head + 1 || payload >= text.n || text.p[payload] != '.') {
        *no_jwt_before = head;
        return false;
    }
    *ret_to = run_of(text, payload + 1, CHARS_URL);
    return true;
}

/* A block without its END line reaches to the end of the text. */
static bool match_pem(struct str text, size_t at, size_t *ret_to)
{
    if (!str_starts(str_n(text.p + at, text.n - at), STR("-----BEGIN ")))
        return false;
    const char *end = memmem(text.p + at, text.n - at, "-----END ", 9);
    if (end) {
        const char *after = end + 9;
        end = memmem(after, (size_t)(text.p + text.n - after), "-----", 5);
    }
    *ret_to = end ? (size_t)(end - text.p) + 5 : text.n;
    return true;
}

bool redact_shape_may_begin(char c)
{
    return c == 's' || c == 'g' || c == 'x' || c == 'e' || c == 'B' || c == 'b' || c == '-';
}

bool redact_shape_at(struct str text, size_t at, size_t *no_jwt_before, size_t *ret_from,
                     size_t *ret_to)
{
    *ret_from = at;
    return match_prefix(text, at, ret_from, ret_to) || match_jwt(text, at, no_jwt_before, ret_to) ||
           match_pem(text, at, ret_to);
}
