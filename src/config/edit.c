/* SPDX-License-Identifier: Apache-2.0 */
/* Edits text by position.  The parser (json/read.h) gives the spans of keys and values; this file
 * scans the blanks and comments between them, decides which bytes are replaced, and parses the
 * result before it hands it out.
 *
 * A member is *on its own line* if only blanks precede it there.  Only such a member has comments
 * that are removed with it, and only an object whose last member is on its own line gets new lines.
 * Other objects grow on their line: {"a": 1} becomes {"a": 1, "b": 2}. */
#include "config/edit.h"

#include "json/read.h"
#include "json/write.h"

#define PATH_DEEPEST 16
#define ARRAY_LINE 60 /* an array of plain values this long stands on one line */
#define BOM "\xef\xbb\xbf"

struct editor {
    struct arena *mem;
    struct str bom, text; /* text: without the mark */
    struct js_doc doc;
    const struct js_node *root; /* NULL: the text holds no value */
    struct str unit;            /* one level of indentation */
    struct str newline, colon, comma;
    bool lines; /* the file has more than one line */
};

struct cut {
    size_t start, end;
    struct str with; /* replaces the span */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* `name` absent: the whole file. */
static bool fault_no_object(const struct editor *e, const struct js_node *v, struct str name,
                            struct error *err)
{
    unsigned line, column;

    js_position(e->text, v->start, &line, &column);
    return error_set(err, ERR_CONFIG, "line %u, column %u: %s%.*s%s must be an object {…}, not %s",
                     line, column, name.p ? "\"" : "the file", STR_ARG(str_cut(name, 64)),
                     name.p ? "\"" : "", js_type_name(v->type));
}

/* Returns the position after the comment at `at`, or `at` if no comment begins there. */
static size_t after_comment(struct str t, size_t at)
{
    const char *close;

    if (t.n - at < 2 || t.p[at] != '/')
        return at;
    if (t.p[at + 1] == '/') {
        close = memchr(t.p + at, '\n', t.n - at);
        return close ? (size_t)(close - t.p) : t.n;
    }
    close = t.p[at + 1] == '*' ? memmem(t.p + at + 2, t.n - at - 2, "*/", 2) : NULL;
    return close ? (size_t)(close - t.p) + 2 : at;
}

/* Skips blanks and comments. */
static size_t skip_space(struct str t, size_t at)
{
    for (;;) {
        size_t after;
        while (at < t.n && is_blank(t.p[at]))
            at++;
        after = at < t.n ? after_comment(t, at) : at;
        if (after == at)
            return at;
        at = after;
    }
}

/* Skips blanks and comments to the end of the line.  Returns `at` if anything else is on the line:
 * what stands between the two then belongs to the other. */
static size_t skip_line_rest(struct str t, size_t at)
{
    size_t i = at, end = at;

    while (i < t.n && t.p[i] != '\n') {
        size_t after = after_comment(t, i);
        if (after > i) {
            if (memchr(t.p + i, '\n', after - i))
                return at;
            end = i = after;
            if (end > at && t.p[end - 1] == '\r')
                end--;
        } else if (is_blank(t.p[i])) {
            i++;
        } else {
            return at;
        }
    }
    return end;
}

static size_t line_start(struct str t, size_t at)
{
    while (at > 0 && t.p[at - 1] != '\n')
        at--;
    return at;
}

static bool starts_line(struct str t, size_t at)
{
    size_t i = at;

    while (i > 0 && (t.p[i - 1] == ' ' || t.p[i - 1] == '\t'))
        i--;
    return i > 0 && t.p[i - 1] == '\n';
}

/* The blanks at the start of the line of `at`. */
static struct str indent_at(struct str t, size_t at)
{
    size_t start = line_start(t, at), i = start;

