/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a needle in time linear in both texts (Knuth, Morris, Pratt), because agents choose both.
 * A text is read as symbols: its bytes, or its bytes with each curly quote replaced by the straight
 * one and each CR LF by an LF.  So a curly quote of three bytes is one symbol. */
#include "docs/critic/critic_impl.h"

#include <stdlib.h>

/* The symbol at `at` and its width.  With `loose`, U+2018/19 is ', U+201C/1D is " and CR LF is
 * LF. */
static char symbol_at(struct str s, size_t at, bool loose, size_t *ret_width)
{
    if (loose && s.p[at] == '\r' && at + 1 < s.n && s.p[at + 1] == '\n') {
        *ret_width = 2;
        return '\n';
    }
    if (loose && s.p[at] == '\xe2' && at + 2 < s.n && s.p[at + 1] == '\x80') {
        unsigned char last = (unsigned char)s.p[at + 2];
        *ret_width = 3;
        if (last == 0x98 || last == 0x99)
            return '\'';
        if (last == 0x9c || last == 0x9d)
            return '"';
    }
    *ret_width = 1;
    return s.p[at];
}

static size_t step_back(struct str s, size_t at, bool loose)
{
    size_t width = 1;

    if (loose && at >= 2 && s.p[at - 1] == '\n' && s.p[at - 2] == '\r')
        width = 2;
    else if (loose && at >= 3 && s.p[at - 3] == '\xe2')
        symbol_at(s, at - 3, true, &width);
    return at - width;
}

struct needle {
    char *symbols;
    size_t *border; /* of each prefix: its longest proper prefix that is also its suffix */
    size_t n;
};

static void needle_init(struct needle *nd, struct str text, bool loose)
{
    size_t width, k = 0;

    nd->symbols = xmalloc(text.n);
    nd->border = xmalloc(text.n * sizeof *nd->border);
    nd->n = 0;
    for (size_t i = 0; i < text.n; i += width)
        nd->symbols[nd->n++] = symbol_at(text, i, loose, &width);
    nd->border[0] = 0;
    for (size_t i = 1; i < nd->n; i++) {
        while (k && nd->symbols[i] != nd->symbols[k])
            k = nd->border[k - 1];
        if (nd->symbols[i] == nd->symbols[k])
            k++;
        nd->border[i] = k;
    }
}

static size_t count_places(struct str text, struct str needle, bool loose, size_t *ret_at,
                           size_t *ret_n)
{
    size_t count = 0, k = 0, width;
    struct needle nd;

    needle_init(&nd, needle, loose);
    for (size_t i = 0; i < text.n; i += width) {
        char c = symbol_at(text, i, loose, &width);

        while (k && c != nd.symbols[k])
            k = nd.border[k - 1];
        if (c == nd.symbols[k])
            k++;
        if (k < nd.n)
            continue;
        if (count++ == 0) {
            size_t from = i + width;
            for (size_t back = 0; back < nd.n; back++)
                from = step_back(text, from, loose);
            *ret_at = from;
            *ret_n = i + width - from;
        }
        k = nd.border[k - 1];
    }
    free(nd.symbols);
    free(nd.border);
    return count;
}

void critic_find(struct str accepted, struct str needle, size_t *ret_at, size_t *ret_n,
                 size_t *ret_count)
{
    *ret_at = *ret_n = *ret_count = 0;
    if (!needle.n)
        return;
    *ret_count = count_places(accepted, needle, false, ret_at, ret_n);
    if (!*ret_count)
        *ret_count = count_places(accepted, needle, true, ret_at, ret_n);
}
