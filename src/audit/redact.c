/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over a body on the write lane, after the digest of the original and before storage.
 *
 * The walk jumps from one candidate position (redact_scan.c) to the next and decides there what to
 * replace; it does not look at the bytes in between.  It is lexical: in JSON, a string followed by
 * a colon is a name, and no further structure is needed.  So the walk has no tree, no depth and no
 * memory beyond the output, and it works on bytes that are not JSON too.  At the end, if the result
 * is no longer than the cap, the parser checks whether it is JSON.
 *
 * Invariants: everything before w->at has been judged; nothing is copied before the first
 * replacement; every look ahead or back is bounded, or cached, or ends in a replacement that the
 * walk skips. */
#include "audit/redact.h"

#include "audit/redact_impl.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "json/read.h"

#include <stdlib.h>

struct redactor {
    struct buf text;     /* the body with its secrets replaced */
    struct buf out;      /* stored bytes, when they are neither the body nor `text` */
    struct arena *nodes; /* for the parser that checks whether the result is JSON */
    struct known *base;  /* the published set of `version`; NULL: only the tables */
    uint64_t version;    /* 0: not read yet */
    bool trusts;         /* an unchanged body is known to be JSON */
    bool narrow;         /* for tests: without wide registers */
};

/* One set of windows, and the position up to which it has been searched. */
struct front {
    const struct scanner *scan;
    const struct known *known; /* the set that the windows come from; NULL: only the tables */
    struct scan_cursor cursor;
    size_t next; /* the next candidate, when >= w->at */
};

struct walk {
    struct str in;
    size_t at;     /* everything before has been judged */
    size_t copied; /* everything before is in `out` */
    size_t cap;
    size_t quote;      /* the first quote at or after `quote_from` */
    size_t quote_from; /* SIZE_MAX: not searched yet */
    struct shape_memo memo;
    struct buf *out;
    struct front fronts[3];
    size_t n_fronts;
    struct needle needle; /* the request's credential */
    struct str needle_marker;
    size_t needle_next; /* next candidate of the credential, as in a front */
    bool narrow;
    bool without_shapes, without_names;
};

#define REPLACEMENT "[redacted]"
/* Longest {"holdfast/cut":{"length":N,"kept":M},"head":""}: two numbers of 20 digits. */
#define CUT_WORDS 96
/* Candidates up to this far beyond the cap are still examined: they may show that bytes before the
 * cap are secret. */
#define BEYOND_CAP 1024
#define NAME_LOOK (REDACT_KEY_MAX / 2) /* bytes of a name on either side of the matched word */
#define PLAIN_NAME_MAX 64              /* of a name without quotes */
#define PAIR_LOOK 1024                 /* from "name" to its "value" */
#define RUN_LOOK 256                   /* bytes of a value that looks_random() reads */

/* A secret in the body: [from, to), part of a token that begins at `begin`. */
struct spot {
    size_t begin, from, to;
    struct str marker; /* of a known value that covers the secret; absent: no known value does */
};

/* Merges a known value that overlaps the spot: the spot is extended to the value's end.  If the
 * value covers the whole secret, and perhaps the beginning of its token, the spot takes the value's
 * marker. */
static void take_in(struct spot *s, size_t from, size_t to, struct str marker)
{
    if (from >= s->to || to <= s->from)
        return;
    if (from >= s->begin && from <= s->from && to >= s->to) {
        s->from = from;
        s->marker = marker;
    }
    if (to > s->to)
        s->to = to;
}

struct overlap {
    const struct walk *walk;
    const struct known *known;
    struct spot *spot;
    size_t at;
};

static bool reach_over(void *arg, const struct window *window)
{
    struct overlap *o = arg;
    size_t from = o->at - window->offset, n;
    struct str marker;

    if (o->at >= window->offset &&
        known_matches(o->known, window->item, o->walk->in, from, &n, &marker))
        take_in(o->spot, from, from + n, marker);
    return false;
}

static void take_in_known(const struct walk *w, struct spot *s)
{
    for (size_t i = 0; i < w->n_fronts; i++) {
        const struct front *f = &w->fronts[i];
        struct overlap o = {w, f->known, s, s->begin};
        struct scan_cursor c = {0};
        if (!known_count(f->known))
            continue;
        for (;; o.at++) {
            size_t end = w->in.n - s->to > SCAN_OFFSET_MAX ? s->to + SCAN_OFFSET_MAX : w->in.n;
            o.at = scanner_next(f->scan, w->in, o.at, end, &c, !w->narrow);
            if (o.at >= end)
                break;
            (void)scanner_each(f->scan, w->in, o.at, WINDOW_VALUE, reach_over, &o);
        }
    }
}

