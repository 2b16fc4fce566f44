/* SPDX-License-Identifier: Apache-2.0 */
/* What src/docs/critic promises of every document and every edit, checked from outside with nothing but
 * its public header; for the property test and the fuzz targets.  Each check returns NULL or the
 * promise that was broken. */
#ifndef HOLDFAST_TESTS_CRITIC_CHECK_H
#define HOLDFAST_TESTS_CRITIC_CHECK_H

#include "docs/critic/critic.h"

#include <stdlib.h>

#define CHECK_META "{\"author\":\"Zed's AI\",\"time\":7}@@"
static const struct critic_author check_author = {{"Zed's AI", 8}, 7};

static inline bool check_has(struct str s, const char *part)
{
    return s.n && memmem(s.p, s.n, part, strlen(part));
}

static inline struct str check_join(struct str a, struct str b, struct arena *mem)
{
    char *p = arena_alloc(mem, a.n + b.n + 1);

    if (a.n)
        memcpy(p, a.p, a.n);
    if (b.n)
        memcpy(p + a.n, b.p, b.n);
    return str_n(p, a.n + b.n);
}

/* `s` without the metadata of its comments. */
static inline struct str check_unsigned(struct str s, struct arena *mem)
{
    size_t n = 0;
    char *p = arena_alloc(mem, s.n + 1);

    for (size_t i = 0; i < s.n;) {
        const char *end = i >= 3 && s.p[i] == '{' && memcmp(s.p + i - 3, "{>>", 3) == 0
                              ? memmem(s.p + i, s.n - i, "}@@", 3)
                              : NULL;
        struct str meta = str_n(s.p + i, end ? (size_t)(end - s.p) - i : 0);

        if (end && !check_has(meta, "{>>") && !check_has(meta, "<<}"))
            i = (size_t)(end + 3 - s.p);
        else
            p[n++] = s.p[i++];
    }
    return str_n(p, n);
}

static inline size_t check_width(const struct critic *c, size_t span)
{
    return critic_accepted_offset(c, span + 1) - critic_accepted_offset(c, span);
}

/* Decides everything one way: with CRITIC_REJECT the base without comments. */
static inline struct str check_decide_all(const struct critic *c, enum critic_verdict verdict,
                                          struct arena *mem)
{
    size_t *spans = arena_alloc(mem, (c->n + 1) * sizeof *spans);
    enum critic_verdict *verdicts = arena_alloc(mem, (c->n + 1) * sizeof *verdicts);

    for (size_t i = 0; i < c->n; i++) {
        spans[i] = i;
        verdicts[i] = verdict;
    }
    return critic_decide(c, spans, verdicts, c->n, mem);
}

static inline struct str check_drop_comments(const struct critic *c, bool accepted,
                                             struct arena *mem)
{
    struct str view = accepted ? critic_accepted(c, mem) : critic_base(c, mem);
    char *p = arena_alloc(mem, view.n + 1);
    size_t n = 0, at = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct critic_span *s = &c->spans[i];
        size_t width = s->kind == CRITIC_CHANGE      ? (accepted ? s->inserted.n : s->deleted.n)
                       : s->kind == CRITIC_HIGHLIGHT ? s->text.n
                                                     : s->raw.n;
        if (s->kind != CRITIC_COMMENT && width)
            memcpy(p + n, view.p + at, width);
        n += s->kind == CRITIC_COMMENT ? 0 : width;
        at += width;
    }
    return str_n(p, n);
}

/* What is left when everything is rejected, and then the highlights that were in deletions. */
static inline struct str check_bare(const struct critic *c, struct arena *mem)
{
    struct critic again;

    critic_parse(check_decide_all(c, CRITIC_REJECT, mem), mem, &again);
    return check_decide_all(&again, CRITIC_REJECT, mem);
}

