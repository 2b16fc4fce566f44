/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that match a pattern, in ripgrep's layout.
 *
 * Each line is a subject of its own, so no match reaches into the next line.  PCRE2's match limit
 * holds for one starting position in a line, not for the line.  So a long line is searched a
 * stretch of starting positions at a time, and the clock is read between stretches: a search that
 * is slow without reaching the match limit ends too.  If JIT compilation fails, PCRE2
 * interprets. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "docs/text.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/utf8.h"

#define PATTERN_MAX 4096
#define CONTEXT_MAX 50
#define HEAD_LIMIT 250
#define LINE_SHOWN 2000 /* bytes */
#define LINE_BEFORE 500 /* bytes of it shown before the match */
#define MATCH_LIMIT 100000
#define DEPTH_LIMIT 20000
#define HEAP_LIMIT_KIB 16384
#define JIT_STACK_MAX (512 * 1024)
#define DOCUMENT_MS 500
#define LOOK_EVERY 16 /* lines between two readings of the clock */
#define STRETCH_MIN 128
#define STRETCH_MAX 4096
#define STRETCH_QUICK_US 1000

struct grep {
    struct grep_options options;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
    size_t stretch;
    size_t shown, matches;
    bool full, more;
};

/* The search of one document. */
struct search {
    struct grep *g;
    struct str path, text;
    struct buf *out;
    int64_t deadline_ms;
    size_t at, line;   /* offset of the next line; lines read so far */
    size_t shown_line; /* number of the last line shown; 0: none of this document */
    size_t after_left; /* context lines still to show */
    size_t matches;
    struct str recent[CONTEXT_MAX]; /* ring of the preceding lines */
};

void grep_free(struct grep *g)
{
    if (!g)
        return;
    pcre2_jit_stack_free(g->stack);
    pcre2_match_context_free(g->limits);
    pcre2_match_data_free(g->data);
    pcre2_code_free(g->code);
    free(g);
}

static bool pattern_compile(struct grep *g, struct str pattern, struct error *err)
{
    uint32_t flags = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT |
                     (g->options.ignore_case ? PCRE2_CASELESS : 0);
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    int code = 0;
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR text[256] = "memory ran out";

    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        pcre2_set_max_pattern_length(context, PATTERN_MAX);
        g->code = pcre2_compile((PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n, flags, &code,
                                &at, context);
        pcre2_compile_context_free(context);
    }
    if (g->code)
        return true;
    pcre2_get_error_message(code, text, sizeof text);
    return error_set(err, ERR_BAD_INPUT, "Invalid regex pattern: %s at offset %zu.",
                     (const char *)text, (size_t)at);
}

