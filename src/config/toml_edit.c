/* SPDX-License-Identifier: Apache-2.0 */
/* Works on lines and knows nothing of strings over several lines, so every result is compared with
 * the parsed original before it is handed out. */
#include "config/toml_edit.h"

#include "config/edit.h"
#include "config/toml.h"
#include "json/read.h"
#include "json/write.h"

/* Headers */

/* Takes one key of a dotted header: bare, or in quotes. */
static bool take_key(struct str *rest, struct str *ret)
{
    struct str s = str_trim(*rest);
    char quote = s.n && (s.p[0] == '"' || s.p[0] == '\'') ? s.p[0] : 0;
    size_t n = 0;

    if (quote) {
        s = str_n(s.p + 1, s.n - 1);
        while (n < s.n && s.p[n] != quote)
            n += s.p[n] == '\\' && quote == '"' ? 2 : 1;
        if (n >= s.n)
            return false;
    } else {
        while (n < s.n && !memchr(".] \t", s.p[n], 4))
            n++;
    }
    *ret = str_n(s.p, n);
    n += quote != 0;
    *rest = str_trim(str_n(s.p + n, s.n - n));
    return true;
}

/* The key as a string in double quotes has it. */
static bool is_key(struct str key, struct str name)
{
    struct buf quoted;
    bool is;

    if (str_eq(key, name))
        return true;
    buf_init(&quoted, SIZE_MAX);
    js_quote(&quoted, name);
    is = str_eq(str_n(quoted.p + 1, quoted.n - 2), key);
    buf_release(&quoted);
    return is;
}

/* Whether the line is the header of the table, or of one below it. */
static bool is_header_of(struct str line, struct str table, struct str name)
{
    size_t n = str_starts(line, STR("[[")) ? 2 : 1;
    struct str rest = str_n(line.p + n, line.n - n), key;

    if (!take_key(&rest, &key) || !is_key(key, table) || !rest.n || rest.p[0] != '.')
        return false;
    rest = str_n(rest.p + 1, rest.n - 1);
    return take_key(&rest, &key) && is_key(key, name) && rest.n &&
           (rest.p[0] == ']' || rest.p[0] == '.');
}

/* Lines */

static struct str without_cr(struct str line)
{
    line = str_trim(line);
    return str_trim(str_ends(line, STR("\r")) ? str_n(line.p, line.n - 1) : line);
}

static bool ends_with_blank_line(const struct buf *out)
{
    struct str text = buf_str(out);

    return !text.n || str_ends(text, STR("\n\n")) || str_ends(text, STR("\n\r\n"));
}

/* Lines after the last key of the table.  A blank line on both sides of the table becomes one. */
static void keep(struct buf *out, struct str lines)
{
    struct str rest = lines;

    while (rest.n && ends_with_blank_line(out)) {
        struct str line = str_split(&rest, '\n');
        if (without_cr(line).n)
            break;
        lines = rest.p ? rest : STR("");
    }
    buf_addstr(out, lines);
}

/* The blank line that stood between the table and the text before it. */
static void drop_last_blank_line(struct buf *out)
{
    if (out->n && ends_with_blank_line(out))
        out->n -= str_ends(buf_str(out), STR("\r\n")) ? 2 : 1;
}

static void remove_lines(struct str text, struct str table, struct str name, struct buf *out)
{
    struct str rest = text;
    const char *after = text.p; /* the byte after the last line that was removed */
    bool inside = false;

    while (rest.p && rest.n) {
        const char *start = rest.p;
        struct str line = str_split(&rest, '\n'), words = without_cr(line);
        const char *end = rest.p ? rest.p : text.p + text.n;
        bool is_header = words.n && words.p[0] == '[', was_inside = inside;
        if (is_header)
            inside = is_header_of(words, table, name);
        if (was_inside && !inside)
            keep(out, str_n(after, (size_t)(start - after)));
        if (!inside)
            buf_add(out, start, (size_t)(end - start));
        else if (words.n && words.p[0] != '#')
            after = end;
    }
    if (!inside)
        return;
    if (after == text.p + text.n)
        drop_last_blank_line(out);
    else
        keep(out, str_n(after, (size_t)(text.p + text.n - after)));
}

