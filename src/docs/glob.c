/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns for names of documents.
 *
 *   pattern ─ braces written out ─> alternatives ─ cut at '/' ─> parts ─> tokens
 *
 * A path matches if one alternative does.  Pattern parts are compared with path parts, each pair at
 * most once: the matcher carries the set of pattern parts that may come next along the path, and
 * `**` stays in that set.  Within a part the matcher backtracks only to the last `*`.  So a match
 * never costs more than the length of the pattern, with the braces written out, times that of the
 * name.  Written out, a pattern has at most 8 KiB. */
#include "docs/text.h"

#include "base/utf8.h"

#define PATTERN_MAX 1024
#define ALTERNATIVES_MAX 128
#define EXPANDED_MAX (8 * 1024) /* bytes of all alternatives */
#define PARTS_MAX (PATTERN_MAX + 1)

enum token_kind { TOKEN_CHAR, TOKEN_ANY, TOKEN_STAR, TOKEN_CLASS };

struct range {
    uint32_t first, last;
};
struct token {
    enum token_kind kind;
    uint32_t code; /* of a character */
    bool negated;  /* a class that matches all other characters */
    struct range *ranges;
    size_t n_ranges;
};
struct part {
    bool is_any; /* ** */
    struct token *tokens;
    size_t n;
};
struct alternative {
    struct part *parts;
    size_t n;
};
struct glob {
    struct alternative alternatives[ALTERNATIVES_MAX];
    size_t n;
};

struct compile {
    struct glob *glob;
    struct arena *mem;
    char text[PATTERN_MAX]; /* the alternative being written out */
    size_t n;
    size_t total;
    struct error *err;
};
/* Text still to be written out.  It is a chain, because the text after a group follows each of the
 * group's alternatives. */
struct rest {
    struct str text;
    const struct rest *next;
};

static bool unbalanced(struct error *err, const char *what)
{
    return error_set(err, ERR_BAD_INPUT,
                     "The glob pattern has an unbalanced '%s'; close it, or write \\%s for the "
                     "character itself.",
                     what, what);
}

/* Returns the length of the character in bytes.  A byte that is not UTF-8 is one character with a
 * code past every code point. */
static size_t char_at(struct str s, size_t at, uint32_t *ret_code)
{
    size_t n = utf8_decode(s.p + at, s.p + s.n, ret_code);
    if (n)
        return n;
    *ret_code = 0x110000u + (unsigned char)s.p[at];
    return 1;
}

/* Returns the length of the unit at `at` in bytes: an escape, a class, or a byte.  0: a class that
 * does not end within its part. */
static size_t unit_at(struct str s, size_t at)
{
    size_t i = at + 1;

    if (s.p[at] == '\\')
        return at + 1 < s.n ? 2 : 1;
    if (s.p[at] != '[')
        return 1;
    if (i < s.n && (s.p[i] == '!' || s.p[i] == '^'))
        i++;
    for (size_t first = i; i < s.n && s.p[i] != '/'; i++) {
        if (s.p[i] == ']' && i > first)
            return i + 1 - at;
        if (s.p[i] == '\\' && i + 1 < s.n)
            i++;
    }
    return 0;
}

static uint32_t class_char(struct str s, size_t *at)
{
    uint32_t code;

    if (s.p[*at] == '\\' && *at + 1 < s.n)
        ++*at;
    *at += char_at(s, *at, &code);
    return code;
}

/* `s` is the text between the brackets. */
static void class_compile(struct str s, struct arena *mem, struct token *ret)
{
    size_t at = 0;

    *ret = (struct token){.kind = TOKEN_CLASS};
    if (s.n && (s.p[0] == '!' || s.p[0] == '^')) {
        ret->negated = true;
        at = 1;
    }
    ret->ranges = arena_alloc(mem, (s.n + 1) * sizeof *ret->ranges);
    while (at < s.n) {
        struct range r = {0};
        r.first = r.last = class_char(s, &at);
        if (at + 1 < s.n && s.p[at] == '-') {
            at++;
            r.last = class_char(s, &at);
        }
        ret->ranges[ret->n_ranges++] = r;
    }
}

