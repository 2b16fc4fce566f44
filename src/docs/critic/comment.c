/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of markup in agents' input, and the placing of their comments. */
#include "docs/critic/critic_impl.h"

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

/* The delimiter of any form at `at`. */
static struct str delimiter_at(struct str text, size_t at)
{
    for (size_t f = 0; f < countof(critic_marks); f++)
        if (critic_has_at(text, at, critic_marks[f].open) ||
            critic_has_at(text, at, critic_marks[f].close))
            return str_n(text.p + at, 3);
    return STR_NONE;
}

/* Whether the delimiter at `at` belongs to a comment: it opens or closes the comment, or the
 * comment existed before with this text. */
static bool is_of_comment(const struct critic_input *in, size_t at, size_t *next)
{
    const struct critic_remarks *added = in->added;

    while (*next < added->n && in->region.from + added->p[*next].range.to < at + 3)
        ++*next;
    if (*next < added->n) {
        const struct critic_remark *r = &added->p[*next];
        size_t from = in->region.from + r->range.from, to = in->region.from + r->range.to;

        return at >= from && (r->match != SIZE_MAX || at == from || at + 3 == to);
    }
    return false;
}

/* Whether the whole text shows the same comments in the region as the region alone. */
static bool same_comments(const struct critic_input *in, struct arena *mem)
{
    struct critic_scan scan;
    struct critic_piece piece;
    size_t n = 0;

    critic_scan_begin(&scan, in->after, mem);
    while (critic_scan_next(&scan, &piece) && piece.from < in->region.to) {
        if (piece.is_code || piece.form != FORM_COMMENT || piece.to <= in->region.from)
            continue;
        if (n == in->added->n || in->region.from + in->added->p[n].range.from != piece.from ||
            in->region.from + in->added->p[n].range.to != piece.to)
            return false;
        n++;
    }
    return n == in->added->n;
}

/* The next mark that agents may not create.  If the scan ignores code, that is a mark signed by a
 * person; otherwise any mark that is not a comment. */
static bool next_foreign(struct critic_scan *scan, struct critic_piece *ret)
{
    while (critic_scan_next(scan, ret))
        if (scan->ignores_code ? ret->meta.author.p && !critic_meta_is_agent(&ret->meta)
                               : !ret->is_code && ret->form != FORM_COMMENT)
            return true;
    return false;
}

static bool brings_foreign(struct str before, struct str after, bool ignores_code,
                           struct arena *mem)
{
    struct critic_scan old_scan, scan;
    struct critic_piece old, now;

    critic_scan_begin(&old_scan, before, mem);
    critic_scan_begin(&scan, after, mem);
    old_scan.ignores_code = scan.ignores_code = ignores_code;
    while (next_foreign(&scan, &now)) {
        struct str raw = critic_cut(after, now.from, now.to);
        bool found = false;

        while (!found && next_foreign(&old_scan, &old))
            found = str_eq(critic_cut(before, old.from, old.to), raw);
        if (!found)
            return true;
    }
    return false;
}

bool critic_brings_signature(struct str before, struct str after, struct arena *mem)
{
    return brings_foreign(before, after, true, mem);
}

bool critic_brings_no_marks(struct str before, struct str after, struct arena *mem,
                            struct error *err)
{
    if (brings_foreign(before, after, true, mem))
        return error_set(err, ERR_BAD_INPUT,
                         "The edit changes the text of a mark that names its author. Edit the text "
                         "around it, or replace the whole mark.");
    if (brings_foreign(before, after, false, mem))
        return error_set(err, ERR_BAD_INPUT,
                         "The edit takes CriticMarkup that is shown as code out of the code. Leave "
                         "the backticks around it as they are.");
    return true;
}

static bool refuse_comment(struct error *err)
{
    return error_set(err, ERR_BAD_INPUT,
                     "The new text holds '{>>' or '<<}' in code, or without its other half. Leave "
                     "the comment out, and add it with the comment tool; to show these characters, "
                     "write them apart, such as '{ >>'.");
}

static bool refuse_delimiter(struct str found, struct error *err)
{
    if (str_eq(found, critic_marks[FORM_COMMENT].open) ||
        str_eq(found, critic_marks[FORM_COMMENT].close))
        return refuse_comment(err);
    return error_set(err, ERR_BAD_INPUT,
                     "The new text, or the new text together with the text around it, holds the "
                     "CriticMarkup mark '%.*s'. Write its characters apart, such as '%c %.2s'.",
                     STR_ARG(found), found.p[0], found.p + 1);
}

bool critic_input_check(const struct critic_input *in, struct arena *mem, struct error *err)
{
    /* A delimiter has three bytes, so one that begins two bytes before the region reaches into
     * it. */
    size_t from = in->region.from < 2 ? 0 : in->region.from - 2, next = 0;

    for (size_t at = from; at < in->region.to; at++) {
        struct str found = delimiter_at(in->after, at);

        if (found.p && !is_of_comment(in, at, &next))
            return refuse_delimiter(found, err);
    }
    for (size_t i = 0; i < in->added->n; i++) {
        const struct critic_remark *r = &in->added->p[i];
        struct str text = critic_remark_text(r, mem);

        if (r->match == SIZE_MAX && text.n && memmem(text.p, text.n, "}@@", 3))
            return error_set(err, ERR_BAD_INPUT,
                             "A comment holds '}@@', which ends the name of its author. Write the "
                             "characters apart, such as '} @@'.");
    }
    return same_comments(in, mem) || refuse_comment(err);
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
    if (!mark.p && has_mark(text, STR("}@@")))
        mark = STR("}@@");
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

/* Moves the place out of code and to the start of a character. */
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

/* The place in the source for a comment on `at`: after the mark that contains `at`, and after the
 * thread that begins or ends there. */
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
    if (!critic_limits_hold(result, err))
        return false;
    critic_parse(result, mem, &again);
    if (!stands_at(&again, place) || !str_eq(critic_bare_base(&again, mem), base) ||
        !critic_verify_comment(c, result, place, author, mem))
        return error_set(err, ERR_BAD_INPUT,
                         "A comment is not possible there; choose a place outside code.");
    *ret = result;
    return true;
}