    while (i < at && (t.p[i] == ' ' || t.p[i] == '\t'))
        i++;
    return str_n(t.p + start, i - start);
}

/* The first key that is indented more than its object gives the unit. */
static void find_unit(struct editor *e)
{
    for (uint32_t i = 0; i < e->doc.n; i++) {
        const struct js_node *object = &e->doc.nodes[i], *key = js_first(&e->doc, object);
        struct str outer, inner;
        if (object->type != JS_OBJECT || !key || !starts_line(e->text, key->start))
            continue;
        outer = indent_at(e->text, object->start);
        inner = indent_at(e->text, key->start);
        if (inner.n <= outer.n || !str_starts(inner, outer))
            continue;
        e->unit = str_n(inner.p + outer.n, inner.n - outer.n);
        return;
    }
}

static void find_style(struct editor *e)
{
    const char *newline = e->text.n ? memchr(e->text.p, '\n', e->text.n) : NULL;
    const struct js_node *key = e->root ? js_first(&e->doc, e->root) : NULL;

    e->unit = STR("  ");
    e->newline = newline && newline > e->text.p && newline[-1] == '\r' ? STR("\r\n") : STR("\n");
    e->colon = STR(": ");
    e->comma = STR(", ");
    if (!key) {
        e->lines = true;
        return;
    }
    e->lines = memchr(e->text.p + e->root->start, '\n', e->root->end - e->root->start) != NULL;
    if (!is_blank(e->text.p[js_value_of(key)->start - 1]) && !e->lines) {
        e->colon = STR(":");
        e->comma = STR(",");
    }
    find_unit(e);
}

static bool open_text(struct editor *e, struct str text, struct error *err)
{
    struct js_fault f;

    *e = (struct editor){.bom = STR(""), .text = text.p ? text : STR("")};
    if (text.n > CONFIG_EDIT_MAX)
        return error_set(err, ERR_TOO_LARGE, "the file is larger than %zu MiB; it is not edited",
                         CONFIG_EDIT_MAX >> 20);
    if (str_starts(e->text, STR(BOM))) {
        e->bom = str_n(text.p, sizeof(BOM) - 1);
        e->text = str_n(text.p + e->bom.n, text.n - e->bom.n);
    }
    e->mem = arena_new(SIZE_MAX);
    if (skip_space(e->text, 0) == e->text.n)
        return true;
    if (!js_parse(e->text, &js_limits_config, e->mem, &e->doc, &f)) {
        error_set(err, ERR_CONFIG, "line %u, column %u: %s", f.line, f.column, f.reason);
        return false;
    }
    e->root = js_root(&e->doc);
    return e->root->type == JS_OBJECT || fault_no_object(e, e->root, STR_NONE, err);
}

static void close_text(struct editor *e)
{
    arena_free(e->mem);
}

/* Finds the member.  *ret_depth is the number of keys that were found, *ret_object the object in
 * which the next key is missing or *ret_key was found. */
static bool find(const struct editor *e, const struct str *path, size_t n,
                 const struct js_node **ret_object, const struct js_node **ret_key,
                 size_t *ret_depth, struct error *err)
{
    const struct js_node *object = e->root, *key = NULL;
    size_t i;

    for (i = 0; i < n; i++) {
        const struct js_node *next = js_get_key(&e->doc, object, path[i]);
        if (!next)
            break;
        key = next;
        if (i + 1 == n)
            continue;
        object = js_value_of(key);
        if (object->type != JS_OBJECT)
            return fault_no_object(e, object, path[i], err);
    }
    *ret_object = object;
    *ret_key = i == n ? key : NULL;
    *ret_depth = i;
    return true;
}

/* Writes values in the style of the file. */
struct printer {
    const struct editor *e;
    struct buf *out;
    struct str indent; /* of the line on which the value begins */
    unsigned depth;    /* levels below it */
    bool lines;        /* false: everything on one line */
};

static void print_newline(struct printer *p)
{
    if (!p->lines)
        return;
    buf_addstr(p->out, p->e->newline);
    buf_addstr(p->out, p->indent);
    for (unsigned i = 0; i < p->depth; i++)
        buf_addstr(p->out, p->e->unit);
}

static bool fits_one_line(const struct js_doc *d, const struct js_node *array)
{
    for (const struct js_node *v = js_first(d, array); v; v = js_next(d, array, v))
        if (v->type == JS_ARRAY || v->type == JS_OBJECT)
            return false;
    return array->end - array->start <= ARRAY_LINE;
}

static void print_value(struct printer *p, const struct js_doc *d, const struct js_node *v)
{
    bool is_object = v->type == JS_OBJECT, lines = p->lines;
    const struct js_node *item;

    if ((!is_object && v->type != JS_ARRAY) || !js_first(d, v)) {
        buf_addstr(p->out, is_object ? STR("{}") : v->type == JS_ARRAY ? STR("[]") : js_raw(d, v));
        return;
    }
    p->lines = lines && (is_object || !fits_one_line(d, v));
    buf_addc(p->out, is_object ? '{' : '[');
    p->depth++;
    for (item = js_first(d, v); item; item = js_next(d, v, item)) {
        if (item != js_first(d, v))
            buf_addstr(p->out, p->lines ? STR(",") : p->e->comma);
        print_newline(p);
        if (is_object) {
            buf_addstr(p->out, js_raw(d, item));
            buf_addstr(p->out, p->e->colon);
            item = js_value_of(item);
        }
        print_value(p, d, item);
    }
    p->depth--;
    print_newline(p);
    buf_addc(p->out, is_object ? '}' : ']');
    p->lines = lines;
}

/* "a": {"b": value} for the keys a and b. */
static void print_member(struct printer *p, const struct str *path, size_t n,
                         const struct js_doc *value)
{
    for (size_t i = 0; i < n; i++) {
        js_quote(p->out, path[i]);
        buf_addstr(p->out, p->e->colon);
        if (i + 1 == n)
            break;
        buf_addc(p->out, '{');
        p->depth++;
        print_newline(p);
    }
    print_value(p, value, js_root(value));
    for (size_t i = 1; i < n; i++) {
        p->depth--;
        print_newline(p);
        buf_addc(p->out, '}');
    }
}

static const struct js_node *last_key(const struct js_doc *d, const struct js_node *object)
{
    const struct js_node *last = NULL;

    for (const struct js_node *k = js_first(d, object); k; k = js_next(d, object, js_value_of(k)))
        last = k;
    return last;
}

/* The comma after a value, or 0: no comma. */
static size_t comma_after(const struct editor *e, const struct js_node *value)
{
    size_t at = skip_space(e->text, value->end);

    return at < e->text.n && e->text.p[at] == ',' ? at : 0;
}

static void apply(const struct editor *e, const struct cut *cuts, size_t n, struct buf *out)
{
    size_t at = 0;

    buf_addstr(out, e->bom);
    for (size_t i = 0; i < n; i++) {
        buf_add(out, e->text.p + at, cuts[i].start - at);
        buf_addstr(out, cuts[i].with);
        at = cuts[i].end;
    }
    buf_add(out, e->text.p + at, e->text.n - at);
}

/* What is written: keys of the path that are missing, and the value. */
struct addition {
    const struct str *path;
    size_t n;
    const struct js_doc *value;
};

/* The first member of an object that holds only blanks and comments. */
static void add_first(const struct editor *e, const struct js_node *object,
                      const struct addition *a, struct buf *out)
{
    size_t open = object->start + 1, close = object->end - 1;
    struct str inner = str_n(e->text.p + open, close - open);
    bool has_newline = inner.n && memchr(inner.p, '\n', inner.n) != NULL;
    bool blank_end = inner.n && is_blank(inner.p[inner.n - 1]);
    struct printer p = {.e = e, .indent = indent_at(e->text, object->start), .depth = 1};
    struct cut cut = {close, close, STR("")};
    struct buf member;

    buf_init_secret(&member, SIZE_MAX);
    p.out = &member;
    p.lines = has_newline || (e->lines && str_trim(inner).n == 0);
    if (has_newline)
        cut.start = cut.end = skip_line_rest(e->text, open);
    else if (p.lines)
        cut.start = open;
    else if (inner.n && !blank_end)
        buf_addc(&member, ' ');
    print_newline(&p);
    print_member(&p, a->path, a->n, a->value);
    p.depth = 0;
    if (p.lines && !has_newline)
        print_newline(&p);
    else if (!p.lines && blank_end)
        buf_addc(&member, ' ');
    cut.with = buf_str(&member);
    apply(e, &cut, 1, out);
    buf_release(&member);
}

static void add_last(const struct editor *e, const struct js_node *object, const struct addition *a,
                     struct buf *out)
{
    const struct js_node *key = last_key(&e->doc, object), *last = js_value_of(key);
    bool own_line = starts_line(e->text, key->start);
    size_t comma = comma_after(e, last), at = comma ? comma + 1 : last->end;
    struct printer p = {.e = e, .indent = indent_at(e->text, key->start), .lines = own_line};
    struct buf member;
    struct cut cuts[2] = {{at, at, comma ? STR("") : STR(",")}};

