/* SPDX-License-Identifier: Apache-2.0 */
/* Turns pieces into spans.  Code is plain text here; callers that need the place of code scan
 * again.  A deletion and the insertion directly after it are one change if both name the same
 * author or neither names one.  Adjacent changes by different authors stay two changes, to be
 * decided separately.
 *
 * emit.c cuts a text that contains a mark into several deletions or insertions.  Each alone has
 * half of a mark, so together they are one change. */
#include "docs/critic/critic_impl.h"

#include <stdlib.h>

struct spans {
    struct critic_span *p; /* heap */
    size_t n, cap;
    struct arena *mem;
    struct buf side; /* text of the last change's side, while pieces are added to it */
    bool is_growing;
};

static struct str *last_side(struct critic_span *change)
{
    return change->inserted.p ? &change->inserted : &change->deleted;
}

static void finish_side(struct spans *s)
{
    if (s->is_growing)
        *last_side(&s->p[s->n - 1]) = arena_dup(s->mem, buf_str(&s->side));
    s->is_growing = false;
}

static struct critic_span *add_span(struct spans *s, struct critic_span span)
{
    finish_side(s);
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 16;
        s->p = xrealloc(s->p, s->cap * sizeof *s->p);
    }
    s->p[s->n] = span;
    return &s->p[s->n++];
}

static void add_plain(struct spans *s, struct str text)
{
    if (text.n)
        add_span(s, (struct critic_span){.kind = CRITIC_PLAIN, .raw = text, .text = text});
}

static bool same_author(const struct critic_meta *a, const struct critic_meta *b)
{
    return !a->author.p == !b->author.p && str_eq(a->author, b->author);
}

/* Whether the insertion `piece` belongs to the deletion directly before it. */
static bool joins_deletion(const struct spans *s, const struct critic_piece *piece)
{
    const struct critic_span *last = s->n ? &s->p[s->n - 1] : NULL;

    return last && last->kind == CRITIC_CHANGE && !last->inserted.p &&
           same_author(&last->meta, &piece->meta);
}

static bool is_mark_char(char c)
{
    return memchr("{}+-~=<>", c, 8) != NULL;
}

/* Whether `rest` may be the second half of a text that was cut inside a mark. */
static bool was_cut(struct str text, struct str rest)
{
    return text.n && rest.n && is_mark_char(text.p[text.n - 1]) && is_mark_char(rest.p[0]);
}

/* Adds the piece to the last change if it continues the side that the change ends with. */
static bool continues(struct spans *s, const struct critic_piece *piece, struct str body)
{
    struct critic_span *last = s->n ? &s->p[s->n - 1] : NULL;
    struct str side;

    if (!last || last->kind != CRITIC_CHANGE || !last->meta.author.p ||
        !same_author(&last->meta, &piece->meta) || last->meta.time_s != piece->meta.time_s)
        return false;
    side = s->is_growing ? buf_str(&s->side) : *last_side(last);
    if (piece->form != (last->inserted.p ? FORM_INSERT : FORM_DELETE) || !was_cut(side, body))
        return false;
    if (!s->is_growing) {
        buf_reset(&s->side);
        buf_addstr(&s->side, side);
        s->is_growing = true;
    }
    buf_addstr(&s->side, body);
    last->raw.n += piece->to - piece->from;
    return true;
}

static void split_substitution(struct critic_span *span, struct str body)
{
    const char *arrow = memmem(body.p, body.n, "~>", 2);
    size_t at = (size_t)(arrow - body.p);

    span->deleted = str_n(body.p, at);
    span->inserted = str_n(arrow + 2, body.n - at - 2);
}

static void add_mark(struct spans *s, struct str source, const struct critic_piece *piece)
{
    struct critic_span span = {.kind = CRITIC_CHANGE,
                               .raw = critic_cut(source, piece->from, piece->to),
                               .meta = piece->meta};
    struct str body = critic_cut(source, piece->body, piece->body_end);

    if (continues(s, piece, body))
        return;
    if (piece->form == FORM_INSERT && joins_deletion(s, piece)) {
        struct critic_span *deletion = &s->p[s->n - 1];
        finish_side(s);
        deletion->raw.n += span.raw.n;
        deletion->inserted = body;
        if (piece->meta.time_s > deletion->meta.time_s)
            deletion->meta.time_s = piece->meta.time_s;
        return;
    }
    if (piece->form == FORM_INSERT) {
        span.inserted = body;
    } else if (piece->form == FORM_DELETE) {
        span.deleted = body;
    } else if (piece->form == FORM_SUBSTITUTE) {
        split_substitution(&span, body);
    } else {
        span.kind = piece->form == FORM_COMMENT ? CRITIC_COMMENT : CRITIC_HIGHLIGHT;
        span.text = body;
    }
    add_span(s, span);
}

void critic_parse(struct str source, struct arena *mem, struct critic *ret)
{
    struct spans spans = {.mem = mem};
    struct critic_scan scan;
    struct critic_piece piece;
    size_t done = 0;

    if (!source.p)
        source = STR("");
    buf_init(&spans.side, SIZE_MAX);
    critic_scan_begin(&scan, source, mem);
    while (critic_scan_next(&scan, &piece)) {
        if (piece.is_code)
            continue;
        add_plain(&spans, critic_cut(source, done, piece.from));
        add_mark(&spans, source, &piece);
        done = piece.to;
    }
    add_plain(&spans, critic_cut(source, done, source.n));
    finish_side(&spans);
    buf_release(&spans.side);
    *ret = (struct critic){.source = source, .n = spans.n, .steps = scan.steps};
    ret->spans = arena_alloc(mem, (spans.n ? spans.n : 1) * sizeof *spans.p);
    if (spans.n)
        memcpy(ret->spans, spans.p, spans.n * sizeof *spans.p);
    free(spans.p);
}

static bool may_hold_marks(struct str source)
{
    size_t at = 0;

    while (at < source.n) {
        const char *brace = memchr(source.p + at, '{', source.n - at);
        if (!brace)
            return false;
        at = (size_t)(brace - source.p);
        for (size_t f = 0; f < countof(critic_marks); f++)
            if (critic_has_at(source, at, critic_marks[f].open))
                return true;
        at++;
    }
    return false;
}

bool critic_is_plain(struct str source)
{
    struct critic_scan scan;
    struct critic_piece piece;
    struct arena *mem;
    bool plain = true;

    if (!may_hold_marks(source))
        return true;
    mem = arena_new(SIZE_MAX);
    critic_scan_begin(&scan, source, mem);
    while (plain && critic_scan_next(&scan, &piece))
        plain = piece.is_code;
    arena_free(mem);
    return plain;
}
