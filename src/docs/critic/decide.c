/* SPDX-License-Identifier: Apache-2.0 */
/* Review: lists the suggestions that wait for a person, and applies decisions. */
#include "docs/critic/critic_impl.h"

#define CONTEXT_MAX 60

static const char *type_of(const struct critic_span *span)
{
    if (span->kind == CRITIC_COMMENT)
        return "comment";
    if (span->kind == CRITIC_HIGHLIGHT)
        return "highlight";
    if (!span->deleted.p)
        return "addition";
    return span->inserted.p ? "substitution" : "deletion";
}

/* Up to CONTEXT_MAX bytes of the accepted view on either side, whole characters. */
static struct str context_before(struct str accepted, size_t at)
{
    size_t from = at > CONTEXT_MAX ? at - CONTEXT_MAX : 0;

    while (from < at && (accepted.p[from] & 0xc0) == 0x80)
        from++;
    return critic_cut(accepted, from, at);
}

static struct str context_after(struct str accepted, size_t at)
{
    size_t to = accepted.n - at > CONTEXT_MAX ? at + CONTEXT_MAX : accepted.n;

    while (to > at && to < accepted.n && (accepted.p[to] & 0xc0) == 0x80)
        to--;
    return critic_cut(accepted, at, to);
}

static size_t count_lines(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '\n';
    return n;
}

static struct critic_suggestion describe(const struct critic_span *span)
{
    struct critic_suggestion s = {.type = type_of(span), .raw = span->raw, .meta = span->meta};

    s.old_content = span->kind == CRITIC_HIGHLIGHT ? span->text : span->deleted;
    s.new_content = span->kind == CRITIC_COMMENT ? span->text : span->inserted;
    return s;
}

size_t critic_suggestions(const struct critic *c, struct arena *mem, struct critic_suggestion **ret)
{
    struct critic_suggestion *list = arena_alloc(mem, (c->n + 1) * sizeof *list);
    struct str accepted = critic_accepted(c, mem);
    size_t n = 0, at = 0, source_at = 0, line = 1;

    for (size_t i = 0; i < c->n; i++) {
        const struct critic_span *span = &c->spans[i];
        struct str visible = critic_span_accepted(span);

        if (span->kind != CRITIC_PLAIN) {
            struct critic_suggestion s = describe(span);
            s.span = i;
            s.from = source_at;
            s.to = source_at + span->raw.n;
            s.line = line;
            s.context_before = context_before(accepted, at);
            s.context_after = context_after(accepted, at + visible.n);
            list[n++] = s;
        }
        line += count_lines(visible);
        at += visible.n;
        source_at += span->raw.n;
    }
    *ret = list;
    return n;
}

static struct str decided(const struct critic_span *span, enum critic_verdict verdict)
{
    switch (span->kind) {
    case CRITIC_PLAIN:
        return span->raw;
    case CRITIC_COMMENT:
        return STR_NONE;
    case CRITIC_HIGHLIGHT:
        return span->text;
    case CRITIC_CHANGE:
        break;
    }
    return verdict == CRITIC_ACCEPT ? span->inserted : span->deleted;
}

/* The source with each span that has a text in `texts` (p not NULL) replaced by that text. */
static struct str assemble(const struct critic *c, const struct str *texts, struct arena *mem)
{
    struct str result;
    struct buf out;

    buf_init(&out, SIZE_MAX);
    for (size_t i = 0; i < c->n; i++)
        buf_addstr(&out, texts[i].p ? texts[i] : c->spans[i].raw);
    result = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return result;
}

static struct str present(struct str s)
{
    return s.p ? s : STR("");
}

static struct str *decided_texts(const struct critic *c, const size_t *spans,
                                 const enum critic_verdict *verdicts, size_t n, struct arena *mem)
{
    struct str *texts = arena_zalloc(mem, (c->n + 1) * sizeof *texts);

    for (size_t i = 0; i < n; i++)
        if (spans[i] < c->n)
            texts[spans[i]] = present(decided(&c->spans[spans[i]], verdicts[i]));
    return texts;
}

struct str critic_decide(const struct critic *c, const size_t *spans,
                         const enum critic_verdict *verdicts, size_t n, struct arena *mem)
{
    return assemble(c, decided_texts(c, spans, verdicts, n, mem), mem);
}

/* Reads the marks of a text one after the other, to compare them with those of another. */
struct reading {
    struct critic_scan scan;
    struct critic_piece piece;
};

static bool next_mark(struct reading *r)
{
    while (critic_scan_next(&r->scan, &r->piece))
        if (!r->piece.is_code)
            return true;
    return false;
}

/* Whether `part`, which is at `at`, has the same marks alone as in the whole. */
static bool follow(struct reading *whole, size_t at, struct str part, struct arena *mem)
{
    struct reading alone;

    if (critic_is_plain(part))
        return true;
    critic_scan_begin(&alone.scan, part, mem);
    while (next_mark(&alone))
        if (!next_mark(whole) || whole->piece.from != at + alone.piece.from ||
            whole->piece.to != at + alone.piece.to)
            return false;
    return true;
}

/* An undecided change may consist of several marks, each unchanged. */
static bool follow_raw(struct reading *whole, size_t at, size_t end)
{
    for (; at < end; at = whole->piece.to)
        if (!next_mark(whole) || whole->piece.from != at || whole->piece.to > end)
            return false;
    return true;
}

static bool reads_alike(const struct critic *c, const struct str *texts, struct str result,
                        struct arena *mem)
{
    struct reading whole;
    size_t at = 0;

    critic_scan_begin(&whole.scan, result, mem);
    for (size_t i = 0; i < c->n; i++) {
        size_t n = texts[i].p ? texts[i].n : c->spans[i].raw.n;

        if (texts[i].p ? !follow(&whole, at, texts[i], mem)
                       : c->spans[i].kind != CRITIC_PLAIN && !follow_raw(&whole, at, at + n))
            return false;
        at += n;
    }
    return !next_mark(&whole);
}

bool critic_decides_cleanly(const struct critic *c, const size_t *spans,
                            const enum critic_verdict *verdicts, size_t n, struct str text)
{
    struct arena *mem = arena_new(SIZE_MAX);
    struct str *texts = decided_texts(c, spans, verdicts, n, mem);
    bool alike;

    if (text.p && n && spans[0] < c->n)
        texts[spans[0]] = text;
    alike = reads_alike(c, texts, assemble(c, texts, mem), mem);
    arena_free(mem);
    return alike;
}

struct str critic_decide_as(const struct critic *c, size_t span, struct str text, struct arena *mem)
{
    struct str *texts = arena_zalloc(mem, (c->n + 1) * sizeof *texts);

    if (span < c->n)
        texts[span] = present(text);
    return assemble(c, texts, mem);
}
