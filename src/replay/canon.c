/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the JSON reader bound the depth, and so the recursion here. */
#include "replay/canon.h"

#include "json/write.h"
#include "replay/number.h"

#include <stdlib.h>

struct writing {
    const struct js_doc *doc;
    const struct js_node *without;
    struct arena *mem;
    struct buf *out;
};

struct member {
    struct str key;
    const struct js_node *value;
};

static int by_key(const void *a, const void *b)
{
    const struct member *one = a, *other = b;
    int order = str_cmp(one->key, other->key);

    if (order)
        return order;
    return one->value < other->value ? -1 : one->value > other->value;
}

static void write_value(struct writing *w, const struct js_node *v);

static size_t count_members(const struct js_doc *d, const struct js_node *object)
{
    size_t n = 0;

    for (const struct js_node *k = js_first(d, object); k; k = js_next(d, object, js_value_of(k)))
        n++;
    return n;
}

static void write_object(struct writing *w, const struct js_node *object)
{
    const struct js_doc *d = w->doc;
    size_t n = count_members(d, object), i = 0;
    struct member *list = arena_zalloc(w->mem, (n + 1) * sizeof(*list));

    for (const struct js_node *k = js_first(d, object); k; k = js_next(d, object, js_value_of(k)))
        if (k != w->without)
            list[i++] = (struct member){js_text(d, k, w->mem), js_value_of(k)};
    n = i;
    qsort(list, n, sizeof(*list), by_key);
    buf_addc(w->out, '{');
    for (i = 0; i < n; i++) {
        if (i)
            buf_addc(w->out, ',');
        js_quote(w->out, list[i].key);
        buf_addc(w->out, ':');
        write_value(w, list[i].value);
    }
    buf_addc(w->out, '}');
}

static void write_array(struct writing *w, const struct js_node *array)
{
    const struct js_node *first = js_first(w->doc, array);

    buf_addc(w->out, '[');
    for (const struct js_node *v = first; v; v = js_next(w->doc, array, v)) {
        if (v != first)
            buf_addc(w->out, ',');
        write_value(w, v);
    }
    buf_addc(w->out, ']');
}

static void write_value(struct writing *w, const struct js_node *v)
{
    switch ((enum js_type)v->type) {
    case JS_OBJECT:
        write_object(w, v);
        break;
    case JS_ARRAY:
        write_array(w, v);
        break;
    case JS_STRING:
        js_quote(w->out, js_text(w->doc, v, w->mem));
        break;
    case JS_NUMBER:
        number_canonical(js_raw(w->doc, v), w->out);
        break;
    default: /* null, false, true */
        buf_addstr(w->out, js_raw(w->doc, v));
    }
}

void canon_write(const struct js_doc *doc, const struct js_node *value,
                 const struct js_node *without, struct buf *out)
{
    struct writing w = {.doc = doc, .without = without, .mem = arena_new(SIZE_MAX / 4), .out = out};

    write_value(&w, value);
    arena_free(w.mem);
}
