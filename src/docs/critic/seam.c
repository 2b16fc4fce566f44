/* SPDX-License-Identifier: Apache-2.0 */
/* Delimiters that decisions would join.  A person may accept, reject or leave every change, so each
 * span contributes one of up to three texts.  A delimiter (three bytes) may then lie across several
 * spans: "{+" here, "+" there, and a deletion between.
 *
 * All combinations are walked at once.  Of the text before a span only the last two bytes matter,
 * so the state is a set of byte pairs, and each span costs the same for any number of combinations.
 * An undecided mark separates its two sides: no delimiter continues after its "}". */
#include "docs/critic/critic_impl.h"

/* Bytes that occur in delimiters; 0 stands for all others. */
static const char alphabet[] = "\0{}+-~<>=";
#define N_BYTES (sizeof alphabet - 1)
/* Whether a new span is among the spans from the last byte on (NEW_LAST), or from the last two
 * bytes on (NEW_BOTH), up to here. */
enum { NEW_LAST = 1, NEW_BOTH = 2, N_FLAGS = 4 };

struct walk {
    bool reached[N_BYTES][N_BYTES][N_FLAGS];
};

static size_t index_of(char c)
{
    const char *found = c ? memchr(alphabet, c, N_BYTES) : NULL;

    return found ? (size_t)(found - alphabet) : 0;
}

static bool is_delimiter(size_t a, size_t b, size_t c)
{
    const char bytes[3] = {alphabet[a], alphabet[b], alphabet[c]};

    for (size_t f = 0; f < countof(critic_marks); f++)
        if (memcmp(critic_marks[f].open.p, bytes, 3) == 0 ||
            memcmp(critic_marks[f].close.p, bytes, 3) == 0)
            return true;
    return false;
}

/* Adds one text after one pair of bytes.  True: a delimiter lies across, and a new span takes
 * part. */
static bool meets(struct walk *to, size_t a, size_t b, unsigned flags, struct str text, bool is_new)
{
    size_t first = text.n ? index_of(text.p[0]) : 0, last = 0;

    if (!text.n) {
        to->reached[a][b][is_new ? NEW_LAST | NEW_BOTH : flags] = true;
        return false;
    }
    if (is_delimiter(a, b, first) && (is_new || (flags & NEW_BOTH)))
        return true;
    if (text.n == 1) {
        flags = (is_new || (flags & NEW_LAST) ? NEW_BOTH : 0) | (is_new ? NEW_LAST : 0);
        to->reached[b][first][flags] = true;
        return false;
    }
    if (is_delimiter(b, first, index_of(text.p[1])) && (is_new || (flags & NEW_LAST)))
        return true;
    last = index_of(text.p[text.n - 1]);
    to->reached[index_of(text.p[text.n - 2])][last][is_new ? NEW_LAST | NEW_BOTH : 0] = true;
    return false;
}

static bool meets_any(const struct walk *from, struct walk *to, struct str text, bool is_new)
{
    for (size_t a = 0; a < N_BYTES; a++)
        for (size_t b = 0; b < N_BYTES; b++)
            for (unsigned flags = 0; flags < N_FLAGS; flags++)
                if (from->reached[a][b][flags] && meets(to, a, b, flags, text, is_new))
                    return true;
    return false;
}

/* The texts that a decision can turn a span into. */
static size_t texts_of(const struct critic_span *span, struct str ret[2])
{
    ret[0] = span->text;
    if (span->kind == CRITIC_COMMENT)
        ret[0] = STR_NONE;
    if (span->kind != CRITIC_CHANGE)
        return 1;
    ret[0] = span->inserted;
    ret[1] = span->deleted;
    return 2;
}

bool critic_seams_meet(const struct critic *c, const bool *is_new)
{
    struct walk walk = {0};

    walk.reached[0][0][0] = true;
    for (size_t i = 0; i < c->n; i++) {
        struct walk next = {0};
        struct str texts[2];
        size_t n = texts_of(&c->spans[i], texts);

        for (size_t t = 0; t < n; t++)
            if (meets_any(&walk, &next, texts[t], is_new[i]))
                return true;
        if (c->spans[i].kind != CRITIC_PLAIN)
            next.reached[0][0][0] = true;
        walk = next;
    }
    return false;
}
