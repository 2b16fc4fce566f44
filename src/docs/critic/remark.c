/* SPDX-License-Identifier: Apache-2.0 */
/* Comments in an edit.  The accepted view shows comments, so an agent's replacement repeats those
 * it keeps, byte for byte and in order; every comment of a person must be among them.  Comments
 * that the agent adds are stamped with its own name, whatever metadata they carry.  Comments are
 * not suggestions: new ones are written beside the changes, never inside, and an agent's comment
 * may be removed without review. */
#include "docs/critic/critic_impl.h"

#include <stdlib.h>

#define NONE SIZE_MAX
/* With more comments than this, all comments of agents count as new. */
#define MATCH_MAX 1000

struct list {
    struct critic_remark *p; /* heap */
    size_t n, cap;
};

static void add(struct list *l, struct critic_remark remark)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 8;
        l->p = xrealloc(l->p, l->cap * sizeof *l->p);
    }
    l->p[l->n++] = remark;
}

static void finish(struct list *l, struct arena *mem, struct critic_remarks *ret)
{
    ret->n = l->n;
    ret->p = arena_alloc(mem, (l->n ? l->n : 1) * sizeof *l->p);
    if (l->n)
        memcpy(ret->p, l->p, l->n * sizeof *l->p);
    free(l->p);
}

/* Adds the comments of a text that lie in `within`; `base` is the offset of its first byte. */
static void scan_text(struct list *l, struct str text, size_t base, struct critic_range within,
                      struct arena *mem)
{
    struct critic_scan scan;
    struct critic_piece piece;

    critic_scan_begin(&scan, text, mem);
    while (critic_scan_next(&scan, &piece)) {
        struct critic_range range = {base + piece.from, base + piece.to};

        if (piece.is_code || piece.form != FORM_COMMENT || range.from < within.from ||
            range.to > within.to)
            continue;
        add(l, (struct critic_remark){range, critic_cut(text, piece.from, piece.to), piece.meta,
                                      NONE});
    }
}

void critic_remarks_of(const struct critic *c, size_t from, size_t to, struct arena *mem,
                       struct critic_remarks *ret)
{
    struct list l = {0};
    size_t at = 0;

    for (size_t i = 0; i < c->n; i++) {
        struct str text = critic_span_accepted(&c->spans[i]);
        enum critic_kind kind = c->spans[i].kind;

        if (at < to && at + text.n > from && kind == CRITIC_COMMENT)
            add(&l, (struct critic_remark){{at, at + text.n}, text, c->spans[i].meta, NONE});
        else if (at < to && at + text.n > from && kind != CRITIC_PLAIN)
            scan_text(&l, text, at, (struct critic_range){from, to}, mem);
        at += text.n;
    }
    finish(&l, mem, ret);
}

void critic_remarks_in(struct str text, struct arena *mem, struct critic_remarks *ret)
{
    critic_remarks_within(text, (struct critic_range){0, text.n}, mem, ret);
}

void critic_remarks_within(struct str text, struct critic_range within, struct arena *mem,
                           struct critic_remarks *ret)
{
    struct list l = {0};

    scan_text(&l, text, 0, within, mem);
    for (size_t i = 0; i < l.n; i++) {
        l.p[i].range.from -= within.from;
        l.p[i].range.to -= within.from;
    }
    finish(&l, mem, ret);
}

/* The index of the first identical comment in fresh[from, to). */
static size_t find_same(const struct critic_remarks *fresh, size_t from, size_t to, struct str raw)
{
    for (size_t j = from; j < to; j++)
        if (str_eq(fresh->p[j].raw, raw))
            return j;
    return NONE;
}

static void pair(struct critic_remarks *old, size_t i, struct critic_remarks *fresh, size_t j)
{
    old->p[i].match = j;
    fresh->p[j].match = i;
}

static void match_agents(struct critic_remarks *old, struct critic_remarks *fresh)
{
    size_t from = 0, next = 0;

    for (size_t i = 0; i < old->n; i++) {
        size_t j;

        while (next < old->n && (next <= i || old->p[next].match == NONE))
            next++;
        if (old->p[i].match == NONE) {
            j = find_same(fresh, from, next < old->n ? old->p[next].match : fresh->n,
                          old->p[i].raw);
            if (j != NONE)
                pair(old, i, fresh, j);
        }
        if (old->p[i].match != NONE)
            from = old->p[i].match + 1;
    }
}

bool critic_remarks_match(struct critic_remarks *old, struct critic_remarks *fresh,
                          struct error *err)
{
    size_t from = 0;

    for (size_t i = 0; i < old->n; i++) {
        size_t j;

        if (critic_meta_is_agent(&old->p[i].meta))
            continue;
        j = find_same(fresh, from, fresh->n, old->p[i].raw);
        if (j == NONE)
            return error_set(err, ERR_BAD_INPUT, "Cannot remove or modify non-AI comment: %.*s",
                             (int)(old->p[i].raw.n > 200 ? 200 : old->p[i].raw.n), old->p[i].raw.p);
        pair(old, i, fresh, j);
        from = j + 1;
    }
    if (old->n <= MATCH_MAX && fresh->n <= MATCH_MAX)
        match_agents(old, fresh);
    return true;
}

struct str critic_remark_text(const struct critic_remark *r, struct arena *mem)
{
    struct str body = critic_cut(r->raw, 3, r->raw.n - 3);
    struct critic_meta meta;
    size_t skip, steps = 0;

    while ((skip = critic_meta_read(body, mem, &meta, &steps)) > 0)
        body = critic_cut(body, skip, body.n);
    return body;
}

struct str critic_remarks_stamp(struct str text, struct critic_remarks *fresh,
                                const struct critic_author *author, struct arena *mem)
{
    struct buf out;
    struct str stamped;
    size_t done = 0;

    buf_init(&out, SIZE_MAX);
    for (size_t i = 0; i < fresh->n; i++) {
        struct critic_remark *r = &fresh->p[i];
        size_t from, to = r->range.to;

        buf_addstr(&out, critic_cut(text, done, r->range.from));
        from = out.n;
        if (r->match != NONE)
            buf_addstr(&out, r->raw);
        else /* even with the right stamp: further metadata may follow it */
            critic_comment_write(&out, critic_remark_text(r, mem), author);
        r->range = (struct critic_range){from, out.n};
        done = to;
    }
    buf_addstr(&out, critic_cut(text, done, text.n));
    stamped = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return stamped;
}

struct str critic_stamp(struct str input, const struct critic_author *author, struct arena *mem)
{
    struct critic_remarks remarks;

    critic_remarks_in(input, mem, &remarks);
    return remarks.n ? critic_remarks_stamp(input, &remarks, author, mem) : input;
}
