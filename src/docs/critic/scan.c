/* SPDX-License-Identifier: Apache-2.0 */
/* The only reader of markup: all other files use it to find code and marks.
 *
 * The construct that opens first wins.  A fence or code span that begins before a mark makes the
 * mark text.  A mark that begins before a fence takes the fence in, so a whole code block can be
 * deleted by a suggestion.  A mark is closed by the first closing mark of its form.  If another
 * change opens first, the mark is not closed and is text.  So nothing is ever nested, and a stray
 * "{--" does not swallow the text after it.  "{--}" and "{---}" open nothing: they are a brace
 * before a closing mark.  Together these rules let any text be written into changes (emit.c).
 *
 * Linear: a search for a closing mark ends at the next mark of its form, and backtick runs are
 * counted once per paragraph. */
#include "docs/critic/critic_impl.h"

const struct critic_marks critic_marks[5] = {
    [FORM_INSERT] = {STR("{++"), STR("++}"), true},
    [FORM_DELETE] = {STR("{--"), STR("--}"), true},
    [FORM_SUBSTITUTE] = {STR("{~~"), STR("~~}"), true},
    [FORM_COMMENT] = {STR("{>>"), STR("<<}"), false},
    [FORM_HIGHLIGHT] = {STR("{=="), STR("==}"), false},
};

#define NOWHERE SIZE_MAX

static size_t line_end(struct str text, size_t at)
{
    const char *found = at < text.n ? memchr(text.p + at, '\n', text.n - at) : NULL;

    return found ? (size_t)(found - text.p) + 1 : text.n;
}

static size_t skip_blanks(struct str text, size_t at, size_t end)
{
    while (at < end &&
           (text.p[at] == ' ' || text.p[at] == '\t' || text.p[at] == '\r' || text.p[at] == '\n'))
        at++;
    return at;
}

static size_t run_length(struct str text, size_t at)
{
    size_t end = at;

    while (end < text.n && text.p[end] == text.p[at])
        end++;
    return end - at;
}

/* The length of the fence run at the start of a line: at least `least` characters, indented by at
 * most three blanks; 0: no run.  *ret_at is its offset. */
static size_t fence_run(struct str text, size_t line, size_t least, size_t *ret_at)
{
    size_t at = line, n;

    while (at < text.n && at - line < 3 && text.p[at] == ' ')
        at++;
    if (at >= text.n || (text.p[at] != '`' && text.p[at] != '~'))
        return 0;
    n = run_length(text, at);
    *ret_at = at;
    return n >= least ? n : 0;
}

static size_t fence_opened(struct str text, size_t line, char *ret_kind)
{
    size_t at, end, n = fence_run(text, line, 3, &at);

    if (!n)
        return 0;
    end = line_end(text, at);
    if (text.p[at] == '`' && memchr(text.p + at + n, '`', end - at - n))
        return 0;
    *ret_kind = text.p[at];
    return n;
}

/* The end of the fence that this line opens, with its last newline; 0 when it opens none. */
static size_t fence_end(struct str text, size_t line, bool *ret_is_closed)
{
    char kind;
    size_t n = fence_opened(text, line, &kind);

    *ret_is_closed = true;
    if (!n)
        return 0;
    for (size_t at = line_end(text, line); at < text.n; at = line_end(text, at)) {
        size_t run_at, end = line_end(text, at), run = fence_run(text, at, n, &run_at);

        if (run && text.p[run_at] == kind && skip_blanks(text, run_at + run, end) == end)
            return end;
    }
    *ret_is_closed = false;
    return text.n;
}

static bool ends_paragraph(struct str text, size_t line)
{
    size_t end = line_end(text, line);
    char kind;

    return skip_blanks(text, line, end) == end || fence_opened(text, line, &kind) > 0;
}

static void count_runs(struct critic_scan *s)
{
    struct str text = s->text;
    size_t at = s->at;

    s->runs = 0;
    while (at < text.n) {
        if (text.p[at] == '`') {
            size_t n = run_length(text, at);
            at += n;
            if (n < CRITIC_RUN_MAX) {
                s->last_run[n] = at;
                s->runs |= UINT64_C(1) << n;
            }
        } else if (text.p[at++] == '\n' && ends_paragraph(text, at)) {
            break;
        }
    }
    s->steps += at - s->at;
    s->para_end = at;
}

/* The end of the code span that opens at s->at, or of the backticks if they open none. */
static size_t code_span_end(struct critic_scan *s, bool *ret_is_code)
{
    size_t n = run_length(s->text, s->at), at = s->at + n;

    if (s->at >= s->para_end)
        count_runs(s);
    *ret_is_code = n < CRITIC_RUN_MAX && (s->runs >> n & 1) && s->last_run[n] > at;
    if (!*ret_is_code)
        return at;
    while (at < s->last_run[n]) {
        size_t run = s->text.p[at] == '`' ? run_length(s->text, at) : 0;
        at += run ? run : 1;
        if (run == n)
            break;
    }
    return at;
}

