/* SPDX-License-Identifier: Apache-2.0 */
/* Writes definitions in canonical form.  The limits of the JSON reader bound depth and number of
 * keys, and so the recursion here. */
#include "upstream/pins_canon.h"

#include "base/utf8.h"
#include "json/read.h"
#include "json/write.h"
#include "upstream/pins_lookalike.h"

#include <stdlib.h>

#define BREAK_MAX 160 /* bytes of a line of a broken string */

static const char *const members[] = {"annotations", "description",  "inputSchema",
                                      "name",        "outputSchema", "title"};

struct writing {
    const struct js_doc *doc;
    struct arena *mem;
    struct buf *out;
    bool pretty;
    unsigned depth;
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
    return one->value < other->value ? -1 : one->value > other->value; /* in their original order */
}

static void line(const struct writing *w)
{
    if (!w->pretty)
        return;
    buf_addc(w->out, '\n');
    for (unsigned i = 0; i < w->depth; i++)
        buf_addz(w->out, "  ");
}

/* For people, invisible characters are written as JSON escapes. */
static void quote(const struct writing *w, struct buf *out, struct str text)
{
    struct buf quoted;
    uint32_t code = 0;
    size_t n;

    if (!w->pretty) {
        js_quote(out, text);
        return;
    }
    buf_init(&quoted, SIZE_MAX / 4);
    js_quote(&quoted, text);
    for (const char *p = quoted.p, *end = p + quoted.n; p < end; p += n) {
        n = utf8_decode(p, end, &code);
        if (!lookalike_is_unseen(code))
            buf_add(out, p, n);
        else if (code < 0x10000)
            buf_addf(out, "\\u%04x", code);
        else
            buf_addf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    }
    buf_release(&quoted);
}

/* The offset where the rest of a quoted string breaks to the next line; 0: it fits. */
static size_t break_at(struct str rest)
{
    for (size_t i = 1; i < rest.n && i < BREAK_MAX; i++) {
        bool ends_line =
            rest.p[i - 1] == '\\' && rest.p[i] == 'n' && (i < 2 || rest.p[i - 2] != '\\');
        bool ends_sentence = rest.p[i] == ' ' && strchr(".!?", rest.p[i - 1]);
        if ((ends_line || ends_sentence) && i + 2 < rest.n)
            return i + 1;
    }
    if (rest.n <= BREAK_MAX)
        return 0;
    size_t at = BREAK_MAX;
    while (at > BREAK_MAX - 8 &&
           (((unsigned char)rest.p[at] & 0xc0) == 0x80 || rest.p[at - 1] == '\\'))
        at--;
    return at;
}

static void write_string(struct writing *w, struct str text)
{
    struct buf quoted;

    if (!w->pretty) {
        quote(w, w->out, text);
        return;
    }
    buf_init(&quoted, SIZE_MAX / 4);
    quote(w, &quoted, text);
    struct str rest = buf_str(&quoted);
    w->depth += 2;
    for (size_t at = break_at(rest); at; at = break_at(rest)) {
        buf_addstr(w->out, str_n(rest.p, at));
        line(w);
        rest = str_n(rest.p + at, rest.n - at);
    }
    w->depth -= 2;
    buf_addstr(w->out, rest);
    buf_release(&quoted);
}

static void write_value(struct writing *w, const struct js_node *v);

static void write_members(struct writing *w, const struct member *list, size_t n)
{
    buf_addc(w->out, '{');
    w->depth++;
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_addc(w->out, ',');
        line(w);
        quote(w, w->out, list[i].key);
        buf_addz(w->out, w->pretty ? ": " : ":");
        write_value(w, list[i].value);
    }
    w->depth--;
    if (n)
        line(w);
    buf_addc(w->out, '}');
}

/* `wanted` NULL: writes every member. */
static void write_object(struct writing *w, const struct js_node *object,
                         bool (*wanted)(struct str key))
{
    const struct js_doc *doc = w->doc;
    size_t n = 0;

    for (const struct js_node *k = js_first(doc, object); k; k = js_next(doc, object, k + 1))
        n++;
    struct member *list = arena_alloc(w->mem, (n + 1) * sizeof(*list));
    n = 0;
    for (const struct js_node *k = js_first(doc, object); k; k = js_next(doc, object, k + 1)) {
        struct str key = js_text(doc, k, w->mem);
        if (!wanted || wanted(key))
            list[n++] = (struct member){key, js_value_of(k)};
    }
    qsort(list, n, sizeof(*list), by_key);
    write_members(w, list, n);
}

static void write_array(struct writing *w, const struct js_node *array)
{
    bool any = false;

    buf_addc(w->out, '[');
    w->depth++;
    for (const struct js_node *v = js_first(w->doc, array); v; v = js_next(w->doc, array, v)) {
        if (any)
            buf_addc(w->out, ',');
        line(w);
        write_value(w, v);
        any = true;
    }
    w->depth--;
    if (any)
        line(w);
    buf_addc(w->out, ']');
}

static void write_value(struct writing *w, const struct js_node *v)
{
    if (v->type == JS_OBJECT)
        write_object(w, v, NULL);
    else if (v->type == JS_ARRAY)
        write_array(w, v);
    else if (v->type == JS_STRING)
        write_string(w, js_text(w->doc, v, w->mem));
    else
        buf_addstr(w->out, js_raw(w->doc, v));
}

/* Nodes, keys and unescaped texts are all in proportion to the text. */
static struct arena *memory_for(struct str text)
{
    return arena_new(64u * 1024 + 64 * text.n);
}

static bool is_watched(struct str key)
{
    for (size_t i = 0; i < countof(members); i++)
        if (str_eq(key, str_of(members[i])))
            return true;
    return false;
}

bool tool_canon(struct str definition, struct buf *out)
{
    struct arena *mem = memory_for(definition);
    struct js_doc doc;
    bool ok = js_parse(definition, &js_limits_upstream, mem, &doc, NULL) &&
              js_type_is(js_root(&doc), JS_OBJECT);

    if (ok) {
        struct writing w = {.doc = &doc, .mem = mem, .out = out};
        write_object(&w, js_root(&doc), is_watched);
    }
    arena_free(mem);
    return ok;
}

bool tool_canon_pretty(struct str canon, struct buf *out)
{
    struct arena *mem = memory_for(canon);
    struct js_doc doc;
    bool ok = js_parse(canon, &js_limits_upstream, mem, &doc, NULL);

    if (ok) {
        struct writing w = {.doc = &doc, .mem = mem, .out = out, .pretty = true};
        write_value(&w, js_root(&doc));
        buf_addc(out, '\n');
    }
    arena_free(mem);
    return ok;
}