    buf_init_secret(&member, SIZE_MAX);
    p.out = &member;
    if (own_line) {
        at = skip_line_rest(e->text, at);
        print_newline(&p);
    } else {
        buf_add(&member, e->comma.p + 1, e->comma.n - 1);
    }
    print_member(&p, a->path, a->n, a->value);
    if (comma)
        buf_addc(&member, ',');
    cuts[1] = (struct cut){at, at, buf_str(&member)};
    apply(e, cuts, 2, out);
    buf_release(&member);
}

static void replace(const struct editor *e, const struct js_node *key, const struct addition *a,
                    struct buf *out)
{
    const struct js_node *value = js_value_of(key);
    struct printer p = {.e = e,
                        .indent = indent_at(e->text, key->start),
                        .lines = starts_line(e->text, key->start)};
    struct buf text;
    struct cut cut = {value->start, value->end, STR("")};

    buf_init_secret(&text, SIZE_MAX);
    p.out = &text;
    print_value(&p, a->value, js_root(a->value));
    cut.with = buf_str(&text);
    apply(e, &cut, 1, out);
    buf_release(&text);
}

/* Text without a value: comments stay, the object follows. */
static void add_document(const struct editor *e, const struct addition *a, struct buf *out)
{
    struct printer p = {.e = e, .out = out, .indent = STR(""), .lines = true, .depth = 1};

    buf_addstr(out, e->bom);
    if (skip_space(e->text, 0) > 0 && memchr(e->text.p, '/', e->text.n)) {
        buf_addstr(out, e->text);
        if (e->text.p[e->text.n - 1] != '\n')
            buf_addstr(out, e->newline);
    }
    buf_addc(out, '{');
    print_newline(&p);
    print_member(&p, a->path, a->n, a->value);
    p.depth = 0;
    print_newline(&p);
    buf_addc(out, '}');
    buf_addstr(out, e->newline);
}

/* An edit that breaks the text is our mistake; the file must not pay for it. */
static bool check_result(struct str text, const struct str *path, size_t n, bool is_set,
                         struct error *err)
{
    const struct js_node *object, *key;
    struct editor e;
    struct error inner;
    size_t depth;
    bool ok = open_text(&e, text, &inner) && find(&e, path, n, &object, &key, &depth, &inner) &&
              (key != NULL) == is_set;