static inline const char *check_document(struct str source, struct arena *mem)
{
    struct critic c;
    bool plain = true;
    size_t n = 0;

    critic_parse(source, mem, &c);
    for (size_t i = 0; i < c.n; i++) {
        if (c.spans[i].raw.p != source.p + n || c.spans[i].raw.n == 0)
            return "spans follow each other without gap";
        n += c.spans[i].raw.n;
        plain = plain && c.spans[i].kind == CRITIC_PLAIN;
        if (c.spans[i].kind == CRITIC_PLAIN && !critic_is_plain(c.spans[i].raw) &&
            !check_has(source, "`") && !check_has(source, "~~~"))
            return "a plain piece holds no markup";
    }
    if (n != source.n)
        return "spans are the whole source";
    if (plain != critic_is_plain(source))
        return "plain is what has only plain spans";
    if (!str_eq(check_decide_all(&c, CRITIC_ACCEPT, mem), check_drop_comments(&c, true, mem)))
        return "accepting all leaves the accepted view";
    if (!str_eq(check_decide_all(&c, CRITIC_REJECT, mem), check_drop_comments(&c, false, mem)))
        return "rejecting all leaves the base view";
    if (!str_eq(critic_decide(&c, NULL, NULL, 0, mem), source))
        return "deciding nothing changes nothing";
    return NULL;
}

static inline bool check_opens_change(struct str s)
{
    return check_has(s, "{++") || check_has(s, "{--") || check_has(s, "{~~");
}

/* Written in several marks, because it holds marks that are text. */
static inline bool check_is_cut(const struct critic_span *s, struct str side)
{
    return side.p && (side.p < s->raw.p || side.p > s->raw.p + s->raw.n);
}

/* Changes that are new may hold no opening mark. */
static inline const char *check_nesting(const struct critic *before, const struct critic *after)
{
    for (size_t i = 0; i < after->n; i++) {
        const struct critic_span *s = &after->spans[i];
        struct critic inner;
        struct arena *mem;
        bool nested = false;

        if (s->kind != CRITIC_CHANGE || !check_has(s->raw, CHECK_META) ||
            memmem(before->source.p, before->source.n, s->raw.p, s->raw.n) ||
            (!check_opens_change(s->deleted) && !check_opens_change(s->inserted)))
            continue;
        mem = arena_new(SIZE_MAX);
        for (int side = 0; side < 2; side++) {
            if (check_is_cut(s, side ? s->inserted : s->deleted))
                continue;
            critic_parse(side ? s->inserted : s->deleted, mem, &inner);
            for (size_t j = 0; j < inner.n; j++)
                nested = nested || inner.spans[j].kind == CRITIC_CHANGE;
        }
        arena_free(mem);
        if (nested)
            return "nothing is nested";
    }
    return NULL;
}

/* Marks that lie wholly before or behind the edit are found again, in order, as they were. */
static inline const char *check_untouched(const struct critic *before, const struct critic_edit *e,
                                          struct str after)
{
    size_t at = 0, width;

    for (size_t i = 0; i < before->n; i++, at += width) {
        const struct critic_span *s = &before->spans[i];
        const char *found;

        width = check_width(before, i);
        if (s->kind == CRITIC_PLAIN || (at + width >= e->at && at <= e->at + e->n))
            continue;
        found = after.n ? memmem(after.p, after.n, s->raw.p, s->raw.n) : NULL;
        if (!found)
            return "marks that are not touched keep their bytes";
        after = str_n(found + s->raw.n, (size_t)(after.p + after.n - found) - s->raw.n);
    }
    return NULL;
}

/* Without code nothing is widened: all bytes on both sides stay where they are. */
static inline const char *check_surroundings(const struct critic *before,
                                             const struct critic_edit *e, struct str after)
{
    struct str source = before->source;
    size_t at = 0, head = 0, tail = 0, width;

    for (size_t i = 0; i < before->n; i++, at += width) {
        const struct critic_span *s = &before->spans[i];

        width = check_width(before, i);
        if (at + width < e->at)
            head += s->raw.n;
        else if (s->kind == CRITIC_PLAIN && at < e->at)
            head += e->at - at;
        if (at > e->at + e->n)
            tail += s->raw.n;
        else if (s->kind == CRITIC_PLAIN && at + width > e->at + e->n)
            tail += at + width - e->at - e->n;
    }
    if (after.n < head || memcmp(after.p, source.p, head) != 0)
        return "what stands before the edit is byte-identical";
    if (after.n < tail || memcmp(after.p + after.n - tail, source.p + source.n - tail, tail) != 0)
        return "what stands behind the edit is byte-identical";
    return NULL;
}

