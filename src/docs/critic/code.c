/* SPDX-License-Identifier: Apache-2.0 */
/* Finds changes on which code outside of them depends.  A text of a change is "whole" if it opens
 * and closes all its code itself.  If both texts of a change are whole, the rest reads the same
 * whichever a person chooses.  A change is bound to its surroundings if one of its texts is not
 * whole, or if its edge touches text that may become code with it: deciding it alone could turn
 * other marks into code, or code into marks.
 *
 * In doubt a change counts as bound, at the price of one larger suggestion instead of several small
 * ones. */
#include "docs/critic/critic_impl.h"

/* The surroundings of a change. */
struct around {
    struct str before, after;     /* plain text up to the nearest mark or the end */
    bool is_first;                /* the change begins the document */
    bool code_before, code_after; /* marks beside it may be code */
    bool is_loose;                /* the document has unclosed code or stray backticks */
};

static bool has(struct str text, const char *what)
{
    return text.n && memmem(text.p, text.n, what, strlen(what));
}

static bool may_be_code(struct str text)
{
    return has(text, "`") || has(text, "~~~");
}

static bool is_whole(struct str text, struct arena *mem)
{
    struct critic_scan scan;
    struct critic_piece piece;
    size_t done = 0;

    if (!may_be_code(text))
        return true;
    critic_scan_begin(&scan, text, mem);
    while (critic_scan_next(&scan, &piece)) {
        if (has(critic_cut(text, done, piece.from), "`"))
            return false;
        if (piece.is_fence && (!piece.is_closed || text.p[piece.to - 1] != '\n'))
            return false;
        if (!piece.is_code && may_be_code(critic_cut(text, piece.from, piece.to)))
            return false;
        done = piece.to;
    }
    return !has(critic_cut(text, done, text.n), "`");
}

static struct str side(const struct critic_span *span, bool inserted)
{
    if (span->kind == CRITIC_CHANGE)
        return inserted ? span->inserted : span->deleted;
    return span->text;
}

static bool is_loose(const struct critic *c, const bool *is_new, struct arena *mem)
{
    struct critic_scan scan;
    struct critic_piece piece;
    size_t done = 0;

    critic_scan_begin(&scan, c->source, mem);
    while (critic_scan_next(&scan, &piece)) {
        bool aligned = piece.from == 0 || c->source.p[piece.from - 1] == '\n';

        if (has(critic_cut(c->source, done, piece.from), "`") ||
            (piece.is_fence && (!piece.is_closed || !aligned)))
            return true;
        done = piece.to;
    }
    if (has(critic_cut(c->source, done, c->source.n), "`"))
        return true;
    for (size_t i = 0; i < c->n; i++)
        if (c->spans[i].kind != CRITIC_PLAIN && !is_new[i] &&
            (!is_whole(side(&c->spans[i], true), mem) || !is_whole(side(&c->spans[i], false), mem)))
            return true;
    return false;
}

static bool is_edge(char c)
{
    return c == '`' || c == '~' || c == '\\';
}

/* Whether the text, after blanks, begins like a fence. */
static bool begins_fence(struct str text)
{
    size_t at = 0;

    while (at < text.n && (text.p[at] == ' ' || text.p[at] == '\t'))
        at++;
    return critic_has_at(text, at, STR("```")) || critic_has_at(text, at, STR("~~~"));
}

/* Whether the last line of `before` has a character other than a blank. */
static bool is_inside_line(struct str before)
{
    for (size_t i = before.n; i > 0 && before.p[i - 1] != '\n'; i--)
        if (before.p[i - 1] != ' ' && before.p[i - 1] != '\t')
            return true;
    return false;
}

static bool is_alone_in_line(const struct around *a)
{
    size_t i = 0;

    while (i < a->after.n &&
           (a->after.p[i] == ' ' || a->after.p[i] == '\t' || a->after.p[i] == '\r'))
        i++;
    return !is_inside_line(a->before) && (i == a->after.n || a->after.p[i] == '\n');
}

static bool text_is_bound(struct str text, const struct around *a, struct arena *mem)
{
    bool edge_before = a->code_before || (a->before.n && is_edge(a->before.p[a->before.n - 1]));
    bool edge_after = a->code_after || (a->after.n && is_edge(a->after.p[0]));
    bool starts_line = a->is_first || (a->before.n && a->before.p[a->before.n - 1] == '\n');
    bool ends_line = !text.n || text.p[text.n - 1] == '\n';

    if (!is_whole(text, mem))
        return true;
    if (text.n ? (is_edge(text.p[0]) && edge_before) || (is_edge(text.p[text.n - 1]) && edge_after)
               : edge_before && edge_after)
        return true;
    if (begins_fence(text) && !starts_line && !is_inside_line(a->before))
        return true;
    if (begins_fence(a->after) && !(starts_line && ends_line) && !is_inside_line(a->before))
        return true;
    return a->is_loose && (may_be_code(text) || has(text, "\n") || is_alone_in_line(a));
}

/* At most this many adjacent marks are examined on either side. */
#define NEIGHBOURS 8

static struct around look_around(const struct critic *c, size_t span, bool is_loose)
{
    struct around a = {.is_first = span == 0, .is_loose = is_loose};
    size_t below = span, above = span + 1;

    while (below > 0 && span - below < NEIGHBOURS && c->spans[below - 1].kind != CRITIC_PLAIN)
        a.code_before = may_be_code(c->spans[--below].raw) || a.code_before;
    while (above < c->n && above - span <= NEIGHBOURS && c->spans[above].kind != CRITIC_PLAIN)
        a.code_after = may_be_code(c->spans[above++].raw) || a.code_after;
    if (below > 0) {
        struct str text = c->spans[below - 1].raw;

        if (below == span)
            a.before = text;
        else
            a.code_before = a.code_before || c->spans[below - 1].kind != CRITIC_PLAIN ||
                            is_edge(text.p[text.n - 1]);
    }
    if (above < c->n) {
        struct str text = c->spans[above].raw;

        if (above == span + 1)
            a.after = text;
        else
            a.code_after = a.code_after || c->spans[above].kind != CRITIC_PLAIN ||
                           is_edge(text.p[0]) || begins_fence(text);
    }
    return a;
}

void critic_code_bound(const struct critic *c, const bool *is_new, bool *is_bound,
                       struct arena *mem)
{
    bool loose = is_loose(c, is_new, mem);

    for (size_t i = 0; i < c->n; i++) {
        struct around a;

        is_bound[i] = false;
        if (!is_new[i] || c->spans[i].kind != CRITIC_CHANGE)
            continue;
        a = look_around(c, i, loose);
        is_bound[i] = text_is_bound(c->spans[i].inserted, &a, mem) ||
                      text_is_bound(c->spans[i].deleted, &a, mem);
    }
}
