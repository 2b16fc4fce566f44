/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a source anew with some hunks of its accepted view replaced.  Outside the hunks every byte
 * stays.  A hunk becomes a deletion of the base it covers and an insertion of its new text;
 * comments inside it are written between insertions.
 *
 * Any text can be written.  If it contains its own closing mark, or a change's opening mark, the
 * change is cut in two inside that mark, so that neither half is a mark ("a --} b" is deleted as
 * {--a ---}{---} b--}).  This library reads both halves as one change (critic.c).
 *
 * A highlight inside a hunk is deleted as it was written, so that rejecting the deletion restores
 * it. */
#include "docs/critic/critic_impl.h"

#include "base/map.h"

#include <stdlib.h>

struct emitter {
    const struct critic_emission *how;
    size_t next; /* index of the next hunk */
    bool is_open;
    size_t at;       /* in the accepted view */
    struct buf base; /* of the open hunk, as it reads when its deletion is rejected */
    struct arena *mem;
    struct buf out, accepted, rejected;
    struct map seen;  /* the changes of the document, by their markup */
    int64_t spare_s;  /* the last timestamp chosen to make a change's markup unique */
    struct buf units; /* struct critic_unit */
    struct buf kept;  /* struct critic_range */
    struct critic_emitted *ret;
};

/* Whether the bytes at `at` are an opening mark of a change. */
static bool may_open(struct str text, size_t at)
{
    for (size_t f = 0; f < countof(critic_marks); f++)
        if (critic_marks[f].is_change && critic_has_at(text, at, critic_marks[f].open))
            return true;
    return false;
}

/* The length of the first piece of the text. */
static size_t next_cut(struct str text, const struct critic_marks *m)
{
    for (size_t i = 0; i + 3 <= text.n; i++)
        if (critic_has_at(text, i, m->close) || may_open(text, i))
            return i + 1;
    return text.n;
}

/* Stops past the size limit: the edit is refused then. */
static void write_side(struct buf *out, enum critic_form form, struct str text,
                       const struct critic_author *author)
{
    const struct critic_marks *m = &critic_marks[form];

    while (text.n && out->n <= CRITIC_SIZE_MAX) {
        size_t n = next_cut(text, m);

        buf_addstr(out, m->open);
        critic_meta_write(out, author);
        buf_add(out, text.p, n);
        buf_addstr(out, m->close);
        text = critic_cut(text, n, text.n);
    }
}

static struct str unit_text(struct emitter *e, struct str base, struct str fresh, int64_t time_s)
{
    struct critic_author author = {e->how->author->name, time_s};
    struct str text;
    struct buf out;

    buf_init(&out, SIZE_MAX);
    write_side(&out, FORM_DELETE, base, &author);
    write_side(&out, FORM_INSERT, fresh, &author);
    text = arena_dup(e->mem, buf_str(&out));
    buf_release(&out);
    return text;
}

/* A suggestion is identified by its markup, so all changes of a document must differ.  If an agent
 * makes the same suggestion twice in one second, the second gets an earlier timestamp. */
static void write_unit(struct emitter *e, struct str base, struct str fresh)
{
    struct critic_unit unit = {{e->out.n, 0}, e->next, false};
    struct str text = unit_text(e, base, fresh, e->how->author->time_s);

    if (!text.n)
        return;
    while (map_get(&e->seen, text))
        text = unit_text(e, base, fresh, --e->spare_s);
    map_put(&e->seen, text, e);
    buf_addstr(&e->out, text);
    unit.range.to = e->out.n;
    buf_add(&e->units, &unit, sizeof unit);
    buf_addstr(&e->rejected, base);
    buf_addstr(&e->accepted, fresh);
}

static void write_everywhere(struct emitter *e, struct str text)
{
    buf_addstr(&e->out, text);
    buf_addstr(&e->accepted, text);
    buf_addstr(&e->rejected, text);
}

static void write_plain(struct emitter *e, struct str fresh)
{
    struct critic_unit unit = {{e->out.n, e->out.n + fresh.n}, e->next, true};

    write_everywhere(e, fresh);
    buf_add(&e->units, &unit, sizeof unit);
}

