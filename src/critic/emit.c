/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a source anew with some hunks of its accepted view replaced.  Outside the hunks every byte
 * is the old one.  A hunk becomes a deletion of the base it covers and an insertion of its new
 * text; comments inside it stand between insertions.
 *
 * Any text can be written: where it holds its own closing mark, or a change's opening mark, the
 * change is cut in two inside that mark, and neither half is a mark any more ("a --} b" is deleted
 * as {--a ---}{---} b--}). */
#include "critic/critic_impl.h"

struct emitter {
    const struct critic_emission *how;
    size_t next; /* hunk */
    bool is_open;
    size_t at;       /* in the accepted view */
    struct buf base; /* of the open hunk */
    struct arena *mem;
    struct buf out;
};

/* Whether a closing mark behind the bytes that begin here might make them open a change. */
static bool may_open(struct str text, size_t at)
{
    for (size_t f = 0; f < countof(critic_marks); f++)
        if (critic_marks[f].is_change && critic_has_at(text, at, critic_marks[f].open))
            return true;
    return false;
}

/* Where the first piece of the text has to end. */
static size_t next_cut(struct str text, const struct critic_marks *m)
{
    for (size_t i = 0; i + 3 <= text.n; i++)
        if (critic_has_at(text, i, m->close) || may_open(text, i))
            return i + 1;
    return text.n;
}

static void write_side(struct emitter *e, enum critic_form form, struct str text)
{
    const struct critic_marks *m = &critic_marks[form];

    while (text.n) {
        size_t n = next_cut(text, m);

        buf_addstr(&e->out, m->open);
        critic_meta_write(&e->out, e->how->author);
        buf_add(&e->out, text.p, n);
        buf_addstr(&e->out, m->close);
        text = critic_cut(text, n, text.n);
    }
}

static void write_inserted(struct emitter *e, struct str text)
{
    struct critic_remarks remarks;
    size_t done = 0;

    critic_remarks_in(text, e->mem, &remarks);
    for (size_t i = 0; i < remarks.n; i++) {
        struct critic_range r = remarks.p[i].range;

        write_side(e, FORM_INSERT, critic_cut(text, done, r.from));
        buf_addstr(&e->out, critic_cut(text, r.from, r.to));
        done = r.to;
    }
    write_side(e, FORM_INSERT, critic_cut(text, done, text.n));
}

static void close_hunk(struct emitter *e)
{
    const struct critic_hunk *h = &e->how->hunks->p[e->next++];
    struct str fresh = critic_cut(e->how->target, h->new_from, h->new_to);

    /* A suggestion taken back is no suggestion. */
    if (!e->how->author || (e->how->plain_again && str_eq(buf_str(&e->base), fresh))) {
        buf_addstr(&e->out, fresh);
    } else {
        write_side(e, FORM_DELETE, buf_str(&e->base));
        write_inserted(e, fresh);
    }
    buf_reset(&e->base);
    e->is_open = false;
}

static const struct critic_hunk *next_hunk(const struct emitter *e)
{
    return e->next < e->how->hunks->n ? &e->how->hunks->p[e->next] : NULL;
}

/* Closes what ends here and opens what begins here, in front of text that has some width. */
static void pass_borders(struct emitter *e)
{
    const struct critic_hunk *h = next_hunk(e);

    if (e->is_open && h->to <= e->at)
        close_hunk(e);
    while (!e->is_open && (h = next_hunk(e)) && h->from <= e->at) {
        e->is_open = true;
        if (h->to <= e->at)
            close_hunk(e);
    }
}

static void emit_plain(struct emitter *e, struct str text)
{
    while (text.n) {
        const struct critic_hunk *h;
        size_t n = text.n;

        pass_borders(e);
        h = next_hunk(e);
        if (h && e->is_open && h->to - e->at < n)
            n = h->to - e->at;
        else if (h && !e->is_open && h->from - e->at < n)
            n = h->from - e->at;
        buf_add(e->is_open ? &e->base : &e->out, text.p, n);
        e->at += n;
        text = critic_cut(text, n, text.n);
    }
}

/* A mark is inside a hunk or outside.  One without width (a deletion) at a hunk's border stays
 * outside. */
static void emit_mark(struct emitter *e, const struct critic_span *span)
{
    size_t width = critic_span_accepted(span).n;

    if (width)
        pass_borders(e);
    else if (e->is_open && next_hunk(e)->to <= e->at)
        close_hunk(e);
    if (!e->is_open)
        buf_addstr(&e->out, span->raw);
    else if (span->kind == CRITIC_CHANGE)
        buf_addstr(&e->base, span->deleted);
    else if (span->kind == CRITIC_HIGHLIGHT)
        buf_addstr(&e->base, span->text);
    e->at += width;
}

struct str critic_emit(const struct critic *c, const struct critic_emission *how, struct arena *mem)
{
    struct emitter e = {.how = how, .mem = mem};
    struct str result;

    buf_init(&e.out, SIZE_MAX);
    buf_init(&e.base, SIZE_MAX);
    for (size_t i = 0; i < c->n; i++) {
        if (c->spans[i].kind == CRITIC_PLAIN)
            emit_plain(&e, c->spans[i].raw);
        else
            emit_mark(&e, &c->spans[i]);
    }
    pass_borders(&e);
    result = arena_dup(mem, buf_str(&e.out));
    buf_release(&e.out);
    buf_release(&e.base);
    return result;
}