/* Keys and tokens have shapes of their own, so the walk mostly finds the request's credential by
 * its shape.  Then the credential's marker is used. */
static void take_in_credential(const struct walk *w, struct spot *s)
{
    struct str value = w->needle.value;
    const size_t places[] = {s->begin, s->from};

    for (size_t i = 0; w->needle.n && i < countof(places); i++)
        if (w->in.n - places[i] >= value.n && memcmp(w->in.p + places[i], value.p, value.n) == 0)
            take_in(s, places[i], places[i] + value.n, w->needle_marker);
}

/* Replaces a secret by the name of a known value that covers it, else by `text`. */
static void replace_spot(struct walk *w, struct spot s, struct str text)
{
    if (s.begin < w->copied)
        s.begin = w->copied;
    if (s.from < s.begin)
        s.from = s.begin;
    if (s.to <= s.from)
        return;
    take_in_known(w, &s);
    take_in_credential(w, &s);
    buf_add(w->out, w->in.p + w->copied, s.from - w->copied);
    buf_addstr(w->out, s.marker.p ? s.marker : text);
    w->copied = s.to;
    if (w->at < s.to)
        w->at = s.to;
}

static void replace(struct walk *w, size_t from, size_t to, struct str text)
{
    replace_spot(w, (struct spot){from, from, to, STR_NONE}, text);
}

static size_t skip_space(struct str s, size_t at)
{
    while (at < s.n && (s.p[at] == ' ' || s.p[at] == '\t' || s.p[at] == '\n' || s.p[at] == '\r'))
        at++;
    return at;
}

/* Returns the position after the closing quote; the opening quote is at `at`. */
static size_t skip_string(struct str s, size_t at)
{
    for (at++; at < s.n; at++) {
        if (s.p[at] == '"')
            return at + 1;
        if (s.p[at] == '\\')
            at++;
    }
    return s.n;
}

