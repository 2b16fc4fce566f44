/* SPDX-License-Identifier: Apache-2.0 */
/* Longest common subsequence over lines, without the equal lines at the beginning and end.
 * Quadratic, so bounded to a million cells.  Not on the loop. */
#include "upstream/pins_diff.h"

#include "upstream/pins_canon.h"

#include <stdlib.h>

struct side {
    struct buf text;
    struct str *lines;
    size_t n;
};

static void side_init(struct side *s, struct str canon)
{
    size_t room = 0;

    *s = (struct side){.lines = NULL};
    buf_init(&s->text, SIZE_MAX / 4);
    if (canon.p && !tool_canon_pretty(canon, &s->text))
        buf_addz(&s->text, "(this cannot be read)\n");
    for (struct str rest = buf_str(&s->text); rest.n;) {
        if (s->n == room) {
            room = room ? 2 * room : 64;
            s->lines = xrealloc(s->lines, room * sizeof(*s->lines));
        }
        s->lines[s->n++] = str_split(&rest, '\n');
    }
}

static void side_release(struct side *s)
{
    buf_release(&s->text);
    free(s->lines);
}

struct writing {
    struct buf *out;
    size_t end; /* limit for out->n */
    bool full;
};

static void add(struct writing *w, char mark, struct str text)
{
    if (w->full)
        return;
    w->full = w->out->n + text.n + 2 + sizeof(TOOL_DIFF_MORE) > w->end;
    if (w->full) {
        if (w->out->n + sizeof(TOOL_DIFF_MORE) <= w->end)
            buf_addz(w->out, TOOL_DIFF_MORE);
        return;
    }
    buf_addc(w->out, mark);
    buf_addstr(w->out, text);
    buf_addc(w->out, '\n');
}

/* For lines a[0..n) and b[0..m): the number of common lines from (i, j) on. */
static uint16_t *common_table(const struct str *a, size_t n, const struct str *b, size_t m)
{
    uint16_t *t = xcalloc((n + 1) * (m + 1), sizeof(*t));

    for (size_t i = n; i-- > 0;)
        for (size_t j = m; j-- > 0;) {
            uint16_t down = t[(i + 1) * (m + 1) + j], right = t[i * (m + 1) + j + 1];
            t[i * (m + 1) + j] = str_eq(a[i], b[j]) ? t[(i + 1) * (m + 1) + j + 1] + 1
                                 : down > right     ? down
                                                    : right;
        }
    return t;
}

static void write_middle(struct writing *w, const struct str *a, size_t n, const struct str *b,
                         size_t m)
{
    bool whole = n > TOOL_DIFF_LINES || m > TOOL_DIFF_LINES;
    uint16_t *t = whole ? NULL : common_table(a, n, b, m);
    size_t i = 0, j = 0;

    while (i < n || j < m) {
        bool same = !whole && i < n && j < m && str_eq(a[i], b[j]);
        if (same) {
            add(w, ' ', a[i++]);
            j++;
        } else if (i < n &&
                   (whole || j == m || t[(i + 1) * (m + 1) + j] >= t[i * (m + 1) + j + 1])) {
            add(w, '-', a[i++]);
        } else {
            add(w, '+', b[j++]);
        }
    }
    free(t);
}

void tool_diff(struct str was, struct str now, size_t max, struct buf *out)
{
    struct writing w = {.out = out, .end = out->n + max};
    struct side a, b;
    size_t head = 0, tail = 0;

    side_init(&a, was);
    side_init(&b, now);
    while (head < a.n && head < b.n && str_eq(a.lines[head], b.lines[head]))
        head++;
    while (tail < a.n - head && tail < b.n - head &&
           str_eq(a.lines[a.n - 1 - tail], b.lines[b.n - 1 - tail]))
        tail++;
    if (head < a.n || head < b.n) {
        if (head)
            add(&w, ' ', a.lines[head - 1]);
        write_middle(&w, a.lines + head, a.n - head - tail, b.lines + head, b.n - head - tail);
        if (tail)
            add(&w, ' ', a.lines[a.n - tail]);
    }
    side_release(&a);
    side_release(&b);
}
