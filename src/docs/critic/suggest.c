/* SPDX-License-Identifier: Apache-2.0 */
/* The smart merge: one replacement in the accepted view becomes small changes of the source.
 *
 *   1. comments of the two texts are matched (remark.c), the rest is compared in words (words.c);
 *   2. a difference that touches a change, a highlight or code takes in the whole of it: a change
 *      is superseded and its base carried forward, and markup inside code would be text;
 *   3. differences with only blanks between them become one;
 *   4. the source is written anew (emit.c), and verified (verify.c).
 *
 * Step 4 fails if the new text and its surroundings make or break code together, for example if a
 * backtick finds its partner outside.  Then differences that depend on the same code become one,
 * then each is widened to its paragraph, then to the document, but never over a change it did not
 * touch.  If that does not help, the edit is refused.  An edit that would replace the pending
 * change of a person is refused at once. */
#include "docs/critic/critic_impl.h"

#include <stdlib.h>

enum reach { REACH_WORDS, REACH_JOINED, REACH_PARAGRAPH, REACH_DOCUMENT, N_REACHES };

struct merge {
    const struct critic *c;
    struct str before, after;    /* the accepted views */
    struct critic_range *atoms;  /* of `before`, sorted: ranges that a hunk contains whole or not at
                                  * all */
    struct critic_range *fences; /* of `before`, sorted: changes and highlights, also empty ones */
    size_t n_atoms, n_fences;
    struct critic_hunks hunks;
    struct arena *mem;
};

/* Finds code in the source. */
struct code_walk {
    struct critic_scan scan;
    struct critic_piece piece;
    bool more;
};

static void next_code(struct code_walk *w)
{
    do
        w->more = critic_scan_next(&w->scan, &w->piece);
    while (w->more && !w->piece.is_code);
}

static void find_atoms(struct merge *m)
{
    struct code_walk w;
    size_t at = 0, source_at = 0, cap = m->c->n;

    critic_scan_begin(&w.scan, m->c->source, m->mem);
    for (next_code(&w); w.more; next_code(&w))
        cap++;
    m->atoms = arena_alloc(m->mem, (cap + 1) * sizeof *m->atoms);
    m->fences = arena_alloc(m->mem, (m->c->n + 1) * sizeof *m->fences);
    critic_scan_begin(&w.scan, m->c->source, m->mem);
    next_code(&w);
    for (size_t i = 0; i < m->c->n; i++) {
        const struct critic_span *span = &m->c->spans[i];
        size_t width = critic_span_accepted(span).n;

        if (span->kind != CRITIC_PLAIN && width)
            m->atoms[m->n_atoms++] = (struct critic_range){at, at + width};
        if (span->kind == CRITIC_CHANGE || span->kind == CRITIC_HIGHLIGHT)
            m->fences[m->n_fences++] = (struct critic_range){at, at + width};
        for (; w.more && w.piece.from < source_at + span->raw.n; next_code(&w))
            m->atoms[m->n_atoms++] =
                (struct critic_range){at + w.piece.from - source_at, at + w.piece.to - source_at};
        at += width;
        source_at += span->raw.n;
    }
}

/* Whether [from, to) has a byte of the range, or, if empty, lies inside it. */
static bool touches(const struct critic_range *r, size_t from, size_t to)
{
    return from < r->to && to > r->from;
}

static void stretch(struct critic_hunk *h, size_t from, size_t to)
{
    if (from < h->from) {
        h->new_from -= h->from - from;
        h->from = from;
    }
    if (to > h->to) {
        h->new_to += to - h->to;
        h->to = to;
    }
}

static bool only_blanks(struct str text, size_t from, size_t to)
{
    for (; from < to; from++)
        if (text.p[from] != ' ' && text.p[from] != '\t')
            return false;
    return true;
}

/* `next` begins later than `h`, but either may have been stretched over the other. */
static void join(struct critic_hunk *h, const struct critic_hunk *next)
{
    size_t to = h->to > next->to ? h->to : next->to;

    h->new_to = next->new_to + (to - next->to);
    h->to = to;
}

/* Whether a change or highlight lies in [from, to], possibly an empty one. */
static bool fence_between(const struct merge *m, size_t from, size_t to)
{
    size_t low = 0, high = m->n_fences;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (m->fences[mid].from < from)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->n_fences && m->fences[low].to <= to;
}