static size_t skip_nested(struct str s, size_t at)
{
    size_t depth = 0;
    while (at < s.n) {
        char c = s.p[at];
        if (c == '"') {
            at = skip_string(s, at);
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return at;
    }
    return s.n;
}

static bool is_delimiter(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_scalar(struct str s, size_t at)
{
    while (at < s.n && !is_delimiter(s.p[at]) && s.p[at] != '\\' && s.p[at] != '"')
        at++;
    return at;
}

static bool is_number_start(char c)
{
    return c == '-' || (c >= '0' && c <= '9');
}

static bool is_literal(struct str s, size_t at)
{
    static const struct str words[] = {STR("true"), STR("false"), STR("null"), STR("None"),
                                       STR("True"), STR("False"), STR("nil"),  STR("undefined")};
    struct str rest = str_n(s.p + at, s.n - at);

    for (size_t i = 0; i < countof(words); i++)
        if (str_starts(rest, words[i]))
            return true;
    return false;
}

/* Literals such as true and null reveal nothing. */
static bool is_revealing(struct str s, size_t at, enum key_class class)
{
    if (class == KEY_PLAIN || at >= s.n || is_delimiter(s.p[at]) || is_literal(s, at))
        return false;
    return class == KEY_SECRET || !(is_number_start(s.p[at]) || s.p[at] == '{');
}

static size_t backslashes(struct str s, size_t at)
{
    size_t n = 0;
    while (at + n < s.n && s.p[at + n] == '\\')
        n++;
    return n;
}

static size_t backslashes_before(struct str s, size_t at)
{
    size_t n = 0;
    while (n < at && s.p[at - 1 - n] == '\\')
        n++;
    return n;
}

/* JSON quoted into a string writes its quotes with n backslashes, where n depends on the level.
 * Returns the position of the next quote of this level, including its backslashes.  A quote with
 * fewer backslashes ends an enclosing string, so it ends the search too. */
static size_t find_quote(struct str s, size_t at, size_t n)
{
    while (at < s.n) {
        size_t run = backslashes(s, at);
        if (run <= n && at + run < s.n && s.p[at + run] == '"')
            return at;
        at += run + 1;
    }
    return s.n;
}

/* Returns the first quote at or after `at`.  The result is cached, because positions only
 * increase. */
static size_t next_quote(struct walk *w, size_t at)
{
    if (w->quote_from == SIZE_MAX || at < w->quote_from || at > w->quote) {
        const char *p = memchr(w->in.p + at, '"', w->in.n - at);
        w->quote_from = at;
        w->quote = p ? (size_t)(p - w->in.p) : w->in.n;
    }
    return w->quote;
}

/* Secrets found by name. */

/* Replaces the member value at `from`; the JSON around it is quoted n times. */
static bool replace_value(struct walk *w, size_t from, size_t n, enum key_class class,
                          struct str name)
{
    struct str in = w->in;
    size_t to, slashes = backslashes(in, from);
    bool quoted = slashes == n && from + n < in.n && in.p[from + n] == '"';

    if (from >= in.n || !is_revealing(in, from, class))
        return false;
    if (quoted && from + n + 1 < in.n && in.p[from + n + 1] == '/' &&
        redact_key_may_be_directory(name))
        return false;
    if (n > 0) {
        to = quoted ? find_quote(in, from + n + 1, n) : skip_scalar(in, from);
        from += quoted ? n + 1 : 0;
        replace(w, from, to, STR(REPLACEMENT));
        return to > from;
    }
    char c = in.p[from];
    to = c == '"'               ? skip_string(in, from)
         : c == '{' || c == '[' ? skip_nested(in, from)
                                : skip_scalar(in, from);
    if (c == '"' && to - from > 2 && in.p[to - 1] == '"')
        replace(w, from + 1, to - 1, STR(REPLACEMENT)); /* the quotes stay */
    else
        replace(w, from, to, STR("\"" REPLACEMENT "\""));
    if (w->at < to)
        w->at = to;
    return true;
}

/* A word of the names is at `at`.  Returns true if it is inside the name of a member; the member
 * has then been handled. */
static bool take_member(struct walk *w, size_t at)
{
    size_t quote = next_quote(w, at);
    if (quote == w->in.n)
        return false;
    size_t colon = skip_space(w->in, quote + 1);
    if (colon >= w->in.n || w->in.p[colon] != ':')
        return false;
    size_t n = backslashes_before(w->in, quote), end = quote - n;
    if (end < at)
        return false;
    size_t least = at > NAME_LOOK ? at - NAME_LOOK : 0;
    const char *open = memrchr(w->in.p + least, '"', at - least);
    size_t begin = open ? (size_t)(open - w->in.p) + 1 : least;
    if (end > at + NAME_LOOK)
        end = at + NAME_LOOK;
    struct str name = str_n(w->in.p + begin, end - begin);
    enum key_class class = redact_key_class(name);
    if (class != KEY_PLAIN)
        (void)replace_value(w, skip_space(w->in, colon + 1), n, class, name);
    return true;
}

/* A name in text, without quotes. */
struct plain_name {
    size_t begin, end;
    struct str text;
    enum key_class class;
};

static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '-' ||
           c == '.';
}

/* Classifies a name only where a value may follow, because classification is expensive. */
static bool plain_name_at(struct str in, size_t at, struct plain_name *ret)
{
    size_t begin = at, end = at;

    while (end < in.n && end - at < PLAIN_NAME_MAX && is_name_char(in.p[end]))
        end++;
    if (end == at || end == in.n)
        return false;
    while (begin > 0 && at - begin < PLAIN_NAME_MAX && is_name_char(in.p[begin - 1]))
        begin--;
    if (begin > 0 && in.p[begin - 1] == '\\' && begin < at) /* \npassword */
        begin++;
    if (in.p[end] == ' ' && in.p[begin] != '-') {
        size_t sign = skip_space(in, end);
        if (sign == in.n || (in.p[sign] != '=' && in.p[sign] != ':'))
            return false;
    } else if (!strchr("=:%'`\"\\ ", in.p[end])) {
        return false;
    }
    *ret = (struct plain_name){begin, end, str_n(in.p + begin, end - begin), KEY_PLAIN};
    ret->class = redact_key_class(ret->text);
    return ret->class != KEY_PLAIN;
}

/* ["--password", "…"] */
static bool take_argument(struct walk *w, const struct plain_name *name, size_t n, size_t quote)
{
    struct str in = w->in;
    size_t comma = skip_space(in, quote + 1), from;

    if (in.p[name->begin] != '-' || comma >= in.n || in.p[comma] != ',')
        return false;
    from = skip_space(in, comma + 1);
    if (backslashes(in, from) != n || from + n >= in.n || in.p[from + n] != '"' ||
        (from + n + 1 < in.n && in.p[from + n + 1] == '-'))
        return false;
    return replace_value(w, from, n, name->class, name->text);
}

static bool is_one_of(struct str s, const struct str *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_ieq(s, words[i]))
            return true;
    return false;
}

