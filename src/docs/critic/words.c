/* SPDX-License-Identifier: Apache-2.0 */
/* The differences of two texts, in words.  Tokens are words, runs of blanks, line ends, single
 * punctuation characters and whole comments.  Myers' greedy O(ND) algorithm finds the differences.
 * Its cost is bounded: if words differ too much, lines are compared instead.  If lines differ too
 * much, the whole text between the equal beginning and end is one difference. */
#include "base/map.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "docs/critic/critic_impl.h"

#include <stdlib.h>

#define MAX_DISTANCE 400
#define MAX_STEPS 4000000
#define MAX_WORDS 400000 /* of both sides, estimated at 4 bytes each; above it, lines */

enum unit { UNIT_WORD, UNIT_LINE };
enum class { CLASS_WORD, CLASS_BLANK, CLASS_SINGLE, CLASS_MARK /* goes on with any of them */ };

/* Tokens are compared by length and keyed hash, so that comparing long tokens costs no more.  After
 * a hash collision the edit fails verification (verify.c). */
struct token {
    size_t from, to;
    uint64_t hash;
};
struct tokens {
    const char *text;
    struct token *p; /* heap */
    size_t n, cap;
};

void critic_hunks_add(struct critic_hunks *h, struct critic_hunk hunk)
{
    if (h->n == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 8;
        h->p = xrealloc(h->p, h->cap * sizeof *h->p);
    }
    h->p[h->n++] = hunk;
}

void critic_hunks_release(struct critic_hunks *h)
{
    free(h->p);
    *h = (struct critic_hunks){0};
}

/* Scripts that write words without blanks between them (CJK). */
static bool is_of_unspaced_script(uint32_t c)
{
    return (c >= 0x2e80 && c < 0xa000) || c >= 0x1f000;
}

/* Punctuation, signs, and characters of scripts without blanks are tokens of their own. */
static enum class class_of(uint32_t c) {
    if (c >= 0x80 && unicode_is_mark(c)) return CLASS_MARK;
    bool is_word = c == '_' || (unicode_is_word(c) && !is_of_unspaced_script(c));
    bool is_blank = c == ' ' || c == '\t';
    return is_blank  ? CLASS_BLANK
           : is_word ? CLASS_WORD
                     : CLASS_SINGLE;
}

static size_t char_at(struct str text, size_t at, size_t end, enum class *ret)
{
    uint32_t code = 0;
    size_t n = utf8_decode(text.p + at, text.p + end, &code);

    *ret = n ? class_of(code) : CLASS_SINGLE;
    return n ? n : 1;
}

static size_t word_end(struct str text, size_t at, size_t end)
{
    enum class class, next;
    size_t n;

    if (text.p[at] == '\r' && at + 1 < end && text.p[at + 1] == '\n')
        return at + 2;
    at += char_at(text, at, end, &class);
    if (class == CLASS_MARK)
        class = CLASS_WORD;
    for (; at < end; at += n) {
        n = char_at(text, at, end, &next);
        if (next != CLASS_MARK && (next != class || class == CLASS_SINGLE))
            break;
    }
    return at;
}

static size_t token_end(struct str text, size_t at, size_t end, enum unit unit)
{
    const char *found;

    if (unit == UNIT_WORD)
        return word_end(text, at, end);
    found = memchr(text.p + at, '\n', end - at);
    return found ? (size_t)(found - text.p) + 1 : end;
}

static void add_token(struct tokens *t, size_t from, size_t to)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->p = xrealloc(t->p, t->cap * sizeof *t->p);
    }
    t->p[t->n++] = (struct token){from, to, map_hash(str_n(t->text + from, to - from))};
}

static void tokenize(const struct critic_side *side, enum unit unit, struct tokens *ret)
{
    size_t at = side->from, mark = 0;

    *ret = (struct tokens){.text = side->text.p};
    while (mark < side->n_marks && side->marks[mark].from < at)
        mark++;
    while (at < side->to) {
        size_t stop = mark < side->n_marks && side->marks[mark].to <= side->to
                          ? side->marks[mark].from
                          : side->to;
        size_t end = at == stop ? side->marks[mark++].to : token_end(side->text, at, stop, unit);

        add_token(ret, at, end);
        at = end;
    }
}

struct walk {
    const struct tokens *a, *b;
    size_t skip;    /* equal tokens at the beginning */
    ptrdiff_t n, m; /* tokens to compare */
    size_t steps;
    ptrdiff_t *trace; /* the furthest x of every diagonal, per distance: row d has 2d + 1 */
    ptrdiff_t rows;   /* allocated rows */
};

static bool same_token(const struct walk *w, ptrdiff_t x, ptrdiff_t y)
{
    const struct token *s = &w->a->p[w->skip + (size_t)x], *t = &w->b->p[w->skip + (size_t)y];

    return s->to - s->from == t->to - t->from && s->hash == t->hash;
}

/* Row d of the trace, indexed by diagonal -d … d. */
static ptrdiff_t *row(const struct walk *w, ptrdiff_t d)
{
    return w->trace + d * d + d;
}

