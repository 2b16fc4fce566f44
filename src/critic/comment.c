/* SPDX-License-Identifier: Apache-2.0 */
/* Markup in what agents send, and comments placed for them. */
#include "critic/critic_impl.h"

static struct str mark_at(struct str input, size_t at)
{
    for (size_t f = 0; f < countof(critic_marks); f++) {
        const struct critic_marks *m = &critic_marks[f];
        if (f == FORM_COMMENT)
            continue;
        if (critic_has_at(input, at, m->open) || critic_has_at(input, at, m->close))
            return str_n(input.p + at, 3);
    }
    return STR_NONE;
}

struct str critic_forbidden(struct str input)
{
    for (size_t i = 0; i + 3 <= input.n; i++) {
        struct str found = mark_at(input, i);
        if (found.p)
            return found;
    }
    return STR_NONE;
}

static bool has_mark(struct str text, struct str mark)
{
    for (size_t i = 0; i < text.n; i++)
        if (critic_has_at(text, i, mark))
            return true;
    return false;
}

static bool text_is_fit(struct str text, struct error *err)
{
    struct str mark = critic_forbidden(text);
    bool blank = true;

    for (size_t i = 0; i < text.n; i++)
        blank = blank && memchr(" \t\r\n", text.p[i], 4);
    if (blank)
        return error_set(err, ERR_BAD_INPUT, "The comment is blank; say something in it.");
    if (!mark.p && has_mark(text, STR("{>>")))
        mark = STR("{>>");
    if (!mark.p && has_mark(text, STR("<<}")))
        mark = STR("<<}");
    if (mark.p)
        return error_set(err, ERR_BAD_INPUT,
                         "The comment contains CriticMarkup syntax '%.*s'; send its text alone.",
                         STR_ARG(mark));
    return true;
}

static size_t thread_end(const struct critic *c, size_t span, size_t source_at)
{
    for (; span < c->n && c->spans[span].kind == CRITIC_COMMENT; span++)
        source_at += c->spans[span].raw.n;
    return source_at;
}

/* Out of code, and not inside a character. */
static size_t leave_code(const struct critic *c, size_t source_at, struct arena *mem)
{
    struct critic_scan scan;
    struct critic_piece piece;

    critic_scan_begin(&scan, c->source, mem);
    while (critic_scan_next(&scan, &piece) && piece.from < source_at)
        if (piece.is_code && source_at < piece.to)
            return piece.to;
    while (source_at < c->source.n && (c->source.p[source_at] & 0xc0) == 0x80)
        source_at++;
    return source_at;
}

/* Where in the source a comment on `at` goes: behind the mark it falls into, behind the thread that
 * begins or ends there. */
static size_t place_of(const struct critic *c, size_t at, struct arena *mem)
{
    size_t from = 0, source_at = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct critic_span *span = &c->spans[i];
        size_t to = from + critic_span_accepted(span).n;

        if (at == from && (i == 0 || span->kind == CRITIC_COMMENT))
            return thread_end(c, i, source_at);
        if (span->kind == CRITIC_PLAIN && at > from && at < to)
            return leave_code(c, source_at + (at - from), mem);
        source_at += span->raw.n;
        if (at > from && at <= to)
            return thread_end(c, i + 1, source_at);
        from = to;
    }
    return source_at;
}

static bool stands_at(const struct critic *c, size_t source_at)
{
    size_t from = 0;

    for (size_t i = 0; i < c->n && from <= source_at; i++) {
        if (from == source_at)
            return c->spans[i].kind == CRITIC_COMMENT;
        from += c->spans[i].raw.n;
    }
    return false;
}

static struct str insert_comment(const struct critic *c, size_t at, struct str text,
                                 const struct critic_author *author, struct arena *mem)
{
    struct str result;
    struct buf out;

    buf_init(&out, SIZE_MAX);
    buf_addstr(&out, critic_cut(c->source, 0, at));
    critic_comment_write(&out, text, author);
    buf_addstr(&out, critic_cut(c->source, at, c->source.n));
    result = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return result;
}

bool critic_comment(const struct critic *c, size_t at, struct str text,
                    const struct critic_author *author, struct arena *mem, struct str *ret,
                    struct error *err)
{
    struct critic again;
    struct str result, base = critic_bare_base(c, mem);
    size_t place;

    if (!text_is_fit(text, err))
        return false;
    place = place_of(c, at, mem);
    result = insert_comment(c, place, text, author, mem);
    critic_parse(result, mem, &again);
    if (!stands_at(&again, place) || !str_eq(critic_bare_base(&again, mem), base))
        return error_set(err, ERR_BAD_INPUT,
                         "A comment cannot stand there; choose a place outside code.");
    *ret = result;
    return true;
}