    close_text(&e);
    return ok || error_set(err, ERR_INTERNAL,
                           "the edit would break the file, so it was not made; edit it by hand");
}

static bool check_path(const struct str *path, size_t n, struct error *err)
{
    return (path && n > 0 && n <= PATH_DEEPEST) ||
           error_set(err, ERR_INTERNAL, "an edit names 1 to %d keys", PATH_DEEPEST);
}

static bool hand_out(struct buf *made, const struct str *path, size_t n, bool is_set,
                     struct buf *out, struct error *err)
{
    if (!check_result(buf_str(made), path, n, is_set, err))
        return false;
    return buf_try_add(out, made->p, made->n) ||
           error_set(err, ERR_TOO_LARGE, "the edited file would be too large");
}

static bool set(struct editor *e, const struct str *path, size_t n, const struct js_doc *value,
                struct buf *out, struct error *err)
{
    struct addition a = {path, n, value};
    const struct js_node *object, *key;
    size_t depth;

    find_style(e);
    if (!e->root) {
        add_document(e, &a, out);
        return true;
    }
    if (!find(e, path, n, &object, &key, &depth, err))
        return false;
    a.path += depth;
    a.n -= depth;
    if (key)
        replace(e, key, &a, out);
    else if (js_first(&e->doc, object))
        add_last(e, object, &a, out);
    else
        add_first(e, object, &a, out);
    return true;
}

bool config_edit_set(struct str text, const struct str *path, size_t n, struct str value_json,
                     struct buf *out, struct error *err)
{
    struct js_doc value;
    struct js_fault f;
    struct editor e = {0};
    struct buf made;
    bool ok;

