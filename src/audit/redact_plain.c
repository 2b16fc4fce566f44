/* SPDX-License-Identifier: Apache-2.0 */
/* The quick look before the walk: most bodies hold nothing that any rule of redaction could touch,
 * and one pass over their bytes tells.  It errs on one side only: "plain" means that neither
 * redact_key.c nor redact_shape.c would find anything; what merely resembles a secret is left to
 * them.
 *
 * Every secret name has one of a few four-letter beginnings once case and separators are taken
 * away, every shape one or two bytes that end its beginning.  So letters are rolled into a word of
 * four, and only bytes that end one of the beginnings are compared. */
#include "audit/redact.h"
#include "audit/redact_impl.h"

enum { SKIP = 1, ROLLED = 2, RAW = 4 };

#define WORD(a, b, c, d)                                                                           \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/* Beginnings of the secret words, of Bearer, github_pat_, glpat- and xox?-. */
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

/* sk-, sk_live_, gh?_, eyJ, -----, and escapes that may spell any letter. */
static bool is_shape_end(const char *body, size_t at)
{
    const char *p = body + at;
    switch (*p) {
    case '-':
        return (at >= 2 && p[-2] == 's' && p[-1] == 'k') || (at >= 1 && p[-1] == '-');
    case '_':
        return (at >= 2 && p[-2] == 's' && p[-1] == 'k') ||
               (at >= 3 && p[-3] == 'g' && p[-2] == 'h');
    case 'J':
        return at >= 2 && p[-2] == 'e' && p[-1] == 'y';
    default: /* u */
        return at >= 1 && p[-1] == '\\';
    }
}

static const uint8_t classes[256] = {
    ['s'] = ROLLED, ['S'] = ROLLED, ['r'] = ROLLED,     ['R'] = ROLLED,     ['h'] = ROLLED,
    ['H'] = ROLLED, ['k'] = ROLLED, ['K'] = ROLLED,     ['d'] = ROLLED,     ['D'] = ROLLED,
    ['v'] = ROLLED, ['V'] = ROLLED, ['e'] = ROLLED,     ['E'] = ROLLED,     ['a'] = ROLLED,
    ['A'] = ROLLED, ['b'] = ROLLED, ['B'] = ROLLED,     ['p'] = ROLLED,     ['P'] = ROLLED,
    ['J'] = RAW,    ['u'] = RAW,    ['-'] = SKIP | RAW, ['_'] = SKIP | RAW, [' '] = SKIP,
    ['.'] = SKIP,   ['\\'] = SKIP,
};

bool redact_is_plain(struct str body)
{
    uint32_t word = 0;
    size_t quote = 0; /* where the last string began or ended: a long name is secret unread */

    for (size_t i = 0; i < body.n; i++) {
        unsigned char c = (unsigned char)body.p[i];
        uint8_t class = classes[c];
        if (c == '"') {
            if (i - quote > REDACT_KEY_MAX)
                return false;
            quote = i;
        }
        if ((class & RAW) && is_shape_end(body.p, i))
            return false;
        if (class & SKIP)
            continue;
        word = word << 8 | (c >= 'A' && c <= 'Z' ? c + 32u : c);
        if ((class & ROLLED) && is_beginning(word))
            return false;
    }
    return body.n - quote <= REDACT_KEY_MAX;
}
