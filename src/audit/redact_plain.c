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

#include <pthread.h>

/* What a byte means to the pass, beside the lower-case letter in its low eight bits. */
enum { SPECIAL = 0x100, ENDS_WORD = 0x200 };

#define WORD(a, b, c, d)                                                                           \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/* Beginnings of the secret words, of Bearer, github_pat_, glpat- and xox?-. */
static const uint32_t beginnings[] = {
    WORD('p', 'a', 's', 's'), WORD('s', 'e', 'c', 'r'), WORD('a', 'u', 't', 'h'),
    WORD('a', 'p', 'i', 'k'), WORD('c', 'o', 'o', 'k'), WORD('c', 'r', 'e', 'd'),
    WORD('p', 'r', 'i', 'v'), WORD('t', 'o', 'k', 'e'), WORD('b', 'e', 'a', 'r'),
    WORD('g', 'i', 't', 'h'), WORD('g', 'l', 'p', 'a'), WORD('x', 'o', 'x', 'b'),
    WORD('x', 'o', 'x', 'p'),
};

#define SLOTS 1024
static uint32_t slots[SLOTS]; /* the beginnings, each where its hash says */
static uint16_t meaning[256];

static unsigned slot_of(uint32_t word)
{
    return (word * 2654435761u) >> 22;
}

static void prepare(void)
{
    for (unsigned c = 0; c < 256; c++)
        meaning[c] = (uint16_t)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    for (const char *p = "-_ .\\\"Ju"; *p; p++)
        meaning[(unsigned char)*p] |= SPECIAL;
    for (size_t i = 0; i < countof(beginnings); i++) {
        unsigned last = beginnings[i] & 0xff;
        if (slots[slot_of(beginnings[i])])
            die("two beginnings share a slot; choose another factor");
        slots[slot_of(beginnings[i])] = beginnings[i];
        meaning[last] |= ENDS_WORD;
        meaning[last - 32] |= ENDS_WORD;
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
    case 'u':
        return at >= 1 && p[-1] == '\\';
    default:
        return false;
    }
}

static bool is_separator(unsigned char c)
{
    return c == '-' || c == '_' || c == ' ' || c == '.' || c == '\\';
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

bool redact_is_plain(struct str body)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint32_t word = 0;
    size_t quote = 0; /* where the last string began or ended */

    pthread_once(&once, prepare);
    for (size_t i = 0; i < body.n; i++) {
        unsigned char c = (unsigned char)body.p[i];
        uint16_t m = meaning[c];
        if (m & SPECIAL) {
            if (c == '"') {
                if (i - quote > REDACT_KEY_MAX && may_end_name(body, i))
                    return false;
                quote = i;
            } else if (is_shape_end(body.p, i)) {
                return false;
            }
            if (is_separator(c))
                continue;
        }
        word = word << 8 | (uint8_t)m;
        if ((m & ENDS_WORD) && slots[slot_of(word)] == word)
            return false;
    }
    return true;
}