static void write_hunk(struct emitter *e, struct str base, struct str fresh)
{
    struct critic_remarks remarks;
    size_t done = 0;

    critic_remarks_in(fresh, e->mem, &remarks);
    for (size_t i = 0; i < remarks.n; i++) {
        struct critic_range r = remarks.p[i].range;

        write_unit(e, base, critic_cut(fresh, done, r.from));
        write_everywhere(e, critic_cut(fresh, r.from, r.to));
        base = STR("");
        done = r.to;
    }
    write_unit(e, base, critic_cut(fresh, done, fresh.n));
}

static void close_hunk(struct emitter *e)
{
    const struct critic_hunk *h = &e->how->hunks->p[e->next];
    struct str fresh = critic_cut(e->how->target, h->new_from, h->new_to);

    /* A suggestion that restores its base is written as plain text. */
    if (!e->how->author || (e->how->plain_again && str_eq(buf_str(&e->base), fresh)))
        write_plain(e, fresh);
    else
        write_hunk(e, buf_str(&e->base), fresh);
    buf_reset(&e->base);
    e->is_open = false;
    e->next++;
}

static const struct critic_hunk *next_hunk(const struct emitter *e)
{
    return e->next < e->how->hunks->n ? &e->how->hunks->p[e->next] : NULL;
}

/* Closes the hunk that ends here and opens the one that begins here, before text with width. */
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
        if (e->is_open)
            buf_add(&e->base, text.p, n);
        else
            write_everywhere(e, str_n(text.p, n));
        e->at += n;
        text = critic_cut(text, n, text.n);
    }
}

/* A mark is inside a hunk or outside.  A mark without width (a deletion) at a hunk's border stays
 * outside. */
static void emit_mark(struct emitter *e, const struct critic_span *span)
{
    size_t width = critic_span_accepted(span).n;

    if (width)
        pass_borders(e);
    else if (e->is_open && next_hunk(e)->to <= e->at)
        close_hunk(e);
    if (!e->is_open) {
        struct critic_range range = {e->out.n, e->out.n + span->raw.n};

        buf_add(&e->kept, &range, sizeof range);
        write_everywhere(e, span->raw);
    } else if (span->kind == CRITIC_CHANGE)
        buf_addstr(&e->base, span->deleted);
    else if (span->kind == CRITIC_HIGHLIGHT)
        buf_addstr(&e->base, span->raw);
    if (e->is_open && !critic_meta_is_agent(&span->meta)) {
        if (span->kind == CRITIC_CHANGE && !e->ret->overwritten)
            e->ret->overwritten = span;
        e->ret->moves_comment = e->ret->moves_comment || span->kind == CRITIC_COMMENT;
    }
    e->at += width;
}

static struct str take(struct buf *text, struct arena *mem)
{
    struct str taken = arena_dup(mem, buf_str(text));

    buf_release(text);
    return taken;
}

static void *take_list(struct buf *list, struct arena *mem)
{
    void *taken = arena_alloc(mem, list->n + 1);

    if (list->n)
        memcpy(taken, list->p, list->n);
    buf_release(list);
    return taken;
}

void critic_emit(const struct critic *c, const struct critic_emission *how, struct arena *mem,
                 struct critic_emitted *ret)
{
    struct emitter e = {.how = how, .mem = mem, .ret = ret};
    struct buf *all[] = {&e.out, &e.accepted, &e.rejected, &e.base, &e.units, &e.kept};

    *ret = (struct critic_emitted){0};
    for (size_t i = 0; i < countof(all); i++)
        buf_init(all[i], SIZE_MAX);
    if (how->author) {
        e.spare_s = how->author->time_s;
        for (size_t i = 0; i < c->n; i++)
            if (c->spans[i].kind == CRITIC_CHANGE)
                map_put(&e.seen, c->spans[i].raw, &e);
    }
    for (size_t i = 0; i < c->n; i++) {
        if (c->spans[i].kind == CRITIC_PLAIN)
            emit_plain(&e, c->spans[i].raw);
        else
            emit_mark(&e, &c->spans[i]);
    }
    pass_borders(&e);
    ret->source = take(&e.out, mem);
    ret->accepted = take(&e.accepted, mem);
    ret->rejected = take(&e.rejected, mem);
    ret->n_units = e.units.n / sizeof *ret->units;
    ret->n_kept = e.kept.n / sizeof *ret->kept;
    ret->units = take_list(&e.units, mem);
    ret->kept = take_list(&e.kept, mem);
    buf_release(&e.base);
    map_release(&e.seen);
}