/* Returns the name of the member before a value.  The value's opening quote (n backslashes before
 * it) is at `quote`.  *ret_begin is the beginning of that member. */
static struct str key_before(struct str in, size_t quote, size_t n, size_t *ret_begin)
{
    size_t at = quote - n, end;

    while (at > 0 && in.p[at - 1] == ' ')
        at--;
    if (at == 0 || in.p[--at] != ':')
        return STR_NONE;
    while (at > 0 && in.p[at - 1] == ' ')
        at--;
    if (at < n + 2 || in.p[at - 1] != '"' || backslashes_before(in, at - 1) != n)
        return STR_NONE;
    end = at - 1 - n;
    for (at = end; at > 0 && end - at < PLAIN_NAME_MAX && in.p[at - 1] != '"'; at--)
        continue;
    if (at < n + 1 || in.p[at - 1] != '"')
        return STR_NONE;
    *ret_begin = at - 1 - n;
    return str_n(in.p + at, end - at);
}

static const struct str value_keys[] = {STR("value"),   STR("val"),  STR("v"),
                                        STR("content"), STR("data"), STR("default")};

/* Matches …, "value": "…"} after the name. */
static bool take_value_after(struct walk *w, const struct plain_name *name, size_t n, size_t at)
{
    struct str in = str_n(w->in.p, w->in.n - at > PAIR_LOOK ? at + PAIR_LOOK : w->in.n);

    for (int members = 0; members < 8; members++) {
        at = skip_space(in, at);
        if (at >= in.n || in.p[at] != ',')
            return false;
        at = skip_space(in, at + 1);
        if (backslashes(in, at) != n || at + n >= in.n || in.p[at + n] != '"')
            return false;
        size_t begin = at + n + 1, end = find_quote(in, begin, n);
        size_t colon = skip_space(in, end + n + 1);
        if (colon >= in.n || in.p[colon] != ':')
            return false;
        at = skip_space(in, colon + 1);
        if (at >= in.n)
            return false;
        if (is_one_of(str_n(in.p + begin, end - begin), value_keys, countof(value_keys)))
            return replace_value(w, at, n, name->class, name->text);
        bool quoted = backslashes(in, at) == n && at + n < in.n && in.p[at + n] == '"';
        if (quoted)
            at = find_quote(in, at + n + 1, n) + n + 1;
        else
            at = n == 0 && (in.p[at] == '{' || in.p[at] == '[') ? skip_nested(in, at)
                                                                : skip_scalar(in, at);
    }
    return false;
}

/* Matches {"value": "…", before the name, which begins at `at`. */
static bool take_value_before(struct walk *w, size_t n, size_t at)
{
    struct str in = w->in;
    size_t least = at > PAIR_LOOK ? at - PAIR_LOOK : 0, begin, end;

    while (at > least && in.p[at - 1] == ' ')
        at--;
    if (at == least || in.p[at - 1] != ',')
        return false;
    at--;
    if (at < least + n + 1 || in.p[at - 1] != '"' || backslashes_before(in, at - 1) != n)
        return false;
    end = at - 1 - n;
    for (at = end; at > least; at--)
        if (in.p[at - 1] == '"' && backslashes_before(in, at - 1) == n)
            break;
    if (at == least ||
        !is_one_of(key_before(in, at - 1, n, &begin), value_keys, countof(value_keys)))
        return false;
    replace(w, at, end, STR(REPLACEMENT));
    return true;
}

/* Matches {"name": "password", "value": "…"} in either order. */
static bool take_pair(struct walk *w, const struct plain_name *name, size_t n, size_t quote)
{
    static const struct str name_keys[] = {
        STR("name"),  STR("key"),      STR("header"), STR("field"), STR("parameter"),
        STR("param"), STR("variable"), STR("k"),      STR("n"),     STR("id")};
    size_t begin = 0;

    if (name->begin < n + 1 || w->in.p[name->begin - 1] != '"' ||
        !is_one_of(key_before(w->in, name->begin - 1, n, &begin), name_keys, countof(name_keys)))
        return false;
    return take_value_before(w, n, begin) || take_value_after(w, name, n, quote + 1);
}