/* Whether the hunks overlap, meet, or have only blanks between them.  A change between them, such
 * as a deletion where they meet, separates them, because neither touches it. */
static bool is_one(const struct merge *m, const struct critic_hunk *h,
                   const struct critic_hunk *next)
{
    if (next->from < h->to)
        return true;
    return !fence_between(m, h->to, next->from) && only_blanks(m->before, h->to, next->from);
}

/* Widens hunks to whole atoms, and joins hunks that are one. */
static void normalize_hunks(struct merge *m)
{
    size_t kept = 0, atom = 0;

    for (size_t i = 0; i < m->hunks.n; i++) {
        struct critic_hunk h = m->hunks.p[i], *last = kept ? &m->hunks.p[kept - 1] : NULL;

        while (atom < m->n_atoms && m->atoms[atom].to <= h.from)
            atom++;
        for (size_t j = atom; j < m->n_atoms && m->atoms[j].from < h.to; j++)
            if (touches(&m->atoms[j], h.from, h.to))
                stretch(&h, m->atoms[j].from, m->atoms[j].to);
        if (last && is_one(m, last, &h))
            join(last, &h);
        else
            m->hunks.p[kept++] = h;
    }
    m->hunks.n = kept;
}

static struct critic_side side_of(struct str text, size_t from, size_t to,
                                  const struct critic_range *marks, size_t n)
{
    return (struct critic_side){text, from, to, marks, n};
}

static struct critic_range *ranges_of(const struct critic_remarks *r, size_t shift,
                                      struct arena *mem)
{
    struct critic_range *ranges = arena_alloc(mem, (r->n + 1) * sizeof *ranges);

    for (size_t i = 0; i < r->n; i++)
        ranges[i] = (struct critic_range){r->p[i].range.from + shift, r->p[i].range.to + shift};
    return ranges;
}

struct region {
    size_t from, to; /* of before */
    struct str fresh;
    struct critic_remarks old, added;
};

/* Compares the texts between matched comments. */
static void compare(struct merge *m, const struct region *r)
{
    struct critic_range *marks = ranges_of(&r->old, 0, m->mem);
    struct critic_range *new_marks = ranges_of(&r->added, r->from, m->mem);
    size_t from = r->from, new_from = r->from, first = 0, new_first = 0;

    for (size_t i = 0; i <= r->old.n; i++) {
        bool end = i == r->old.n;
        size_t j = end ? r->added.n : r->old.p[i].match;
        struct critic_side old, fresh;

        if (j == SIZE_MAX)
            continue;
        old = side_of(m->before, from, end ? r->to : marks[i].from, marks + first, i - first);
        fresh = side_of(m->after, new_from, end ? r->from + r->fresh.n : new_marks[j].from,
                        new_marks + new_first, j - new_first);
        critic_words_diff(&old, &fresh, &m->hunks);
        if (end)
            break;
        from = marks[i].to;
        new_from = new_marks[j].to;
        first = i + 1;
        new_first = j + 1;
    }
}

static size_t char_start(struct str text, size_t at)
{
    for (unsigned n = 0; n < 3 && at > 0 && at < text.n && (text.p[at] & 0xc0) == 0x80; n++)
        at--;
    return at;
}

static size_t char_end(struct str text, size_t at)
{
    for (unsigned n = 0; n < 3 && at > 0 && at < text.n && (text.p[at] & 0xc0) == 0x80; n++)
        at++;
    return at;
}

/* The replaced region, widened to whole characters and comments. */
static void widen_region(const struct merge *m, const struct critic_edit *edit, struct region *ret)
{
    size_t from = char_start(m->before, edit->at), to = char_end(m->before, edit->at + edit->n);
    struct critic_remarks all;
    struct buf fresh;

    critic_remarks_of(m->c, 0, m->before.n, m->mem, &all);
    for (size_t i = 0; i < all.n; i++) {
        if (touches(&all.p[i].range, from, from))
            from = all.p[i].range.from;
        if (touches(&all.p[i].range, to, to))
            to = all.p[i].range.to;
    }
    buf_init(&fresh, SIZE_MAX);
    buf_addstr(&fresh, critic_cut(m->before, from, edit->at));
    buf_addstr(&fresh, edit->fresh);
    buf_addstr(&fresh, critic_cut(m->before, edit->at + edit->n, to));
    *ret = (struct region){.from = from, .to = to, .fresh = arena_dup(m->mem, buf_str(&fresh))};
    buf_release(&fresh);
}