static bool is_change_opener(struct str text, size_t at)
{
    for (size_t f = 0; f < countof(critic_marks); f++) {
        const struct critic_marks *m = &critic_marks[f];
        if (m->is_change && critic_has_at(text, at, m->open))
            return !critic_has_at(text, at + 1, m->close) && !critic_has_at(text, at + 2, m->close);
    }
    return false;
}

static size_t find_close(struct critic_scan *s, size_t at, const struct critic_marks *m)
{
    struct str text = s->text;

    for (; at + 3 <= text.n; at++, s->steps++) {
        char c = text.p[at];
        if (c == m->close.p[0] && critic_has_at(text, at, m->close))
            return at;
        if (c != '{')
            continue;
        if (!m->is_change && critic_has_at(text, at, m->open))
            return NOWHERE;
        if (m != &critic_marks[FORM_COMMENT] && is_change_opener(text, at))
            return NOWHERE;
    }
    return NOWHERE;
}

/* The end of the body that begins at `at`; NOWHERE when there is no mark. */
static size_t body_end(struct critic_scan *s, enum critic_form form, size_t at)
{
    size_t end = find_close(s, at, &critic_marks[form]);

    if (end != NOWHERE && form == FORM_SUBSTITUTE && !memmem(s->text.p + at, end - at, "~>", 2))
        return NOWHERE;
    return end;
}

/* Finds the body, after metadata.  If there is no mark after the metadata, the metadata counts as
 * text, and a closing mark inside it closes the mark. */
static bool find_body(struct critic_scan *s, struct critic_piece *p)
{
    struct str rest = critic_cut(s->text, p->body, s->text.n);
    size_t n = critic_meta_read(rest, s->mem, &p->meta, &s->steps);

    p->body_end = body_end(s, p->form, p->body + n);
    if (p->body_end != NOWHERE) {
        p->body += n;
        return true;
    }
    p->meta = (struct critic_meta){0};
    p->body_end = n ? body_end(s, p->form, p->body) : NOWHERE;
    return p->body_end != NOWHERE;
}

static bool read_mark(struct critic_scan *s, enum critic_form form, struct critic_piece *ret)
{
    const struct critic_marks *m = &critic_marks[form];
    struct critic_piece piece = {.form = form, .from = s->at, .body = s->at + m->open.n};

    if (m->is_change && !is_change_opener(s->text, s->at))
        return false;
    if (!find_body(s, &piece))
        return false;
    piece.to = piece.body_end + m->close.n;
    *ret = piece;
    return true;
}

/* Whether the text after the mark begins a line of the accepted view. */
static bool line_start_after(const struct critic_scan *s, const struct critic_piece *piece)
{
    if (piece->form == FORM_COMMENT)
        return false;
    if (piece->form == FORM_DELETE)
        return s->line_start;
    if (piece->body == piece->body_end ||
        (piece->form == FORM_SUBSTITUTE && critic_has_at(s->text, piece->body_end - 2, STR("~>"))))
        return s->line_start;
    return s->text.p[piece->body_end - 1] == '\n';
}

static bool mark_at(struct critic_scan *s, struct critic_piece *ret)
{
    for (size_t f = 0; f < countof(critic_marks); f++) {
        if (!critic_has_at(s->text, s->at, critic_marks[f].open))
            continue;
        if (!read_mark(s, (enum critic_form)f, ret))
            return false;
        s->line_start = line_start_after(s, ret);
        s->at = ret->to;
        return true;
    }
    return false;
}

static void pass_code(struct critic_scan *s, size_t end)
{
    s->line_start = s->text.p[end - 1] == '\n';
    s->steps += end - s->at;
    s->at = end;
}

void critic_scan_begin(struct critic_scan *s, struct str text, struct arena *mem)
{
    *s = (struct critic_scan){.text = text, .mem = mem, .line_start = true};
}

bool critic_scan_next(struct critic_scan *s, struct critic_piece *ret)
{
    struct str text = s->text;

    for (; s->at < text.n; s->steps++) {
        bool is_closed = true;
        size_t end = s->line_start && !s->ignores_code ? fence_end(text, s->at, &is_closed) : 0;
        char c = text.p[s->at];
        bool is_fence = end > 0, is_code = is_fence;

        if (!end && c == '`' && !s->ignores_code)
            end = code_span_end(s, &is_code);
        if (is_code) {
            *ret = (struct critic_piece){.is_code = true,
                                         .is_fence = is_fence,
                                         .is_closed = is_closed,
                                         .from = s->at,
                                         .to = end};
            pass_code(s, end);
            return true;
        }
        if (c == '{' && mark_at(s, ret))
            return true;
        if (!end)
            end = s->at + 1;
        if (c == '\\' && !s->ignores_code && end < text.n &&
            (text.p[end] == '`' || text.p[end] == '\\'))
            end++;
        s->line_start = c == '\n';
        s->at = end;
    }
    return false;
}