/* Whether this character ends a value in text. */
static bool ends_run(char c)
{
    return (unsigned char)c <= ' ' || c == '"' || c == '\'' || c == '`' || c == '&' || c == ';' ||
           c == ',' || c == ')' || c == ']' || c == '}' || c == '<' || c == '>' || c == '\\' ||
           c == '|' || c == '(' || c == '[';
}

/* Whether the text differs from prose and code: it has a digit or a sign inside, or is long. */
static bool looks_random(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] >= '0' && s.p[i] <= '9') || strchr("!@#$%^*+=~/", s.p[i]))
            return true;
    return s.n >= 16;
}

/* The separator between a name in text and its value. */
struct assignment {
    size_t value;
    bool is_colon, is_spaced, is_flag;
};

static bool assignment_at(struct str in, const struct plain_name *name, struct assignment *ret)
{
    size_t at = name->end, sign;

    *ret = (struct assignment){0};
    if (at < in.n && (in.p[at] == '\'' || in.p[at] == '`'))
        at++;
    sign = skip_space(in, at);
    if (sign - at > 4 || sign >= in.n)
        return false;
    if (in.n - sign >= 3 && in.p[sign] == '%' && in.p[sign + 1] == '3' &&
        (in.p[sign + 2] | 32) == 'd') {
        ret->value = sign + 3;
        return true;
    }
    if (in.p[sign] == '=' || in.p[sign] == ':') {
        size_t behind = sign + 1;
        ret->is_colon = in.p[sign] == ':';
        if (behind < in.n && in.p[behind] == '=')
            return false; /* a comparison, or a declaration */
        if (!ret->is_colon && behind < in.n && in.p[behind] == '>')
            behind++;
        ret->value = skip_space(in, behind);
        ret->is_spaced = sign > at || ret->value > behind;
        return ret->value < in.n && ret->value - behind <= 4;
    }
    ret->is_flag = in.p[name->begin] == '-' && sign == at + 1;
    ret->value = sign;
    return ret->is_flag && in.p[sign] != '-';
}

static bool runs_to_end_of_line(struct str name)
{
    return str_icontains(name, STR("authorization")) || str_icontains(name, STR("cookie"));
}

/* name=value, name: value, --name value */
static bool take_assignment(struct walk *w, const struct plain_name *name)
{
    struct assignment a;
    struct str in = w->in;

    if (!assignment_at(in, name, &a))
        return false;
    size_t from = a.value, to, slashes = backslashes(in, from);
    if (from + slashes < in.n && in.p[from + slashes] == '"') {
        from += slashes + 1;
        to = find_quote(in, from, slashes);
        if (a.is_colon && slashes == 0)
            return false;
    } else if (in.p[from] == '\'') {
        from++;
        for (to = from; to < in.n && to - from < RUN_LOOK; to++)
            if (in.p[to] == '\'' || in.p[to] == '"' || in.p[to] == '\\')
                break;
    } else {
        bool whole_line = a.is_colon && runs_to_end_of_line(name->text);
        for (to = from; to < in.n; to++)
            if (whole_line ? in.p[to] == '\n' || in.p[to] == '"' || in.p[to] == '\\'
                           : ends_run(in.p[to]))
                break;
        struct str run = str_n(in.p + from, to - from < RUN_LOOK ? to - from : RUN_LOOK);
        if (run.n == 0 || (run.n < RUN_LOOK && to < in.n && (in.p[to] == '(' || in.p[to] == '[')))
            return false;
        if ((a.is_colon || a.is_spaced || a.is_flag) && !whole_line && !looks_random(run))
            return false;
        if (strchr("${<[`", in.p[from]) || (a.is_colon && in.p[from] == '/'))
            return false;
        if (in.p[from] == '/' && redact_key_may_be_directory(name->text))
            return false;
    }
    if (to == from || !is_revealing(in, from, name->class))
        return false;
    replace(w, from, to, STR(REPLACEMENT));
    return true;
}

/* A word of the names is at w->at. */
static bool take_name(void *arg, const struct window *window)
{
    struct walk *w = arg;
    size_t at = w->at + (redact_name_windows[window->item][0] == '?');
    struct plain_name name;

    if (take_member(w, at))
        return true;
    if (!plain_name_at(w->in, at, &name))
        return false;
    size_t quote = next_quote(w, name.end), n;
    if (quote < w->in.n && quote - name.end <= 64 &&
        quote - (n = backslashes_before(w->in, quote)) == name.end &&
        (take_argument(w, &name, n, quote) || take_pair(w, &name, n, quote)))
        return true;
    return take_assignment(w, &name);
}

