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

/* What a byte does to the word of four: separators leave it alone, everything else is rolled in. */
static struct {
    uint8_t letter; /* lower case; 0 for separators */
    uint8_t shift;  /* 8; 0 for separators */
    bool special;   /* may end a shape */
} bytes[256];

static unsigned slot_of(uint32_t word)
{
    return (word * 2654435761u) >> 22;
}

static void prepare(void)
{
    for (unsigned c = 0; c < 256; c++) {
        bytes[c].letter = (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        bytes[c].shift = 8;
    }
    for (const char *p = "-_ .\\"; *p; p++)
        bytes[(unsigned char)*p].letter = bytes[(unsigned char)*p].shift = 0;
    for (const char *p = "-_J\\"; *p; p++)
        bytes[(unsigned char)*p].special = true;
    for (size_t i = 0; i < countof(beginnings); i++) {
        if (slots[slot_of(beginnings[i])])
            die("two beginnings share a slot; choose another factor");
        slots[slot_of(beginnings[i])] = beginnings[i];
    }
}

/* sk-, sk_live_, gh?_, eyJ, -----, and escapes that may spell any letter. */
static bool is_shape_end(struct str body, size_t at)
{
    const char *p = body.p + at;
    switch (*p) {
    case '-':
        return (at >= 2 && p[-2] == 's' && p[-1] == 'k') || (at >= 1 && p[-1] == '-');
    case '_':
        return (at >= 2 && p[-2] == 's' && p[-1] == 'k') ||
               (at >= 3 && p[-3] == 'g' && p[-2] == 'h');
    case 'J':
        return at >= 2 && p[-2] == 'e' && p[-1] == 'y';
    default: /* a backslash */
        return at + 1 < body.n && p[1] == 'u';
    }
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
    for (const char *p = body.p; p < end && (p = memchr(p, '"', (size_t)(end - p))) != NULL; p++) {
        if (p - last > REDACT_KEY_MAX && may_end_name(body, (size_t)(p - body.p)))
            return true;
        last = p;
    }
    return false;
}

bool redact_is_plain(struct str body)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint32_t word = 0;

    pthread_once(&once, prepare);
    for (size_t i = 0; i < body.n; i++) {
        unsigned char c = (unsigned char)body.p[i];
        if (unlikely(bytes[c].special) && is_shape_end(body, i))
            return false;
        word = word << bytes[c].shift | bytes[c].letter;
        if (unlikely(slots[slot_of(word)] == word) && word)
            return false;
    }
    return !has_long_name(body);
}