static bool limits_set(struct grep *g, struct error *err)
{
    g->data = pcre2_match_data_create(1, NULL);
    g->limits = pcre2_match_context_create(NULL);
    if (!g->data || !g->limits)
        return error_set(err, ERR_UNAVAILABLE, "Memory ran out; try again later.");
    pcre2_set_match_limit(g->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(g->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(g->limits, HEAP_LIMIT_KIB);
    if (pcre2_jit_compile(g->code, PCRE2_JIT_COMPLETE) == 0)
        g->stack = pcre2_jit_stack_create(32 * 1024, JIT_STACK_MAX, NULL);
    if (g->stack)
        pcre2_jit_stack_assign(g->limits, NULL, g->stack);
    return true;
}

bool grep_compile(struct str pattern, const struct grep_options *options, struct grep **ret,
                  struct error *err)
{
    struct grep *g = xcalloc(1, sizeof *g);

    g->options = *options;
    g->options.before = options->before > CONTEXT_MAX ? CONTEXT_MAX : options->before;
    g->options.after = options->after > CONTEXT_MAX ? CONTEXT_MAX : options->after;
    g->options.head_limit = options->head_limit ? options->head_limit : HEAD_LIMIT;
    g->stretch = STRETCH_MIN;
    if (!pattern_compile(g, pattern, err) || !limits_set(g, err)) {
        grep_free(g);
        return false;
    }
    *ret = g;
    return true;
}

bool grep_is_full(const struct grep *g, bool *ret_more)
{
    *ret_more = g->more;
    return g->full;
}

size_t grep_matches(const struct grep *g)
{
    return g->matches;
}

static bool too_slow(struct error *err)
{
    return error_set(err, ERR_TIMEOUT,
                     "The pattern takes too long on this document; make it simpler, without "
                     "repetitions inside repetitions.");
}

/* *ret_rc: positive for a match, or PCRE2_ERROR_NOMATCH. */
static bool match_stretch(struct grep *g, struct str line, size_t from, size_t to, int *ret_rc,
                          struct error *err)
{
    pcre2_set_offset_limit(g->limits, to);
    int rc = pcre2_match(g->code, (PCRE2_SPTR)line.p, line.n, from, PCRE2_NO_UTF_CHECK, g->data,
                         g->limits);

    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
        return too_slow(err);
    *ret_rc = rc;
    return true;
}

/* Stretches double while each takes less than STRETCH_QUICK_US. */
static bool match_long(struct search *s, struct str line, bool *ret_matched, struct error *err)
{
    struct grep *g = s->g;
    int64_t before_us = clock_mono_us();
    int rc = PCRE2_ERROR_NOMATCH;

    for (size_t from = 0; rc == PCRE2_ERROR_NOMATCH && from <= line.n;) {
        size_t to = from + g->stretch - 1;
        if (!match_stretch(g, line, from, to, &rc, err))
            return false;
        for (from = to + 1; from < line.n && (line.p[from] & 0xc0) == 0x80;)
            from++;
        int64_t now_us = clock_mono_us();
        bool quick = now_us - before_us < STRETCH_QUICK_US;
        g->stretch = quick ? g->stretch * 2 : STRETCH_MIN;
        if (g->stretch > STRETCH_MAX)
            g->stretch = STRETCH_MAX;
        before_us = now_us;
        if (now_us / 1000 >= s->deadline_ms)
            return too_slow(err);
    }
    *ret_matched = rc >= 0;
    return true;
}

static bool match_line(struct search *s, struct str line, bool *ret_matched, struct error *err)
{
    int rc = 0;

    if (line.n >= STRETCH_MIN)
        return match_long(s, line, ret_matched, err);
    if (s->line % LOOK_EVERY == 0 && clock_mono_ms() >= s->deadline_ms)
        return too_slow(err);
    if (!match_stretch(s->g, line, 0, line.n, &rc, err))
        return false;
    *ret_matched = rc >= 0;
    return true;
}

/* After one entry did not fit, no entry is added: a later, shorter one would hide the gap. */
static bool entry_begin(struct search *s)
{
    struct grep *g = s->g;

    if (g->full || g->shown == g->options.head_limit) {
        g->full = g->more = true;
        return false;
    }
    return true;
}

static void entry_end(struct search *s, size_t kept, bool fits)
{
    struct grep *g = s->g;

    if (!fits) {
        s->out->n = kept;
        if (s->out->p)
            s->out->p[kept] = '\0';
        g->full = g->more = true;
        return;
    }
    g->shown++;
    g->full = g->shown == g->options.head_limit;
}

static bool add(struct buf *out, struct str s)
{
    return buf_try_add(out, s.p, s.n);
}

static bool add_number(struct buf *out, const char *fmt, size_t value)
{
    char text[64];
    int n = snprintf(text, sizeof text, fmt, value);
    return buf_try_add(out, text, (size_t)n);
}

static size_t char_start(struct str s, size_t at)
{
    while (at > 0 && at < s.n && (s.p[at] & 0xc0) == 0x80)
        at--;
    return at;
}

/* Of a long line, shows the part around the match and how many bytes are missing at either end. */
static bool add_text(struct buf *out, struct str line, size_t match_at)
{
    if (line.n <= LINE_SHOWN)
        return add(out, line);
    size_t from = match_at > LINE_BEFORE ? match_at - LINE_BEFORE : 0;
    if (match_at < LINE_SHOWN - LINE_BEFORE)
        from = 0;
    if (from > line.n - LINE_SHOWN)
        from = line.n - LINE_SHOWN;
    from = char_start(line, from);
    size_t to = char_start(line, from + LINE_SHOWN);
    return (from == 0 || add_number(out, "[%zu bytes before] ", from)) &&
           add(out, str_n(line.p + from, to - from)) &&
           (to == line.n || add_number(out, " [%zu bytes more]", line.n - to));
}

/* `mark` is ':' for a matching line and '-' for a context line. */
static void show_line(struct search *s, size_t number, struct str line, char mark, size_t match_at)
{
    struct grep *g = s->g;
    size_t kept = s->out->n;
    bool gap = (g->options.before || g->options.after) && g->shown > 0 &&
               (s->shown_line == 0 || number > s->shown_line + 1);

    if (!entry_begin(s))
        return;
    bool fits = (g->shown == 0 || add(s->out, STR("\n"))) && (!gap || add(s->out, STR("--\n"))) &&
                add(s->out, s->path) &&
                add_number(s->out, mark == ':' ? ":%zu:" : "-%zu-", number) &&
                add_text(s->out, line, match_at);
    entry_end(s, kept, fits);
    s->shown_line = number;
}

static void show_match(struct search *s, struct str line)
{
    size_t before = s->g->options.before;
    size_t first = s->line > before ? s->line - before : 1;

    if (first <= s->shown_line)
        first = s->shown_line + 1;
    for (size_t i = first; i < s->line; i++)
        show_line(s, i, s->recent[i % CONTEXT_MAX], '-', 0);
    show_line(s, s->line, line, ':', pcre2_get_ovector_pointer(s->g->data)[0]);
    s->after_left = s->g->options.after;
}

static void show_entry(struct search *s)
{
    struct grep *g = s->g;
    size_t kept = s->out->n;

    if (s->matches == 0 || g->options.mode == GREP_CONTENT || !entry_begin(s))
        return;
    bool fits = (g->shown == 0 || add(s->out, STR("\n"))) && add(s->out, s->path) &&
                (g->options.mode == GREP_FILES || add_number(s->out, ":%zu", s->matches));
    entry_end(s, kept, fits);
}

static bool search_lines(struct search *s, struct error *err)
{
    struct grep *g = s->g;
    bool content = g->options.mode == GREP_CONTENT;
    struct str line;

    while (text_line_next(s->text, &s->at, &line)) {
        bool matched = false;
        s->line++;
        if (!match_line(s, line, &matched, err))
            return false;
        if (matched) {
            s->matches++;
            g->matches++;
            if (content)
                show_match(s, line);
            else if (g->options.mode == GREP_FILES)
                break;
        } else if (s->after_left > 0) {
            s->after_left--;
            show_line(s, s->line, line, '-', 0);
        }
        s->recent[s->line % CONTEXT_MAX] = line;
    }
    return true;
}

bool grep_document(struct grep *g, struct str path, struct str text, struct buf *out,
                   struct error *err)
{
    struct search s = {.g = g, .path = path, .text = text, .out = out};

    if (g->more)
        return true;
    if (!utf8_is_valid(text))
        return error_set(err, ERR_BAD_INPUT, "The document is not UTF-8; save it as UTF-8.");
    s.deadline_ms = clock_mono_ms() + DOCUMENT_MS;
    if (!search_lines(&s, err))
        return false;
    show_entry(&s);
    return true;
}