/* Secrets found by shape and by value. */

static bool take_shape(void *arg, const struct window *window)
{
    struct walk *w = arg;
    size_t from, to;

    if (w->at < window->offset ||
        !redact_shape_at(&redact_shapes[window->item], w->in, w->at - window->offset, &w->memo,
                         &from, &to) ||
        to <= w->copied)
        return false;
    size_t begin = w->at - window->offset;
    replace_spot(w, (struct spot){begin < from ? begin : from, from, to, STR_NONE},
                 STR(REPLACEMENT));
    return true;
}

struct value_taking {
    struct walk *walk;
    const struct known *known;
};

static bool take_value(void *arg, const struct window *window)
{
    const struct value_taking *t = arg;
    struct walk *w = t->walk;
    struct str marker;
    size_t n;

    if (w->at < window->offset ||
        !known_matches(t->known, window->item, w->in, w->at - window->offset, &n, &marker))
        return false;
    replace(w, w->at - window->offset, w->at - window->offset + n, marker);
    return true;
}

/* Handles the candidate at w->at. */
static void take_place(struct walk *w)
{
    size_t at = w->at, from, to;

    if (w->needle_next == at && needle_at(&w->needle, w->in, at, &from, &to))
        replace(w, from, to, w->needle_marker);
    if (w->at > at)
        return;
    for (size_t i = 0; i < w->n_fronts; i++) {
        struct value_taking t = {w, w->fronts[i].known};
        if (w->fronts[i].next == at && t.known &&
            scanner_each(w->fronts[i].scan, w->in, at, WINDOW_VALUE, take_value, &t))
            break;
    }
    const struct front *f = &w->fronts[0];
    if (w->at == at && f->next == at &&
        !(!w->without_shapes && scanner_each(f->scan, w->in, at, WINDOW_SHAPE, take_shape, w)) &&
        !w->without_names)
        (void)scanner_each(f->scan, w->in, at, WINDOW_NAME, take_name, w);
    if (w->at == at)
        w->at++;
}

/* Returns the next candidate before `end`. */
static size_t next_place(struct walk *w, size_t end)
{
    size_t first = end;

    for (size_t i = 0; i < w->n_fronts; i++) {
        struct front *f = &w->fronts[i];
        if (f->next < w->at || f->next == SIZE_MAX)
            f->next = scanner_next(f->scan, w->in, w->at, end, &f->cursor, !w->narrow);
        if (f->next < first)
            first = f->next;
    }
    if (unlikely(w->needle.n) && (w->needle_next < w->at || w->needle_next == SIZE_MAX))
        w->needle_next = needle_next(&w->needle, w->in, w->at, end, !w->narrow);
    return w->needle_next < first ? w->needle_next : first;
}

/* The output cannot reach further into the body than this, even without more replacements. */
static size_t end_of_output(const struct walk *w)
{
    size_t room = w->cap >= w->out->n ? w->cap - w->out->n + 1 : 0;

    return w->in.n - w->copied > room ? w->copied + room : w->in.n;
}

/* Stops at the end of the body, or when the output is longer than the cap. */
static void walk_body(struct walk *w)
{
    for (size_t i = 0; i < w->n_fronts; i++)
        w->fronts[i].next = SIZE_MAX;
    w->needle_next = SIZE_MAX;
    for (;;) {
        size_t end = end_of_output(w);
        size_t last = w->in.n - end > BEYOND_CAP ? end + BEYOND_CAP : w->in.n;
        if (w->at >= last)
            break;
        size_t place = next_place(w, last);
        if (place >= last)
            break;
        w->at = place;
        take_place(w);
    }
    w->at = end_of_output(w);
}

/* Writes the JSON escape of byte `c` and returns its length; 0 when the byte needs no escape.  With
 * `valid` false the byte is not UTF-8, and the escape is U+FFFD. */