static struct str splice(struct str text, size_t from, size_t to, struct str with,
                         struct arena *mem)
{
    size_t n = text.n - (to - from) + with.n;
    char *p = arena_alloc(mem, n + 1);

    memcpy(p, text.p, from);
    if (with.n)
        memcpy(p + from, with.p, with.n);
    memcpy(p + from + with.n, text.p + to, text.n - to);
    p[n] = '\0';
    return str_n(p, n);
}

/* Delimiters that could open a mark, even if they do not. */
static size_t count_openers(struct str text)
{
    const char *end = text.p + text.n, *at = text.n ? memchr(text.p, '{', text.n) : NULL;
    size_t n = 0;

    for (; at && end - at >= 3; at = memchr(at + 1, '{', (size_t)(end - at - 1)))
        n += at[1] == at[2] && memchr("+-~>=", at[1], 5);
    return n;
}

bool critic_limits_hold(struct str source, struct error *err)
{
    size_t marks = count_openers(source);

    if (marks > CRITIC_MARKS_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "The document would hold %zu CriticMarkup marks; the limit is %d. Ask for "
                         "pending suggestions to be decided first, or make a smaller edit.",
                         marks, CRITIC_MARKS_MAX);
    if (source.n > CRITIC_SIZE_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "The document would have %zu bytes with its suggestions; the limit is %u. "
                         "Make a smaller edit, or ask for pending suggestions to be decided first.",
                         source.n, CRITIC_SIZE_MAX);
    return true;
}

/* Finds the comments of the new text, as the new accepted view shows them, and checks the text. */
static bool read_fresh(struct merge *m, struct region *r, struct error *err)
{
    struct critic_input in = {
        .after = splice(m->before, r->from, r->to, r->fresh, m->mem),
        .region = {r->from, r->from + r->fresh.n},
        .added = &r->added,
    };

    critic_remarks_within(in.after, in.region, m->mem, &r->added);
    return critic_limits_hold(in.after, err) && critic_remarks_match(&r->old, &r->added, err) &&
           critic_input_check(&in, m->mem, err);
}

static bool prepare(struct merge *m, const struct critic *c, const struct critic_edit *edit,
                    struct arena *mem, struct error *err)
{
    struct region r;

    *m = (struct merge){.c = c, .before = critic_accepted(c, mem), .mem = mem};
    if (!critic_limits_hold(c->source, err))
        return false;
    if (edit->at > m->before.n || edit->n > m->before.n - edit->at)
        return error_set(err, ERR_BAD_INPUT,
                         "The edit lies outside the document; read it again and repeat the edit.");
    find_atoms(m);
    widen_region(m, edit, &r);
    critic_remarks_of(c, r.from, r.to, mem, &r.old);
    if (!read_fresh(m, &r, err))
        return false;
    if (r.added.n)
        r.fresh = critic_remarks_stamp(r.fresh, &r.added, &edit->author, mem);
    m->after = splice(m->before, r.from, r.to, r.fresh, mem);
    if (!critic_brings_no_marks(m->before, m->after, mem, err))
        return false;
    compare(m, &r);
    normalize_hunks(m);
    return true;
}