    if (!check_path(path, n, err))
        return false;
    buf_init_secret(&made, SIZE_MAX);
    ok = open_text(&e, text, err);
    if (ok && !js_parse(value_json, &js_limits_request, e.mem, &value, &f))
        ok = error_set(err, ERR_INTERNAL, "the new value is not JSON: %s", f.reason);
    ok = ok && set(&e, path, n, &value, &made, err) && hand_out(&made, path, n, true, out, err);
    buf_release(&made);
    close_text(&e);
    return ok;
}

/* The start of the comments that stand on the lines directly above a member on its own line; its
 * own start without comments.  `from` is the end of the token before. */
static size_t comments_above(struct str t, size_t from, size_t key)
{
    size_t start = key, at = from;
    bool in_block = false; /* [start, at) are lines of comments without a gap */

    while (at < key) {
        size_t after = after_comment(t, at);
        if (after > at) {
            if (!in_block && starts_line(t, at))
                start = at;
            in_block = in_block || starts_line(t, at);
            at = after;
        } else {
            size_t next = at, newlines = 0;
            while (next < key && is_blank(t.p[next]))
                newlines += t.p[next++] == '\n';
            if (newlines > 1)
                in_block = false;
            at = next;
        }
    }
    return in_block ? start : key;
}

static size_t skip_indent(struct str t, size_t at)
{
    while (at < t.n && (t.p[at] == ' ' || t.p[at] == '\t' || t.p[at] == '\r'))
        at++;
    return at;
}

/* Returns the end of the line before `at`; [at, end) is removed.  If an empty line or the end of
 * the object follows, empty lines before `at` go too. */
static size_t end_of_line_before(struct str t, size_t from, size_t at, size_t end)
{
    size_t start = line_start(t, at) - 1, i, next = skip_indent(t, end);

    start -= start > from && t.p[start - 1] == '\r';
    if (next >= t.n || t.p[next] != '\n')
        return start;
    next = skip_indent(t, next + 1);
    if (next >= t.n || (t.p[next] != '\n' && t.p[next] != '}'))
        return start;
    for (i = start; i > from && is_blank(t.p[i - 1]);)
        i--;
    while (i < start && (t.p[i] == ' ' || t.p[i] == '\t'))
        i++;
    return i;
}

/* Whether a comment of the form // ends at `end`. */
static bool ends_in_line_comment(struct str t, size_t from, size_t end)
{
    size_t at = from;
    bool ends = false;

    while (at < end) {
        size_t after = after_comment(t, at);
        ends = after > at && t.p[at + 1] == '/' && after >= end;
        at = after > at ? after : at + 1;
    }
    return ends;
}

/* One member and its neighbours. */
struct place {
    const struct js_node *object, *key;
    size_t from;   /* end of the token before: the brace or the comma */
    size_t before; /* the comma before; 0: the member is the first */
    size_t comma;  /* the comma after; 0: none */
    bool is_last;
};

static void locate(const struct editor *e, struct place *p)
{
    const struct js_node *k, *prev = NULL;

    for (k = js_first(&e->doc, p->object); k != p->key;
         k = js_next(&e->doc, p->object, js_value_of(k)))
        prev = js_value_of(k);
    p->before = prev ? comma_after(e, prev) : 0;
    p->from = prev ? p->before + 1 : p->object->start + 1;
    p->comma = comma_after(e, js_value_of(p->key));
    p->is_last = !js_next(&e->doc, p->object, js_value_of(p->key));
}

/* The span of a member that is on its own line. */
static struct cut cut_lines(const struct editor *e, const struct place *p)
{
    struct str t = e->text;
    size_t end = p->comma ? p->comma + 1 : js_value_of(p->key)->end;
    size_t rest = skip_line_rest(t, end), next = skip_indent(t, rest), start;

