/* SPDX-License-Identifier: Apache-2.0 */
/* Finding links: one pass over the text, from construct to construct.  The scan steps over a code
 * span, a wiki link and the destination of a markdown link as a whole.  So no construct begins
 * inside another, and replacing a target never changes how the rest is read.
 *
 * Every look ahead is bounded (by the line, the next "[[", or a fixed length), and the scan
 * remembers a run of backticks without a closing run, so it is linear for every text. */
#include "docs/links.h"

#include "base/utf8.h"

#define SPAN_RUN_MAX 64      /* longer runs of backticks are text */
#define DESTINATION_MAX 4096 /* a path of 1,024 bytes, each as %XX, and an anchor */
#define TITLE_MAX 1024
#define NEST_MAX 32

struct scan {
    struct str text;
    size_t at;
    size_t open;                        /* '[' still open in this paragraph */
    size_t paragraph_end;               /* end of the current paragraph; see paragraph_end() */
    size_t no_closer[SPAN_RUN_MAX + 1]; /* up to this offset no run of that length closes */
    struct link_found *found;
    size_t n, cap;
    struct arena *mem;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static size_t run_of(struct str s, size_t at, char c)
{
    size_t n = 0;
    while (at + n < s.n && s.p[at + n] == c)
        n++;
    return n;
}

static size_t line_end(struct str s, size_t at)
{
    const char *lf = at < s.n ? memchr(s.p + at, '\n', s.n - at) : NULL;
    return lf ? (size_t)(lf - s.p) : s.n;
}

static bool is_blank(struct str line)
{
    for (size_t i = 0; i < line.n; i++)
        if (!is_space(line.p[i]) && line.p[i] != '\r')
            return false;
    return true;
}

/* The length of the run that opens or closes a fence on the line at `at`; 0: not a fence.
 * *ret_rest: the rest of the line. */
static size_t fence_at(struct str s, size_t at, char *ret_char, struct str *ret_rest)
{
    size_t end = line_end(s, at), indent = 0;

    while (indent < 4 && at < end && s.p[at] == ' ') {
        indent++;
        at++;
    }
    if (indent == 4 || at >= end || (s.p[at] != '`' && s.p[at] != '~'))
        return 0;
    size_t n = run_of(str_n(s.p, end), at, s.p[at]);
    *ret_char = s.p[at];
    *ret_rest = str_n(s.p + at + n, end - at - n);
    if (n < 3 || (s.p[at] == '`' && memchr(ret_rest->p, '`', ret_rest->n)))
        return 0;
    return n;
}

/* The end of the fence that opens on the line at `at`.  An unclosed fence ends with the text. */
static size_t fence_end(struct str s, size_t at, char c, size_t run)
{
    while ((at = line_end(s, at)) < s.n) {
        char here = 0;
        struct str rest;
        at++;
        size_t n = fence_at(s, at, &here, &rest);
        if (n >= run && here == c && is_blank(rest))
            return line_end(s, at);
    }
    return s.n;
}

/* The end of the paragraph that contains `at`: a blank line, a fence, or the end of the text. */
static size_t paragraph_end(struct scan *s, size_t at)
{
    char c;
    struct str rest;

    if (at < s->paragraph_end)
        return s->paragraph_end;
    while ((at = line_end(s->text, at)) < s->text.n) {
        at++;
        size_t end = line_end(s->text, at);
        if (is_blank(str_n(s->text.p + at, end - at)) || fence_at(s->text, at, &c, &rest))
            break;
    }
    s->paragraph_end = at;
    return at;
}

/* The end of the code span that opens at `at` with `run` backticks; `at` + run when it is not
 * closed. */
static size_t span_end(struct scan *s, size_t at, size_t run)
{
    size_t end = paragraph_end(s, at), i = at + run;

    if (run > SPAN_RUN_MAX || i <= s->no_closer[run])
        return i;
    while (i < end) {
        const char *tick = memchr(s->text.p + i, '`', end - i);
        if (!tick)
            break;
        i = (size_t)(tick - s->text.p);
        size_t n = run_of(str_n(s->text.p, end), i, '`');
        i += n;
        if (n == run)
            return i;
    }
    s->no_closer[run] = end;
    return at + run;
}

static void add(struct scan *s, size_t at, size_t n, struct str target, bool is_wiki)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 16;
        struct link_found *more = arena_alloc(s->mem, cap * sizeof *more);
        if (s->n)
            memcpy(more, s->found, s->n * sizeof *more);
        s->found = more;
        s->cap = cap;
    }
    s->found[s->n++] = (struct link_found){at, n, target, is_wiki};
}