static size_t line_start(struct str text, size_t at)
{
    while (at > 0 && text.p[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(struct str text, size_t at)
{
    while (at < text.n && text.p[at++] != '\n')
        ;
    return at;
}

static bool is_blank_line(struct str text, size_t at)
{
    for (; at < text.n && text.p[at] != '\n'; at++)
        if (text.p[at] != ' ' && text.p[at] != '\t' && text.p[at] != '\r')
            return false;
    return true;
}

/* The paragraph around [from, to): whole lines, up to a blank line on either side. */
static struct critic_range paragraph_around(struct str text, size_t from, size_t to)
{
    from = line_start(text, from);
    while (from > 0 && !is_blank_line(text, line_start(text, from - 1)))
        from = line_start(text, from - 1);
    to = line_end(text, to);
    while (to < text.n && !is_blank_line(text, to))
        to = line_end(text, to);
    return (struct critic_range){from, to};
}

/* Widens every hunk as far as `reach` says, up to changes that it does not touch. */
static void widen_hunks(struct merge *m, enum reach reach)
{
    size_t below = 0, fence = 0;

    for (size_t i = 0; i < m->hunks.n; i++) {
        struct critic_hunk *h = &m->hunks.p[i];
        struct critic_range wide = {0, m->before.n};
        size_t above;

        if (reach == REACH_PARAGRAPH)
            wide = paragraph_around(m->before, h->from, h->to);
        for (; fence < m->n_fences && m->fences[fence].to <= h->from; fence++)
            below = m->fences[fence].to;
        while (fence < m->n_fences && m->fences[fence].from < h->to)
            fence++;
        above = fence < m->n_fences ? m->fences[fence].from : m->before.n;
        stretch(h, wide.from > below ? wide.from : below, wide.to < above ? wide.to : above);
    }
    normalize_hunks(m);
}

/* Joins hunks first … last, unless a change or highlight lies between them. */
static bool join_hunks(struct merge *m, size_t first, size_t last)
{
    struct critic_hunk *h = m->hunks.p;

    if (first >= last || fence_between(m, h[first].to, h[last].from))
        return false;
    h[first].to = h[last].to;
    h[first].new_to = h[last].new_to;
    memmove(h + first + 1, h + last + 1, (m->hunks.n - last - 1) * sizeof *h);
    m->hunks.n -= last - first;
    return true;
}

static bool refuse_overwriting(const struct critic_span *span, struct error *err)
{
    struct str text = span->inserted.n ? span->inserted : span->deleted, author = span->meta.author;

    return error_set(err, ERR_BAD_INPUT,
                     "This edit would replace a suggestion of %.*s that is not decided yet: "
                     "'%.*s'. Ask for it to be accepted or rejected first, or edit the text around "
                     "it.",
                     (int)(author.n ? author.n > 80 ? 80 : author.n : 8),
                     author.n ? author.p : "a person", (int)(text.n > 100 ? 100 : text.n), text.p);
}

/* `mem` holds all intermediate results. */
static bool merge_in(const struct critic *c, const struct critic_edit *edit, bool is_suggestion,
                     struct arena *mem, struct str *ret, struct error *err)
{
    size_t first = 1, last = 0;
    bool done = false;
    struct merge m;

    if (!prepare(&m, c, edit, mem, err))
        return false;
    for (enum reach reach = REACH_WORDS; !done && reach < N_REACHES; reach++) {
        struct critic_emission how = {&m.hunks, m.after, is_suggestion ? &edit->author : NULL,
                                      .plain_again = reach <= REACH_JOINED};
        struct critic_wanted want = {c, m.after, &edit->author, is_suggestion};
        struct critic_emitted out;

        if (reach == REACH_JOINED && !join_hunks(&m, first, last))
            continue;
        if (reach > REACH_JOINED)
            widen_hunks(&m, reach);
        critic_emit(c, &how, mem, &out);
        if (out.overwritten || !critic_limits_hold(out.source, err)) {
            critic_hunks_release(&m.hunks);
            return out.overwritten ? refuse_overwriting(out.overwritten, err) : false;
        }
        done = !out.moves_comment && critic_verify(&want, &out, mem, &first, &last);
        if (done)
            *ret = out.source;
    }
    critic_hunks_release(&m.hunks);
    return done ||
           error_set(
               err, ERR_BAD_INPUT,
               "This edit and the text around it would make or break code or markup together. Edit "
               "one place at a time, or whole paragraphs; leave comments to the comment tool; or "
               "have the suggestions beside it accepted or rejected first.");
}

static bool merge(const struct critic *c, const struct critic_edit *edit, bool is_suggestion,
                  struct arena *mem, struct str *ret, struct error *err)
{
    struct arena *scratch = arena_new(SIZE_MAX);
    struct str result = STR_NONE;
    bool ok = merge_in(c, edit, is_suggestion, scratch, &result, err);

    if (ok)
        *ret = result.p == c->source.p ? c->source : arena_dup(mem, result);
    arena_free(scratch);
    return ok;
}

bool critic_suggest(const struct critic *c, const struct critic_edit *edit, struct arena *mem,
                    struct str *ret, struct error *err)
{
    return merge(c, edit, true, mem, ret, err);
}

bool critic_apply(const struct critic *c, const struct critic_edit *edit, struct arena *mem,
                  struct str *ret, struct error *err)
{
    return merge(c, edit, false, mem, ret, err);
}