/* The check */

static size_t count_of(const struct js_doc *d, const struct js_node *object)
{
    size_t n = 0;

    for (const struct js_node *k = js_first(d, object); k; k = js_next(d, object, js_value_of(k)))
        n++;
    return n;
}

static bool is_same(const struct js_doc *a, const struct js_node *x, const struct js_doc *b,
                    const struct js_node *y, struct arena *mem)
{
    const struct js_node *k, *l;

    if (!y || x->type != y->type)
        return false;
    if (x->type == JS_OBJECT) {
        for (k = js_first(a, x); k; k = js_next(a, x, js_value_of(k)))
            if (!is_same(a, js_value_of(k), b, js_get(b, y, js_text(a, k, mem)), mem))
                return false;
        return count_of(a, x) == count_of(b, y);
    }
    if (x->type != JS_ARRAY)
        return str_eq(js_raw(a, x), js_raw(b, y));
    for (k = js_first(a, x), l = js_first(b, y); k && l; k = js_next(a, x, k), l = js_next(b, y, l))
        if (!is_same(a, k, b, l, mem))
            return false;
    return !k && !l;
}

static bool parse(struct str text, struct arena *mem, struct str *ret_json, struct js_doc *ret,
                  struct error *err)
{
    struct buf json;
    bool ok;

    buf_init_secret(&json, SIZE_MAX);
    ok = toml_to_json(text, mem, &json, err);
    if (ok)
        *ret_json = arena_dup(mem, buf_str(&json));
    buf_release(&json);
    return ok && (js_parse(*ret_json, &js_limits_upstream, mem, ret, NULL) ||
                  error_set(err, ERR_CONFIG, "the file has too many keys"));
}

static bool remove_member(struct str *json, const struct str *path, size_t n, struct arena *mem,
                          struct js_doc *ret, struct error *err)
{
    struct buf out;
    bool found = false, ok;

    buf_init_secret(&out, SIZE_MAX);
    ok = config_edit_remove(*json, path, n, &out, &found, err);
    if (ok)
        *json = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return ok && (js_parse(*json, &js_limits_upstream, mem, ret, NULL) ||
                  error_set(err, ERR_INTERNAL, "the file cannot be read"));
}

/* Whether `after` is `json` without the table.  The outer table may be gone if nothing is left in
 * it. */
static bool is_all_else(struct str json, const struct js_doc *after, struct str table,
                        struct str name, struct arena *mem)
{
    const struct str path[] = {table, name};
    struct js_doc expected;
    struct error ignored;

    if (!remove_member(&json, path, 2, mem, &expected, &ignored))
        return false;
    if (!js_first(&expected, js_get(&expected, js_root(&expected), table)) &&
        !js_get(after, js_root(after), table) &&
        !remove_member(&json, path, 1, mem, &expected, &ignored))
        return false;
    return is_same(&expected, js_root(&expected), after, js_root(after), mem);
}

bool toml_edit_remove(struct str text, struct str table, struct str name, struct arena *mem,
                      struct buf *out, bool *ret_found, struct error *err)
{
    struct js_doc before, after;
    struct str json = STR_NONE, json_after;
    struct error ignored;
    struct buf lines;
    bool ok = parse(text, mem, &json, &before, err);

    if (!ok)
        return false;
    *ret_found = js_get(&before, js_get(&before, js_root(&before), table), name) != NULL;
    if (!*ret_found) {
        buf_addstr(out, text);
        return true;
    }
    buf_init_secret(&lines, SIZE_MAX);
    remove_lines(text, table, name, &lines);
    ok = parse(arena_dup(mem, buf_str(&lines)), mem, &json_after, &after, &ignored) &&
         is_all_else(json, &after, table, name, mem);
    if (ok)
        buf_addstr(out, buf_str(&lines));
    buf_release(&lines);
    return ok || error_set(err, ERR_CONFLICT,
                           "the table [%.*s.%.*s] is written in a form that cannot be taken out "
                           "line by line; remove it by hand",
                           STR_ARG(table), STR_ARG(name));
}
