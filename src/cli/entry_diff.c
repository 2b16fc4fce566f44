/* SPDX-License-Identifier: Apache-2.0 */
/* Longest common subsequence of lines, by a table.  Two entries with more lines than the table has
 * rows are shown one after the other. */
#include "cli/entry_diff.h"

#include "base/log.h"
#include "json/read.h"

#define LINES_MAX 256
#define LINE_MAX 400 /* bytes of one line */

struct lines {
    struct str *list;
    size_t n;
};

/* Text. */

static void add_break(struct buf *out, size_t depth)
{
    buf_addc(out, '\n');
    for (size_t i = 0; i < depth; i++)
        buf_addz(out, "  ");
}

/* Arrays of plain values stay on one line. */
static bool is_flat(const struct js_doc *d, const struct js_node *v)
{
    if (v->type != JS_ARRAY)
        return !js_first(d, v);
    for (const struct js_node *k = js_first(d, v); k; k = js_next(d, v, k))
        if (k->type == JS_OBJECT || k->type == JS_ARRAY)
            return false;
    return true;
}

static void add_value(const struct js_doc *d, const struct js_node *v, size_t depth,
                      struct buf *out)
{
    bool is_object = v->type == JS_OBJECT, is_list = v->type == JS_ARRAY, is_first = true;

    if (!is_object && !is_list) {
        buf_addstr(out, js_raw(d, v));
        return;
    }
    bool flat = is_flat(d, v);
    buf_addc(out, is_object ? '{' : '[');
    for (const struct js_node *k = js_first(d, v); k; k = js_next(d, v, k), is_first = false) {
        if (!is_first)
            buf_addz(out, flat ? ", " : ",");
        if (!flat)
            add_break(out, depth + 1);
        if (is_object) {
            buf_addstr(out, js_raw(d, k));
            buf_addz(out, ": ");
            k = js_value_of(k);
        }
        add_value(d, k, depth + 1, out);
    }
    if (!flat)
        add_break(out, depth);
    buf_addc(out, is_object ? '}' : ']');
}

static struct lines lines_of(struct str json, struct arena *mem)
{
    struct lines lines = {0};
    struct js_doc doc;
    struct buf out;

    if (!json.p)
        return lines;
    buf_init_secret(&out, SIZE_MAX);
    if (js_parse(json, &js_limits_config, mem, &doc, NULL))
        add_value(&doc, js_root(&doc), 0, &out);
    else
        buf_addstr(&out, json);
    struct str text = arena_dup(mem, buf_str(&out)), rest = text;
    buf_release(&out);
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    lines.list = arena_zalloc(mem, n * sizeof(*lines.list));
    while (rest.p)
        lines.list[lines.n++] = str_split(&rest, '\n');
    return lines;
}

/* Difference. */

static void put(struct buf *out, const char *mark, struct str line)
{
    buf_addz(out, mark);
    log_escape(out, str_cut(line, LINE_MAX), LINE_MAX);
    buf_addz(out, line.n > LINE_MAX ? " …\n" : "\n");
}

/* A comma behind a member depends on the next member only. */
static bool is_same(struct str a, struct str b)
{
    a.n -= str_ends(a, STR(","));
    b.n -= str_ends(b, STR(","));
    return str_eq(a, b);
}

static void put_common(struct lines a, struct lines b, struct arena *mem, struct buf *out)
{
    size_t width = b.n + 1, i = 0, k = 0;
    unsigned short *left = arena_zalloc(mem, (a.n + 1) * width * sizeof(*left));

    /* left[i, k]: length of the longest common subsequence of the lines from i and from k on */
    for (size_t y = a.n; y-- > 0;)
        for (size_t x = b.n; x-- > 0;) {
            unsigned short down = left[(y + 1) * width + x], right = left[y * width + x + 1];
            left[y * width + x] = is_same(a.list[y], b.list[x])
                                      ? (unsigned short)(left[(y + 1) * width + x + 1] + 1)
                                      : (down > right ? down : right);
        }
    while (i < a.n || k < b.n) {
        if (i < a.n && k < b.n && is_same(a.list[i], b.list[k])) {
            put(out, "  ", b.list[k]);
            i++, k++;
        } else if (k == b.n || (i < a.n && left[(i + 1) * width + k] >= left[i * width + k + 1])) {
            put(out, "- ", a.list[i++]);
        } else {
            put(out, "+ ", b.list[k++]);
        }
    }
}

void entry_diff(struct str ours, struct str theirs, struct arena *mem, struct buf *out)
{
    struct lines a = lines_of(ours, mem), b = lines_of(theirs, mem);

    if (a.n <= LINES_MAX && b.n <= LINES_MAX) {
        put_common(a, b, mem, out);
        return;
    }
    for (size_t i = 0; i < a.n; i++)
        put(out, "- ", a.list[i]);
    for (size_t i = 0; i < b.n; i++)
        put(out, "+ ", b.list[i]);
}
