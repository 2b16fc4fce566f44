/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a text into lines, and formats lines as `read` shows them.  Line numbers are the same
 * wherever a document is shown, because all callers cut it here. */
#include "docs/text.h"

#include <string.h>

#define BOM STR("\xef\xbb\xbf")

static size_t count_lines(struct str text)
{
    if (str_starts(text, BOM))
        text = str_n(text.p + BOM.n, text.n - BOM.n);
    size_t n = text.n > 0 && text.p[text.n - 1] != '\n';

    for (const char *p = text.p, *end = text.p + text.n; text.n > 0; p++, n++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p)
            break;
    }
    return n;
}

bool text_line_next(struct str text, size_t *at, struct str *ret_line)
{
    if (*at == 0 && str_starts(text, BOM))
        *at = BOM.n;
    if (*at >= text.n)
        return false;
    const char *start = text.p + *at;
    const char *lf = memchr(start, '\n', text.n - *at);
    size_t n = lf ? (size_t)(lf - start) : text.n - *at;

    *at += n + (lf != NULL);
    if (lf && n > 0 && start[n - 1] == '\r')
        n--;
    *ret_line = str_n(start, n);
    return true;
}

size_t text_lines(struct str text, struct arena *mem, struct str **ret)
{
    size_t n = count_lines(text);
    struct str *lines = arena_alloc(mem, (n ? n : 1) * sizeof *lines);
    size_t at = 0;

    for (size_t i = 0; text_line_next(text, &at, &lines[i]);)
        i++;
    *ret = lines;
    return n;
}

void text_number(struct buf *out, const struct str *lines, size_t n, size_t offset, size_t limit)
{
    size_t first = offset ? offset - 1 : 0;
    size_t end = first < n && limit < n - first ? first + limit : n;

    for (size_t i = first; i < end; i++) {
        buf_addf(out, i == first ? "%6zu\t" : "\n%6zu\t", i + 1);
        buf_addstr(out, lines[i]);
    }
}