    if (next < t.n && t.p[next] != '\n' && !p->is_last) /* another member is on this line */
        return (struct cut){p->key->start, skip_space(t, end), STR("")};
    start = comments_above(t, p->from, p->key->start);
    start = end_of_line_before(t, p->from, start, rest);
    if (next < t.n && t.p[next] != '\n' && ends_in_line_comment(t, p->from, start))
        start = line_start(t, p->key->start);
    return (struct cut){start, rest, STR("")};
}

/* The span of a member among others on one line. */
static struct cut cut_inline(const struct editor *e, const struct place *p)
{
    struct str t = e->text;
    size_t end = p->comma ? p->comma + 1 : js_value_of(p->key)->end, start = p->key->start;

    if (!p->before && !p->is_last) {
        while (end < t.n && (t.p[end] == ' ' || t.p[end] == '\t'))
            end++;
        return (struct cut){start, end, STR("")};
    }
    while (start > p->from && (t.p[start - 1] == ' ' || t.p[start - 1] == '\t'))
        start--;
    return (struct cut){start, end, STR("")};
}

static bool is_all_blank(struct str t, size_t start, size_t end)
{
    while (start < end && is_blank(t.p[start]))
        start++;
    return start >= end;
}

static void remove_member(const struct editor *e, struct place *p, struct buf *out)
{
    struct cut cuts[2] = {{0}};
    struct str t = e->text;
    size_t open = p->object->start + 1, close = p->object->end - 1, n = 0;
    bool own_line = starts_line(t, p->key->start);

    locate(e, p);
    if (p->is_last && !p->comma && p->before)
        cuts[n++] = (struct cut){p->before, p->before + 1, STR("")};
    cuts[n] = own_line ? cut_lines(e, p) : cut_inline(e, p);
    if (own_line && p->is_last && !p->before && is_all_blank(t, open, cuts[n].start) &&
        is_all_blank(t, cuts[n].end, close))
        cuts[n] = (struct cut){open, close, STR("")};
    apply(e, cuts, n + 1, out);
}

bool config_edit_remove(struct str text, const struct str *path, size_t n, struct buf *out,
                        bool *ret_found, struct error *err)
{
    const struct js_node *key = NULL;
    struct place p = {0};
    struct editor e = {0};
    struct buf made;
    size_t depth;
    bool ok;

    if (!check_path(path, n, err))
        return false;
    buf_init_secret(&made, SIZE_MAX);
    ok = open_text(&e, text, err);
    if (ok && e.root)
        ok = find(&e, path, n, &p.object, &key, &depth, err);
    p.key = key;
    if (ok && key)
        remove_member(&e, &p, &made);
    else if (ok && text.n)
        buf_addstr(&made, text);
    ok = ok && hand_out(&made, path, n, false, out, err);
    if (ok)
        *ret_found = key != NULL;
    buf_release(&made);
    close_text(&e);
    return ok;
}