static size_t scheme_length(struct str s)
{
    size_t n = 0;

    while (n < s.n && ((s.p[n] | 32) >= 'a' && (s.p[n] | 32) <= 'z'))
        n++;
    while (n > 0 && n < s.n &&
           (((s.p[n] | 32) >= 'a' && (s.p[n] | 32) <= 'z') || (s.p[n] >= '0' && s.p[n] <= '9') ||
            s.p[n] == '+' || s.p[n] == '-' || s.p[n] == '.'))
        n++;
    return n >= 2 && n < s.n && s.p[n] == ':' ? n + 1 : 0;
}

/* A wiki link may name "Plan: first draft", so in a wiki link a colon alone is not a scheme. */
static bool leads_outside(struct str target, bool is_wiki)
{
    size_t n = scheme_length(target);

    if (is_wiki && n && !str_ieq(str_n(target.p, n), STR("mailto:")))
        n = str_starts(str_n(target.p + n, target.n - n), STR("//")) ? n : 0;
    return n > 0 || str_starts(target, STR("//"));
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

/* The offset of the "]]" that closes the "[[" before `at`, on the same line; 0: there is none. */
static size_t wiki_close(struct str s, size_t at)
{
    for (size_t i = at; i + 1 < s.n && s.p[i] != '\n'; i++) {
        if (s.p[i] == ']' && s.p[i + 1] == ']')
            return i;
        if (s.p[i] == '[' && s.p[i + 1] == '[')
            return 0;
    }
    return 0;
}

/* [[target#anchor|alias]]; in tables the bar is written \|.  True: the scan stepped over a wiki
 * link. */
static bool take_wiki(struct scan *s)
{
    size_t from = s->at + 2, close = wiki_close(s->text, from), to = from;
    const char *p = s->text.p;

    if (close == 0)
        return false;
    while (to < close && p[to] != '#' && p[to] != '|')
        to++;
    if (to < close && to > from && p[to] == '|' && p[to - 1] == '\\')
        to--;
    while (from < to && is_space(p[from]))
        from++;
    while (to > from && is_space(p[to - 1]))
        to--;
    struct str target = str_n(p + from, to - from);
    for (size_t i = 0; i < target.n; i++)
        if (strchr("[]`", target.p[i]))
            return false;
    s->at = close + 2;
    if (target.n && !has_control(target) && !leads_outside(target, true) && utf8_is_valid(target))
        add(s, from, target.n, target, true);
    return true;
}

/* The end of the destination at `at`.  In <…> it is the '>', otherwise the first blank or
 * unbalanced ')'.  0: not a destination. */
static size_t destination_end(struct str s, size_t at, bool angled)
{
    size_t depth = 0;

    for (size_t i = at; i < s.n && i - at <= DESTINATION_MAX; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\n' || c == '\r' || (angled && c == '<'))
            return 0;
        if (angled ? c == '>' : c <= ' ' || c == 0x7f || (c == ')' && depth == 0))
            return i;
        if (c == '\\' && i + 1 < s.n && s.p[i + 1] > ' ' && s.p[i + 1] < 0x7f)
            i++;
        else if (c == '(' && !angled && ++depth > NEST_MAX)
            return 0;
        else if (c == ')')
            depth -= depth > 0;
    }
    return 0;
}

static size_t blanks_end(struct str s, size_t at)
{
    while (at < s.n && is_space(s.p[at]))
        at++;
    return at;
}

/* Past the ')' that ends the link, after an optional title; 0: the link does not end. */
static size_t link_end(struct str s, size_t at)
{
    static const char quotes[][2] = {{'"', '"'}, {'\'', '\''}, {'(', ')'}};
    size_t i = blanks_end(s, at);

    for (size_t q = 0; i > at && i < s.n && q < countof(quotes); q++) {
        if (s.p[i] != quotes[q][0])
            continue;
        size_t from = i + 1;
        for (i = from; i < s.n && s.p[i] != quotes[q][1]; i++) {
            if (s.p[i] == '\n' || i - from > TITLE_MAX)
                return 0;
            i += s.p[i] == '\\' && i + 1 < s.n && s.p[i + 1] != '\n';
        }
        i = blanks_end(s, i + 1);
        break;
    }
    return i < s.n && s.p[i] == ')' ? i + 1 : 0;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static struct str decode(struct str raw, struct arena *mem)
{
    char *out = arena_alloc(mem, raw.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++) {
        int high = i + 2 < raw.n ? hex(raw.p[i + 1]) : -1;
        int low = i + 2 < raw.n ? hex(raw.p[i + 2]) : -1;
        if (raw.p[i] == '%' && high >= 0 && low >= 0) {
            out[n++] = (char)(high << 4 | low);
            i += 2;
            continue;
        }
        i += raw.p[i] == '\\' && i + 1 < raw.n && is_punctuation(raw.p[i + 1]);
        out[n++] = raw.p[i];
    }
    return str_n(out, n);
}

/* [text](destination "title"), at its "](".  True: the scan stepped over a link. */
static bool take_markdown(struct scan *s)
{
    size_t from = blanks_end(s->text, s->at + 2);
    bool angled = from < s->text.n && s->text.p[from] == '<';

    from += angled;
    size_t to = destination_end(s->text, from, angled);
    size_t end = to ? link_end(s->text, to + angled) : 0;
    if (end == 0)
        return false;
    s->at = end;
    struct str raw = str_n(s->text.p + from, to - from);
    raw.n = str_find(raw, '#');
    if (raw.n == 0 || leads_outside(raw, false))
        return true;
    struct str target = decode(raw, s->mem);
    if (!has_control(target) && utf8_is_valid(target))
        add(s, from, raw.n, target, false);
    return true;
}

static void line_begins(struct scan *s)
{
    char c = 0;
    struct str rest;
    size_t run = fence_at(s->text, s->at, &c, &rest);

    if (run) {
        s->at = fence_end(s->text, s->at, c, run);
        s->open = 0;
        return;
    }
    if (is_blank(str_n(s->text.p + s->at, line_end(s->text, s->at) - s->at)))
        s->open = 0;
}

static void step(struct scan *s)
{
    struct str t = s->text;
    char c = t.p[s->at], next = s->at + 1 < t.n ? t.p[s->at + 1] : '\0';

    if (c == '`') {
        s->at = span_end(s, s->at, run_of(t, s->at, '`'));
    } else if (c == '\\' && is_punctuation(next)) {
        s->at += 2;
    } else if (c == '[' && next == '[' && take_wiki(s)) {
        return;
    } else if (c == ']' && next == '(' && s->open > 0) {
        s->open--;
        if (!take_markdown(s))
            s->at++;
    } else {
        s->open += c == '[';
        s->open -= c == ']' && s->open > 0;
        s->at++;
        if (c == '\n' && s->at < t.n)
            line_begins(s);
    }
}

size_t links_find(struct str text, struct arena *mem, struct link_found **ret)
{
    struct scan s = {.text = text, .mem = mem};

    if (text.n)
        line_begins(&s);
    while (s.at < text.n && s.n < LINKS_MAX)
        step(&s);
    *ret = s.found;
    return s.n;
}
