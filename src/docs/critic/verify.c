/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the result of an edit against the promises of critic.h, for the present text and after
 * decisions:
 *
 *   - the accepted view is the requested one, and the base is the old one;
 *   - every mark is an old one or signed by this agent, and no mark of a person is missing;
 *   - a reader that ignores code sees no mark signed by a person that it did not see before,
 *     unless a person edits;
 *   - no delimiter is joined across changes, in any combination of decisions (seam.c);
 *   - at most one of the edit's changes is bound to the code around it (code.c); with that change
 *     open, accepted and rejected, and all others open, accepted and rejected, the text reads like
 *     its parts.  Further combinations are checked when the decisions are made. */
#include "docs/critic/critic_impl.h"

/* Whether each mark is an unchanged old one, a mark of this edit, or a comment of its author, and
 * no unchanged old mark is missing. */
static bool marks_are_known(const struct critic_wanted *want, const struct critic_emitted *out,
                            struct arena *mem)
{
    struct critic_scan scan;
    struct critic_piece piece;
    size_t kept = 0, unit = 0, at = 0; /* at: end of the matched part of the next kept mark */

    critic_scan_begin(&scan, out->source, mem);
    while (critic_scan_next(&scan, &piece)) {
        struct str author = piece.meta.author;
        bool is_kept, is_unit;

        if (piece.is_code)
            continue;
        if (kept < out->n_kept && at < out->kept[kept].from)
            at = out->kept[kept].from;
        is_kept = kept < out->n_kept && piece.from == at && piece.to <= out->kept[kept].to;
        while (unit < out->n_units && out->units[unit].range.to <= piece.from)
            unit++;
        is_unit = unit < out->n_units && piece.from >= out->units[unit].range.from &&
                  piece.to <= out->units[unit].range.to && !out->units[unit].is_plain;
        if (!is_kept && (!author.p || !str_eq(author, want->author->name) ||
                         (!is_unit && piece.form != FORM_COMMENT)))
            return false;
        if (is_kept && (at = piece.to) == out->kept[kept].to)
            kept++;
    }
    return kept == out->n_kept;
}

/* The base without comments, and without the marks of highlights inside deletions. */
static struct str bare_text(const struct critic *c, struct arena *mem)
{
    struct str base = critic_bare_base(c, mem);
    struct critic again;

    if (!base.n || !memmem(base.p, base.n, "{==", 3))
        return base;
    critic_parse(base, mem, &again);
    return critic_bare_base(&again, mem);
}

/* Flags that choose the spans and the verdict of one test case. */
enum { BY_PEOPLE_TOO = 1, COMMENTS_TOO = 2, REJECTED = 4, N_CASES = 8 };

static bool decides_cleanly(const struct critic *c, unsigned which, struct arena *mem)
{
    size_t *spans = arena_alloc(mem, (c->n + 1) * sizeof *spans), n = 0;
    enum critic_verdict *verdicts = arena_alloc(mem, (c->n + 1) * sizeof *verdicts);

    for (size_t i = 0; i < c->n; i++) {
        const struct critic_span *s = &c->spans[i];

        if (s->kind == CRITIC_PLAIN || (s->kind != CRITIC_CHANGE && !(which & COMMENTS_TOO)) ||
            (!critic_meta_is_agent(&s->meta) && !(which & BY_PEOPLE_TOO)))
            continue;
        spans[n] = i;
        verdicts[n++] = which & REJECTED ? CRITIC_REJECT : CRITIC_ACCEPT;
    }
    return n == 0 || critic_decides_cleanly(c, spans, verdicts, n, STR_NONE);
}

static bool decides_alike(const struct critic *before, struct str text, struct arena *mem)
{
    struct critic c;

    critic_parse(text, mem, &c);
    for (unsigned which = 0; which < N_CASES; which++)
        /* A case that failed before the edit is not the edit's fault. */
        if (!decides_cleanly(&c, which, mem) && decides_cleanly(before, which, mem))
            return false;
    return true;
}

/* Decides only the changes of this edit. */
static bool own_decide_cleanly(const struct critic *c, const bool *is_new, struct arena *mem)
{
    size_t *spans = arena_alloc(mem, (c->n + 1) * sizeof *spans), n = 0;
    enum critic_verdict *verdicts = arena_zalloc(mem, (c->n + 1) * sizeof *verdicts);

    for (size_t i = 0; i < c->n; i++)
        if (is_new[i] && c->spans[i].kind == CRITIC_CHANGE)
            spans[n++] = i;
    for (int verdict = CRITIC_ACCEPT; verdict <= CRITIC_REJECT; verdict++) {
        for (size_t i = 0; i < n; i++)
            verdicts[i] = (enum critic_verdict)verdict;
        if (!critic_decides_cleanly(c, spans, verdicts, n, STR_NONE))
            return false;
    }
    return true;
}