static bool part_compile(struct str s, struct arena *mem, struct part *ret, struct error *err)
{
    *ret = (struct part){.is_any = str_eq(s, STR("**"))};
    ret->tokens = arena_zalloc(mem, (s.n + 1) * sizeof *ret->tokens);
    for (size_t at = 0, n; at < s.n; at += n) {
        struct token *t = &ret->tokens[ret->n];
        n = unit_at(s, at);
        if (n == 0)
            return unbalanced(err, "[");
        if (s.p[at] == '[') {
            class_compile(str_n(s.p + at + 1, n - 2), mem, t);
        } else if (s.p[at] == '*') {
            t->kind = TOKEN_STAR;
            if (ret->n && t[-1].kind == TOKEN_STAR)
                continue; /* ** inside a part means * */
        } else if (s.p[at] == '?') {
            t->kind = TOKEN_ANY;
        } else {
            size_t escape = n == 2;
            n = escape + char_at(s, at + escape, &t->code);
        }
        ret->n++;
    }
    return true;
}

static bool alternative_add(struct compile *c)
{
    struct str rest = str_n(c->text, c->n);
    size_t parts = 1;

    c->total += c->n;
    if (c->glob->n == ALTERNATIVES_MAX || c->total > EXPANDED_MAX)
        return error_set(c->err, ERR_BAD_INPUT,
                         "The glob pattern has too many alternatives; use fewer braces, or search "
                         "in several calls.");
    for (size_t i = 0; i < c->n; i++)
        parts += c->text[i] == '/';
    struct alternative *a = &c->glob->alternatives[c->glob->n++];
    a->parts = arena_alloc(c->mem, parts * sizeof *a->parts);
    while (rest.p) {
        struct str part = str_split(&rest, '/');
        if (!part_compile(part, c->mem, &a->parts[a->n], c->err))
            return false;
        /* Two `**` in a row mean the same as one. */
        a->n += !(a->parts[a->n].is_any && a->n && a->parts[a->n - 1].is_any);
    }
    return true;
}

/* The index of the '}' of the group that begins at `at`; s.n when the group does not end. */
static size_t group_end(struct str s, size_t at)
{
    size_t depth = 0, n;

    for (size_t i = at; i < s.n; i += n) {
        n = unit_at(s, i);
        if (n == 0)
            return s.n;
        depth += s.p[i] == '{';
        if (s.p[i] == '}' && --depth == 0)
            return i;
    }
    return s.n;
}

/* Cuts the next alternative off the inside of a group; groups in it stay whole. */
static struct str group_next(struct str *inside)
{
    struct str s = *inside;
    size_t depth = 0, i = 0;

    for (; i < s.n && (s.p[i] != ',' || depth > 0); i += unit_at(s, i))
        depth += (size_t)(s.p[i] == '{') - (size_t)(s.p[i] == '}');
    *inside = i < s.n ? str_n(s.p + i + 1, s.n - i - 1) : STR_NONE;
    return str_n(s.p, i);
}

static bool expand(struct compile *c, const struct rest *rest);

static bool expand_group(struct compile *c, struct str inside, const struct rest *after)
{
    while (inside.p) {
        struct rest one = {group_next(&inside), after};
        if (!expand(c, &one))
            return false;
    }
    return true;
}

/* Every path through the recursion ends in one alternative, so the limit on alternatives limits the
 * work.  The recursion is as deep as there are groups. */
