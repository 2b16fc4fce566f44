/* SPDX-License-Identifier: Apache-2.0 */
/* Both texts are parsed, then walked together.  The members of objects are sorted by key first, so
 * two objects with n keys cost n log n.  The depth of the walk is bounded by that of the parser,
 * once for each level of JSON in text. */
#include "replay/diff.h"

#include "base/buf.h"
#include "json/read.h"
#include "json/write.h"
#include "replay/number.h"

#include <stdlib.h>

#define PATH_ROOM (SIZE_MAX / 4) /* the keys of the texts bound it */

const char *const diff_kind_names[] = {"changed", "added", "removed", NULL};

/* One side of the walk. */
struct side {
    const struct js_doc *doc;
    const struct js_node *node; /* NULL: this side has none */
};

struct walk {
    const struct diff_ignore *ignore;
    struct arena *mem;
    struct diff *found;
    struct buf path;
    unsigned depth_in_text;
};

/* Patterns. */

bool diff_pattern_check(struct str pattern, struct error *err)
{
    if (pattern.n > DIFF_PATTERN_MAX)
        return error_set(err, ERR_BAD_INPUT, "a path to ignore has at most %d bytes; shorten it",
                         DIFF_PATTERN_MAX);
    if (!pattern.n || pattern.p[0] != '/' || memchr(pattern.p, 0, pattern.n))
        return error_set(err, ERR_BAD_INPUT,
                         "a path to ignore begins with /, such as /content/0/text/time or "
                         "/content/*/text; \"%.*s\" does not",
                         STR_ARG(str_cut(pattern, 100)));
    return true;
}

/* Whether the pattern names this path or a place above it. */
static bool covers(struct str pattern, struct str path)
{
    struct str want = str_n(pattern.p + 1, pattern.n - 1), have = path;

    (void)str_split(&have, '/'); /* what is before the first / */
    while (want.p) {
        if (!have.p)
            return false;
        struct str a = str_split(&want, '/'), b = str_split(&have, '/');
        if (!str_eq(a, b) && !str_eq(a, STR("*")))
            return false;
    }
    return true;
}

static bool is_ignored(const struct walk *w)
{
    struct str path = buf_str(&w->path);

    for (size_t i = 0; i < w->ignore->n; i++)
        if (path.n && covers(w->ignore->patterns[i], path))
            return true;
    return false;
}

/* The path. */

static size_t path_key(struct walk *w, struct str key)
{
    size_t before = w->path.n;

    buf_addc(&w->path, '/');
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~' || key.p[i] == '/')
            buf_addz(&w->path, key.p[i] == '~' ? "~0" : "~1");
        else
            buf_addc(&w->path, key.p[i]);
    }
    return before;
}

static size_t path_index(struct walk *w, size_t index)
{
    size_t before = w->path.n;

    buf_addf(&w->path, "/%zu", index);
    return before;
}

static void path_back(struct walk *w, size_t to)
{
    w->path.n = to;
    w->path.p[to] = '\0';
}

/* Findings. */

static struct str cut_text(struct walk *w, struct str text, size_t max)
{
    struct str part = str_cut(text, max);

    return part.n == text.n ? arena_dup(w->mem, text)
                            : arena_printf(w->mem, "%.*s…", STR_ARG(part));
}