static size_t escape_of(unsigned char c, bool valid, char ret[6])
{
    static const char hex[] = "0123456789abcdef";
    if (!valid)
        c = 0;
    else if (c != '"' && c != '\\' && c >= 0x20)
        return 0;
    else if (c >= 0x20) {
        ret[0] = '\\';
        ret[1] = (char)c;
        return 2;
    }
    static const char forms[2][6] = {{'\\', 'u', 'f', 'f', 'f', 'd'},
                                     {'\\', 'u', '0', '0', '0', '0'}};
    memcpy(ret, forms[valid], 6);
    if (valid) {
        ret[4] = hex[c >> 4];
        ret[5] = hex[c & 15];
    }
    return 6;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Whether one of these eight bytes must be escaped in a JSON string, or is not printable ASCII.
 * Tests all eight at once: a byte is zero if subtracting one borrows from its top bit. */
static bool has_unplain(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    uint64_t quote = x ^ EACH('"'), backslash = x ^ EACH('\\'), rubout = x ^ EACH(0x7f);
    uint64_t low = (x - EACH(0x20)) & ~x;
    uint64_t zero = ((quote - EACH(1)) & ~quote) | ((backslash - EACH(1)) & ~backslash) |
                    ((rubout - EACH(1)) & ~rubout);
    return ((x | low | zero) & EACH(0x80)) != 0;
}

/* Counts the bytes from `at` on that need no escape in a JSON string; stops at any byte that is not
 * ASCII. */
static size_t plain_run(struct str s, size_t at, size_t most)
{
    size_t n = 0;
    if (most > s.n - at)
        most = s.n - at;
    while (most - n >= 8 && !has_unplain(s.p + at + n))
        n += 8;
    while (n < most) {
        unsigned char c = (unsigned char)s.p[at + n];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
            break;
        n++;
    }
    return n;
}

/* Appends `s` as the inside of a JSON string while it fits; returns the number of bytes of `s` that
 * fitted. */
static size_t add_escaped(struct buf *out, struct str s, size_t room)
{
    size_t at = 0;
    char escape[6];
    while (at < s.n) {
        size_t run = plain_run(s, at, room); /* most text is copied in long pieces */
        buf_add(out, s.p + at, run);
        room -= run;
        at += run;
        if (at == s.n || room == 0)
            break;
        uint32_t code;
        size_t n = utf8_decode(s.p + at, s.p + s.n, &code);
        size_t length = escape_of((unsigned char)s.p[at], n > 0, escape);
        const char *piece = length ? escape : s.p + at;
        if (length == 0)
            length = n;
        if (length > room)
            break;
        buf_add(out, piece, length);
        room -= length;
        at += n ? n : 1;
    }
    return at;
}

/* Writes the beginning of a body that is too long. */
static struct str write_cut(struct redactor *r, struct str head, size_t length, size_t cap)
{
    struct buf quoted;
    buf_init(&quoted, cap);
    size_t kept = add_escaped(&quoted, head, cap - CUT_WORDS);
    buf_reset(&r->out);
    buf_addf(&r->out, "{\"holdfast/cut\":{\"length\":%zu,\"kept\":%zu},\"head\":\"", length, kept);
    buf_addstr(&r->out, buf_str(&quoted));
    buf_addz(&r->out, "\"}");
    buf_release(&quoted);
    return buf_str(&r->out);
}

static bool is_json(struct redactor *r, struct str s)
{
    struct js_doc doc;
    bool ok = s.n > 0 && js_parse(s, &js_limits_upstream, r->nodes, &doc, NULL);
    arena_reset(r->nodes);
    return ok;
}

/* Writes bytes that are not JSON as a JSON string. */
static struct str write_string(struct redactor *r, struct str text, size_t length, size_t cap)
{
    buf_reset(&r->out);
    buf_addc(&r->out, '"');
    if (add_escaped(&r->out, text, cap - 2) < text.n)
        return write_cut(r, text, length, cap);
    buf_addc(&r->out, '"');
    return buf_str(&r->out);
}

static void add_front(struct walk *w, const struct known *known)
{
    if (known_count(known))
        w->fronts[w->n_fronts++] = (struct front){.scan = known_scanner(known), .known = known};
}

static void set_own_fronts(struct walk *w, const struct own_secrets *own)
{
    add_front(w, own ? own->session : NULL);
    add_front(w, own ? own->known : NULL);
    if (own && own->credential.p) {
        needle_init(&w->needle, own->credential);
        w->needle_marker = own->credential_marker;
    }
}

/* Sets the values, tables and credential that a walk searches for.  A value that is in several sets
 * gets its name from the last of them: the name of the link's own setting says most. */
static void set_fronts(struct walk *w, const struct known *base, const struct own_secrets *own)
{
    w->fronts[w->n_fronts++] =
        (struct front){.scan = base ? known_scanner(base) : redact_table_scanner(), .known = base};
    set_own_fronts(w, own);
}

/* Switches to the newest published set. */
static const struct known *base_of(struct redactor *r)
{
    if (r->version != known_version()) {
        known_unref(r->base);
        r->base = known_published(&r->version);
    }
    return r->base;
}

/* Returns the body without the secrets that the walk searches for.  Of a long body it returns only a
 * little more than the cap, because the body will be cut. */
static struct str walked(struct redactor *r, struct walk *w)
{
    buf_reset(&r->text);
    walk_body(w);
    if (w->copied == 0)
        return str_n(w->in.p, w->at);
    if (w->at > w->copied)
        buf_add(&r->text, w->in.p + w->copied, w->at - w->copied);
    return buf_str(&r->text);
}

static struct str without_secrets(struct redactor *r, const struct own_secrets *own,
                                  struct str body, size_t cap)
{
    struct walk w = {
        .in = body, .cap = cap, .out = &r->text, .quote_from = SIZE_MAX, .narrow = r->narrow};

    set_fronts(&w, base_of(r), own);
    return walked(r, &w);
}

static struct str without_own_secrets(struct redactor *r, const struct own_secrets *own,
                                      struct str body, size_t cap)
{
    struct walk w = {.in = body,
                     .cap = cap,
                     .out = &r->text,
                     .quote_from = SIZE_MAX,
                     .narrow = r->narrow,
                     .without_shapes = true,
                     .without_names = true};

    set_own_fronts(&w, own);
    return w.n_fronts || w.needle.n ? walked(r, &w) : body;
}

struct str redact_body(struct redactor *r, const struct own_secrets *own, struct str body,
                       bool secrets, size_t cap)
{
    if (!body.p || cap < REDACT_LEAST_CAP)
        return STR_NONE;
    struct str kept =
        secrets ? without_secrets(r, own, body, cap) : without_own_secrets(r, own, body, cap);
    if (kept.n > cap)
        return write_cut(r, kept, body.n, cap);
    bool untouched = kept.p == body.p && kept.n == body.n;
    return (r->trusts && untouched) || is_json(r, kept) ? kept : write_string(r, kept, body.n, cap);
}

struct str redact_text(struct redactor *r, const struct own_secrets *own, struct str text)
{
    return text.p ? without_secrets(r, own, text, SIZE_MAX / 4) : text;
}

/* On any thread. */
static bool walk_text(struct walk *w, const struct own_secrets *own)
{
    uint64_t version;
    struct known *base = known_published(&version);
    size_t before = w->out->n;

    w->cap = SIZE_MAX / 4;
    w->quote_from = SIZE_MAX;
    set_fronts(w, base, own);
    walk_body(w);
    if (w->copied)
        buf_add(w->out, w->in.p + w->copied, w->in.n - w->copied);
    known_unref(base);
    return w->copied > 0 && w->out->n >= before;
}

bool redact_line(const struct own_secrets *own, struct str text, struct buf *out)
{
    struct walk w = {.in = text, .out = out};

    return walk_text(&w, own);
}

bool redact_unnamed(struct str text, bool shapes, struct buf *out)
{
    struct walk w = {.in = text, .out = out, .without_names = true, .without_shapes = !shapes};

    return walk_text(&w, NULL);
}

void redact_cut(const struct own_secrets *own, const char *text, char *ret, size_t size)
{
    struct buf clean;

    buf_init_secret(&clean, SIZE_MAX / 4);
    struct str kept = redact_line(own, str_of(text), &clean) ? buf_str(&clean) : str_of(text);
    kept = str_cut(kept, size - 1);
    memmove(ret, kept.p, kept.n);
    ret[kept.n] = '\0';
    buf_release(&clean);
}

struct redactor *redactor_new(void)
{
    struct redactor *r = xcalloc(1, sizeof(*r));
    buf_init(&r->text, SIZE_MAX / 4); /* bounded by the body and the cap */
    buf_init(&r->out, SIZE_MAX / 4);
    r->nodes = arena_new(SIZE_MAX / 4); /* the cap bounds the parsed bytes */
    return r;
}

void redactor_trust_json(struct redactor *r)
{
    r->trusts = true;
}

void redactor_be_narrow(struct redactor *r)
{
    r->narrow = true;
}

void redactor_free(struct redactor *r)
{
    if (!r)
        return;
    buf_release(&r->text);
    buf_release(&r->out);
    arena_free(r->nodes);
    known_unref(r->base);
    free(r);
}