static bool expand(struct compile *c, const struct rest *rest)
{
    size_t kept = c->n;

    for (; rest; rest = rest->next) {
        struct str s = rest->text;
        for (size_t i = 0, n; i < s.n; i += n) {
            n = unit_at(s, i);
            if (n == 0)
                return unbalanced(c->err, "[");
            if (s.p[i] == '}')
                return unbalanced(c->err, "}");
            if (s.p[i] == '{') {
                size_t end = group_end(s, i);
                struct rest after = {str_n(s.p + end + 1, s.n - end - 1), rest->next};
                if (end == s.n)
                    return unbalanced(c->err, "{");
                bool ok = expand_group(c, str_n(s.p + i + 1, end - i - 1), &after);
                c->n = kept;
                return ok;
            }
            memcpy(c->text + c->n, s.p + i, n);
            c->n += n;
        }
    }
    bool ok = alternative_add(c);
    c->n = kept;
    return ok;
}

bool glob_compile(struct str pattern, struct arena *mem, struct glob **ret, struct error *err)
{
    struct compile c = {.mem = mem, .err = err};
    struct rest whole = {pattern, NULL};

    if (pattern.n == 0)
        return error_set(err, ERR_BAD_INPUT, "The glob pattern is empty; ** fits every document.");
    if (pattern.n > PATTERN_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "The glob pattern is longer than 1,024 bytes; shorten it.");
    c.glob = arena_new_of(mem, struct glob);
    if (!expand(&c, &whole))
        return false;
    *ret = c.glob;
    return true;
}

static bool token_matches(const struct token *t, uint32_t code)
{
    if (t->kind != TOKEN_CLASS)
        return t->kind == TOKEN_ANY || t->code == code;
    for (size_t i = 0; i < t->n_ranges; i++)
        if (t->ranges[i].first <= code && code <= t->ranges[i].last)
            return !t->negated;
    return t->negated;
}

static bool part_matches(const struct part *p, struct str name)
{
    size_t at = 0, token = 0, n;
    size_t star = SIZE_MAX, star_at = 0; /* the last `*`, and the end of its match */
    uint32_t code;

    while (at < name.n) {
        if (token < p->n && p->tokens[token].kind == TOKEN_STAR) {
            star = token++;
            star_at = at;
            continue;
        }
        n = char_at(name, at, &code);
        if (token < p->n && token_matches(&p->tokens[token], code)) {
            token++;
            at += n;
        } else if (star != SIZE_MAX) {
            star_at += char_at(name, star_at, &code);
            at = star_at;
            token = star + 1;
        } else {
            return false;
        }
    }
    while (token < p->n && p->tokens[token].kind == TOKEN_STAR)
        token++;
    return token == p->n;
}

/* A `**` in the middle may stand for no part at all, so the part after it may come next.  The last
 * part may not be skipped: "a/" is not a document. */
static void skip_any(const struct alternative *a, bool *next)
{
    for (size_t i = 0; i + 1 < a->n; i++)
        next[i + 1] |= next[i] && a->parts[i].is_any;
}

/* next[i]: the path so far matches the parts before i. */
static bool alternative_matches(const struct alternative *a, struct str path)
{
    bool next[PARTS_MAX + 1];

    memset(next, 0, a->n + 1);
    next[0] = true;
    for (struct str rest = path; rest.p;) {
        struct str name = str_split(&rest, '/');
        bool alive = false;
        skip_any(a, next);
        /* From the end, so that each step reads only entries that this name has not changed yet. */
        for (size_t i = a->n + 1; i-- > 0;) {
            bool stays = i < a->n && next[i] && a->parts[i].is_any;
            bool comes =
                i > 0 && next[i - 1] &&
                (a->parts[i - 1].is_any ? i == a->n : part_matches(&a->parts[i - 1], name));
            next[i] = stays || comes;
            alive |= next[i];
        }
        if (!alive)
            return false;
    }
    return next[a->n];
}

bool glob_matches(const struct glob *g, struct str path)
{
    for (size_t i = 0; i < g->n; i++)
        if (alternative_matches(&g->alternatives[i], path))
            return true;
    return false;
}