/* Whether this edit wrote the span or wrote into it.  Plain text on either side of a removal counts
 * too. */
static bool is_of_unit(const struct critic_unit *unit, const struct critic_span *span, size_t at)
{
    if (span->kind == CRITIC_CHANGE)
        return !unit->is_plain && unit->range.from < at + span->raw.n && unit->range.to > at;
    return span->kind == CRITIC_PLAIN && unit->is_plain && unit->range.from <= at + span->raw.n &&
           unit->range.to >= at;
}

static bool *find_new(const struct critic *c, const struct critic_emitted *out, size_t *hunks,
                      struct arena *mem)
{
    bool *is_new = arena_zalloc(mem, c->n + 1);
    size_t at = 0, unit = 0;

    for (size_t i = 0; i < c->n; at += c->spans[i++].raw.n) {
        while (unit < out->n_units && out->units[unit].range.to < at)
            unit++;
        for (size_t u = unit;
             !is_new[i] && u < out->n_units && out->units[u].range.from <= at + c->spans[i].raw.n;
             u++) {
            is_new[i] = is_of_unit(&out->units[u], &c->spans[i], at);
            hunks[i] = out->units[u].hunk;
        }
    }
    return is_new;
}

/* More than one change that is bound to the code around it cannot be decided separately.  Then
 * *ret_from and *ret_to are their hunks. */
static bool is_free(const struct critic *c, const bool *is_new, const size_t *hunks,
                    struct arena *mem, size_t *ret_from, size_t *ret_to)
{
    bool *is_bound = arena_alloc(mem, c->n + 1);
    size_t n = 0;

    critic_code_bound(c, is_new, is_bound, mem);
    for (size_t i = 0; i < c->n; i++) {
        if (!is_bound[i])
            continue;
        if (n++ == 0)
            *ret_from = hunks[i];
        *ret_to = hunks[i];
    }
    return n <= 1;
}

static bool has_code(struct str text)
{
    return text.n && (memchr(text.p, '`', text.n) || memmem(text.p, text.n, "~~~", 3));
}

bool critic_verify_comment(const struct critic *before, struct str result, size_t at,
                           const struct critic_author *author, struct arena *mem)
{
    struct critic_range *kept = arena_alloc(mem, (before->n + 1) * sizeof *kept);
    struct critic_emitted out = {.source = result, .kept = kept};
    struct critic_wanted want = {.before = before, .author = author};
    size_t from = 0, shift = result.n - before->source.n;

    for (size_t i = 0; i < before->n; from += before->spans[i++].raw.n)
        if (before->spans[i].kind != CRITIC_PLAIN) {
            size_t start = from < at ? from : from + shift;
            kept[out.n_kept++] = (struct critic_range){start, start + before->spans[i].raw.n};
        }
    return marks_are_known(&want, &out, mem) &&
           (!has_code(result) || decides_alike(before, result, mem));
}

bool critic_verify(const struct critic_wanted *want, const struct critic_emitted *out,
                   struct arena *mem, size_t *ret_from, size_t *ret_to)
{
    const struct str texts[] = {out->source, out->accepted, out->rejected};
    size_t n_texts = want->is_suggestion ? countof(texts) : 1, *hunks;
    bool code = has_code(want->before->source) || has_code(want->after);
    struct critic_meta author = {.author = want->author->name};
    struct critic c;
    bool *is_new;

    *ret_from = 1;
    *ret_to = 0;
    critic_parse(out->source, mem, &c);
    if (!str_eq(critic_accepted(&c, mem), want->after) || !marks_are_known(want, out, mem) ||
        (critic_meta_is_agent(&author) &&
         critic_brings_signature(want->before->source, out->source, mem)) ||
        (want->is_suggestion && !str_eq(bare_text(&c, mem), bare_text(want->before, mem))))
        return false;
    hunks = arena_zalloc(mem, (c.n + 1) * sizeof *hunks);
    is_new = find_new(&c, out, hunks, mem);
    if (critic_seams_meet(&c, is_new) || !own_decide_cleanly(&c, is_new, mem))
        return false;
    for (size_t i = 0; code && i < n_texts; i++)
        if (!decides_alike(want->before, texts[i], mem))
            return false;
    return !code || is_free(&c, is_new, hunks, mem, ret_from, ret_to);
}