/* The x where diagonal k of distance d begins: one step down or right from distance d - 1. */
static ptrdiff_t enter_diagonal(const struct walk *w, ptrdiff_t d, ptrdiff_t k, ptrdiff_t *ret_from)
{
    const ptrdiff_t *before = row(w, d - 1);
    bool down = k == -d || (k != d && before[k - 1] < before[k + 1]);

    *ret_from = down ? k + 1 : k - 1;
    return down ? before[k + 1] : before[k - 1] + 1;
}

static ptrdiff_t follow(struct walk *w, ptrdiff_t x, ptrdiff_t k)
{
    while (x < w->n && x - k < w->m && x >= 0 && x - k >= 0 && same_token(w, x, x - k)) {
        x++;
        w->steps++;
    }
    return x;
}

/* Most texts differ in little, so the trace grows with the distance. */
static void make_room(struct walk *w, ptrdiff_t d)
{
    if (d < w->rows)
        return;
    w->rows = w->rows ? 2 * w->rows : 16;
    w->trace = xrealloc(w->trace, (size_t)(w->rows * w->rows) * sizeof *w->trace);
}

/* The distance of the two texts, or -1 past the bounds. */
static ptrdiff_t measure(struct walk *w)
{
    for (ptrdiff_t d = 0; d <= MAX_DISTANCE; d++) {
        make_room(w, d);
        for (ptrdiff_t k = -d; k <= d; k++) {
            ptrdiff_t from, x;

            if ((k + d) % 2) {
                row(w, d)[k] = -1;
                continue;
            }
            x = d == 0 ? 0 : enter_diagonal(w, d, k, &from);
            x = follow(w, x, k);
            row(w, d)[k] = x;
            if (x >= w->n && x - k >= w->m)
                return d;
            if (++w->steps > MAX_STEPS)
                return -1;
        }
    }
    return -1;
}

static size_t token_start(const struct critic_side *side, const struct tokens *t, size_t i)
{
    return i < t->n ? t->p[i].from : side->to;
}

static struct critic_hunk hunk_of(const struct walk *w, const struct critic_side *old,
                                  const struct critic_side *fresh, const size_t at[4])
{
    return (struct critic_hunk){
        token_start(old, w->a, at[0] + w->skip), token_start(old, w->a, at[1] + w->skip),
        token_start(fresh, w->b, at[2] + w->skip), token_start(fresh, w->b, at[3] + w->skip)};
}

static void collect(const struct walk *w, ptrdiff_t d, const struct critic_side *old,
                    const struct critic_side *fresh, struct critic_hunks *out)
{
    ptrdiff_t x = w->n, y = w->m;
    size_t first = out->n;

    for (; d > 0; d--) {
        ptrdiff_t from, start = enter_diagonal(w, d, x - y, &from);
        ptrdiff_t start_y = start - (x - y), px = row(w, d - 1)[from], py = px - from;
        struct critic_hunk hunk = hunk_of(
            w, old, fresh, (size_t[4]){(size_t)px, (size_t)start, (size_t)py, (size_t)start_y});

        if (out->n > first && out->p[out->n - 1].from == hunk.to &&
            out->p[out->n - 1].new_from == hunk.new_to) {
            out->p[out->n - 1].from = hunk.from;
            out->p[out->n - 1].new_from = hunk.new_from;
        } else {
            critic_hunks_add(out, hunk);
        }
        x = px;
        y = py;
    }
    for (size_t i = first, j = out->n; i + 1 < j; i++) {
        struct critic_hunk swapped = out->p[i];
        out->p[i] = out->p[--j];
        out->p[j] = swapped;
    }
}

static void trim(struct walk *w)
{
    size_t shorter = w->a->n < w->b->n ? w->a->n : w->b->n, tail = 0;

    while (w->skip < shorter && same_token(w, 0, 0))
        w->skip++;
    w->n = (ptrdiff_t)(w->a->n - w->skip);
    w->m = (ptrdiff_t)(w->b->n - w->skip);
    while (tail < shorter - w->skip && same_token(w, w->n - 1, w->m - 1)) {
        w->n--;
        w->m--;
        tail++;
    }
}

static bool diff_by(enum unit unit, const struct critic_side *old, const struct critic_side *fresh,
                    struct critic_hunks *out)
{
    struct tokens a, b;
    struct walk w = {.a = &a, .b = &b};
    ptrdiff_t d;

    tokenize(old, unit, &a);
    tokenize(fresh, unit, &b);
    trim(&w);
    d = measure(&w);
    if (d >= 0)
        collect(&w, d, old, fresh, out);
    else if (unit == UNIT_LINE)
        critic_hunks_add(out, hunk_of(&w, old, fresh, (size_t[4]){0, (size_t)w.n, 0, (size_t)w.m}));
    free(w.trace);
    free(a.p);
    free(b.p);
    return d >= 0;
}

void critic_words_diff(const struct critic_side *old, const struct critic_side *fresh,
                       struct critic_hunks *out)
{
    size_t bytes = old->to - old->from + fresh->to - fresh->from;

    if (bytes > 4 * MAX_WORDS || !diff_by(UNIT_WORD, old, fresh, out))
        (void)diff_by(UNIT_LINE, old, fresh, out);
}