/* Bytes in front of both values that are left out, so that the place where they differ is shown. */
static size_t skipped(const struct side *a, const struct side *b)
{
    size_t n = 0;

    if (!a->node || !b->node)
        return 0;
    struct str x = js_raw(a->doc, a->node), y = js_raw(b->doc, b->node);
    while (n < x.n && n < y.n && x.p[n] == y.p[n])
        n++;
    if (n <= DIFF_VALUE_MAX - DIFF_SAME_SHOWN)
        return 0;
    n -= DIFF_SAME_SHOWN;
    while (n && ((unsigned char)x.p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static struct str value_of(struct walk *w, const struct side *s, size_t from)
{
    if (!s->node)
        return STR_NONE;
    struct str raw = js_raw(s->doc, s->node);
    struct str text = cut_text(w, str_n(raw.p + from, raw.n - from), DIFF_VALUE_MAX);
    if (from)
        text = arena_printf(w->mem, "…%.*s", STR_ARG(text));
    js_flatten((char *)text.p, text.n);
    return text;
}

static void report(struct walk *w, const struct side *a, const struct side *b)
{
    struct diff *d = w->found;

    if (d->total++ >= DIFF_SHOWN)
        return;
    size_t from = skipped(a, b);
    d->list[d->n++] = (struct difference){
        .kind = !a->node   ? DIFF_ADDED
                : !b->node ? DIFF_REMOVED
                           : DIFF_CHANGED,
        .path = cut_text(w, buf_str(&w->path), DIFF_PATH_MAX),
        .before = value_of(w, a, from),
        .after = value_of(w, b, from),
    };
}

/* The walk. */

static void compare(struct walk *w, const struct side *a, const struct side *b);

struct member {
    struct str key;
    const struct js_node *value;
    uint32_t at; /* its place among the members */
};

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int order = str_cmp(x->key, y->key);

    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* What Holdfast adds, and what means the same as nothing. */
static bool is_neutral(const struct walk *w, const struct side *s, struct str key,
                       const struct js_node *value)
{
    if (w->depth_in_text)
        return false;
    if (!w->path.n)
        return str_eq(key, STR("resultType")) && js_is(s->doc, value, STR("complete"));
    return str_eq(buf_str(&w->path), STR("/_meta")) && str_starts(key, STR("holdfast/"));
}

/* Sorted by key.  Of members with the same key the last counts. */
static struct member *members_of(const struct walk *w, const struct side *s, size_t *ret_n)
{
    size_t room = 0, n = 0, kept = 0;

    for (const struct js_node *k = js_first(s->doc, s->node); k;
         k = js_next(s->doc, s->node, js_value_of(k)))
        room++;
    struct member *list = arena_alloc(w->mem, (room + 1) * sizeof(*list));
    for (const struct js_node *k = js_first(s->doc, s->node); k;
         k = js_next(s->doc, s->node, js_value_of(k))) {
        struct str key = js_text(s->doc, k, w->mem);
        if (!is_neutral(w, s, key, js_value_of(k)))
            list[n++] = (struct member){key, js_value_of(k), (uint32_t)n};
    }
    if (n)
        qsort(list, n, sizeof(*list), by_key);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || !str_eq(list[i].key, list[i + 1].key))
            list[kept++] = list[i];
    *ret_n = kept;
    return list;
}

static void compare_member(struct walk *w, const struct side *a, const struct side *b,
                           const struct member *x, const struct member *y)
{
    struct side left = {a->doc, x ? x->value : NULL}, right = {b->doc, y ? y->value : NULL};
    size_t before = path_key(w, x ? x->key : y->key);

    compare(w, &left, &right);
    path_back(w, before);
}

static void compare_objects(struct walk *w, const struct side *a, const struct side *b)
{
    size_t n, m, i = 0, j = 0;
    struct member *x = members_of(w, a, &n), *y = members_of(w, b, &m);

    while (i < n || j < m) {
        int order = i == n ? 1 : j == m ? -1 : str_cmp(x[i].key, y[j].key);
        const struct member *left = order <= 0 ? &x[i] : NULL, *right = order >= 0 ? &y[j] : NULL;
        compare_member(w, a, b, left, right);
        i += left != NULL;
        j += right != NULL;
    }
}

static void compare_arrays(struct walk *w, const struct side *a, const struct side *b)
{
    struct side x = {a->doc, js_first(a->doc, a->node)}, y = {b->doc, js_first(b->doc, b->node)};

    for (size_t i = 0; x.node || y.node; i++) {
        size_t before = path_index(w, i);
        compare(w, &x, &y);
        path_back(w, before);
        x.node = x.node ? js_next(a->doc, a->node, x.node) : NULL;
        y.node = y.node ? js_next(b->doc, b->node, y.node) : NULL;
    }
}

static bool parse_text(struct walk *w, struct str text, struct js_doc *ret)
{
    struct str trimmed = text;

    while (trimmed.n && strchr(" \t\r\n", trimmed.p[0]))
        trimmed = str_n(trimmed.p + 1, trimmed.n - 1);
    return trimmed.n && (trimmed.p[0] == '{' || trimmed.p[0] == '[') &&
           js_parse(text, &js_limits_upstream, w->mem, ret, NULL);
}

static void compare_strings(struct walk *w, const struct side *a, const struct side *b)
{
    struct str x = js_text(a->doc, a->node, w->mem), y = js_text(b->doc, b->node, w->mem);
    struct js_doc left, right;

    if (str_eq(x, y))
        return;
    if (w->depth_in_text >= DIFF_TEXT_DEPTH || !parse_text(w, x, &left) ||
        !parse_text(w, y, &right)) {
        report(w, a, b);
        return;
    }
    w->depth_in_text++;
    compare(w, &(struct side){&left, js_root(&left)}, &(struct side){&right, js_root(&right)});
    w->depth_in_text--;
}

static void compare_numbers(struct walk *w, const struct side *a, const struct side *b)
{
    struct buf x, y;

    buf_init(&x, SIZE_MAX / 4);
    buf_init(&y, SIZE_MAX / 4);
    number_canonical(js_raw(a->doc, a->node), &x);
    number_canonical(js_raw(b->doc, b->node), &y);
    if (!str_eq(buf_str(&x), buf_str(&y)))
        report(w, a, b);
    buf_release(&x);
    buf_release(&y);
}

static void compare(struct walk *w, const struct side *a, const struct side *b)
{
    if (is_ignored(w))
        return;
    if (!a->node || !b->node || a->node->type != b->node->type) {
        report(w, a, b);
        return;
    }
    switch ((enum js_type)a->node->type) {
    case JS_OBJECT:
        compare_objects(w, a, b);
        break;
    case JS_ARRAY:
        compare_arrays(w, a, b);
        break;
    case JS_STRING:
        compare_strings(w, a, b);
        break;
    case JS_NUMBER:
        compare_numbers(w, a, b);
        break;
    case JS_NULL:
    case JS_FALSE:
    case JS_TRUE:
        break;
    }
}

bool diff_json(struct str before, struct str after, const struct diff_ignore *ignore,
               struct arena *mem, struct diff *ret)
{
    struct walk w = {.ignore = ignore, .mem = mem, .found = ret};
    struct js_doc a, b;

    ret->n = ret->total = 0;
    if (!js_parse(before, &js_limits_upstream, mem, &a, NULL) ||
        !js_parse(after, &js_limits_upstream, mem, &b, NULL))
        return false;
    buf_init(&w.path, PATH_ROOM);
    compare(&w, &(struct side){&a, js_root(&a)}, &(struct side){&b, js_root(&b)});
    buf_release(&w.path);
    return true;
}