/* Whether the place may lie inside a comment, taking every pair of marks for one. */
static inline bool check_cuts_comment(struct str text, size_t at)
{
    return check_has(str_n(text.p, at + 2 < text.n ? at + 2 : text.n), "{>>") &&
           check_has(str_n(text.p + at - (at < 2 ? at : 2), text.n - at + (at < 2 ? at : 2)),
                     "<<}");
}

static inline const char *check_accepted(struct str before, const struct critic_edit *e,
                                         struct str after, struct arena *mem)
{
    struct str want = check_join(check_join(str_n(before.p, e->at), e->fresh, mem),
                                 str_n(before.p + e->at + e->n, before.n - e->at - e->n), mem);

    /* A comment that is new or was cut through is signed anew. */
    if (check_cuts_comment(before, e->at) || check_cuts_comment(before, e->at + e->n) ||
        (check_has(e->fresh, "{>>") && check_has(e->fresh, "@@")))
        return NULL;
    if (check_has(want, "{>>") || check_has(before, "{>>")) {
        want = check_unsigned(want, mem);
        after = check_unsigned(after, mem);
    }
    return str_eq(want, after) ? NULL : "accepted is the old accepted with the replacement";
}

/* Only then are the bytes on both sides not taken in: the edit cuts through no character. */
static inline bool check_is_whole(struct str text, const struct critic_edit *e)
{
    size_t to = e->at + e->n;

    return (e->at >= text.n || (text.p[e->at] & 0xc0) != 0x80) &&
           (to >= text.n || (text.p[to] & 0xc0) != 0x80);
}

/* Reasons to refuse an edit: comments, code, markup that it would form, pending changes of people.
 */
static inline bool check_may_refuse(const struct critic *before, const struct critic_edit *e,
                                    struct arena *mem)
{
    struct str text = check_join(critic_accepted(before, mem), e->fresh, mem);

    if (check_has(before->source, "`") || check_has(before->source, "~") || check_has(text, "`") ||
        check_has(text, "~") || check_has(text, "{") || check_has(text, "}"))
        return true;
    for (size_t i = 0; i < before->n; i++)
        if (before->spans[i].kind == CRITIC_CHANGE &&
            !str_ends(before->spans[i].meta.author, STR("'s AI")))
            return true;
    return false;
}

/* Everything promised of one edit.  *ret_after is the new source, absent when it was refused. */
static inline const char *check_edit(struct str source, const struct critic_edit *e,
                                     struct arena *mem, struct str *ret_after)
{
    struct critic before, after;
    struct str written, applied;
    const char *broken;
    struct error err;

    *ret_after = STR_NONE;
    critic_parse(source, mem, &before);
    if (critic_apply(&before, e, mem, &applied, &err)) {
        critic_parse(applied, mem, &after);
        broken =
            check_accepted(critic_accepted(&before, mem), e, critic_accepted(&after, mem), mem);
        if (broken)
            return broken;
    }
    if (!critic_suggest(&before, e, mem, &written, &err))
        return check_may_refuse(&before, e, mem) ? NULL : "there is a reason to refuse";
    *ret_after = written;
    critic_parse(written, mem, &after);
    broken = check_accepted(critic_accepted(&before, mem), e, critic_accepted(&after, mem), mem);
    if (!broken && !str_eq(check_bare(&before, mem), check_bare(&after, mem)))
        broken = "base is unchanged";
    if (!broken)
        broken = check_nesting(&before, &after);
    if (!broken)
        broken = check_untouched(&before, e, written);
    if (!broken && !check_may_refuse(&before, e, mem) &&
        check_is_whole(critic_accepted(&before, mem), e))
        broken = check_surroundings(&before, e, written);
    return broken ? broken : check_document(written, mem);
}

#endif
