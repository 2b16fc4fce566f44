/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of a tool whose own is not known: its parameters are those of the recorded calls,
 * each with the type that it always had. */
#include "replay/mock_server.h"

#include "json/write.h"

#define PARAMETERS_MAX 200

struct parameter {
    struct str name;
    const char *type; /* NULL: it had several */
};

static const char *const types[] = {
    [JS_NULL] = NULL,       [JS_FALSE] = "boolean", [JS_TRUE] = "boolean", [JS_NUMBER] = "number",
    [JS_STRING] = "string", [JS_ARRAY] = "array",   [JS_OBJECT] = "object"};

static void note(struct parameter *list, size_t *n, struct str name, const char *type,
                 struct arena *mem)
{
    size_t i = 0;

    while (i < *n && !str_eq(list[i].name, name))
        i++;
    if (i < *n) {
        if (list[i].type != type)
            list[i].type = NULL;
    } else if (*n < PARAMETERS_MAX) {
        list[(*n)++] = (struct parameter){arena_dup(mem, name), type};
    }
}

static size_t collect(const struct mock *m, const struct mock_tool *t, struct parameter *list,
                      struct arena *mem)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct mock_call *c = &m->calls[t->calls[i]];
        struct arena *scratch = arena_new(SIZE_MAX / 4);
        struct js_doc d;
        if (c->arguments.p && js_parse(c->arguments, &js_limits_upstream, scratch, &d, NULL) &&
            js_type_is(js_root(&d), JS_OBJECT))
            for (const struct js_node *k = js_first(&d, js_root(&d)); k;
                 k = js_next(&d, js_root(&d), js_value_of(k)))
                note(list, &n, js_text(&d, k, scratch), types[js_value_of(k)->type], mem);
        arena_free(scratch);
    }
    return n;
}

void mock_write_definition(const struct mock *m, const struct mock_tool *t, struct buf *out)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct parameter *list = arena_zalloc(mem, PARAMETERS_MAX * sizeof(*list));
    size_t n = collect(m, t, list, mem);
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_kv_string(&w, "name", t->name);
    js_kv_string(&w, "description",
                 STR("A recorded tool. Its definition is not on record; the parameters are those "
                     "of the recorded calls."));
    js_key(&w, STR("inputSchema"));
    js_object(&w);
    js_kv_string(&w, "type", STR("object"));
    js_key(&w, STR("properties"));
    js_object(&w);
    for (size_t i = 0; i < n; i++) {
        js_key(&w, list[i].name);
        js_object(&w);
        js_kv_string(&w, "type", str_of(list[i].type));
        js_object_end(&w);
    }
    js_object_end(&w);
    js_object_end(&w);
    js_object_end(&w);
    arena_free(mem);
}

void mock_define(struct mock *m)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 4);
    for (size_t i = 0; i < m->n_tools; i++) {
        if (m->tools[i].definition.p)
            continue;
        buf_reset(&text);
        mock_write_definition(m, &m->tools[i], &text);
        m->tools[i].definition = arena_dup(m->mem, buf_str(&text));
    }
    buf_release(&text);
}
