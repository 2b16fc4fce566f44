/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the text of a schema to subs and rules, once per schema.  A place that is not a schema,
 * or an invalid keyword value, becomes a gap: it is listed, and a check that reaches it answers
 * unsure.  Only size limits fail. */
#include "schema/schema_impl.h"

#include <stdio.h>

#define TEXT_OF(x) #x
#define NUMBER(x) TEXT_OF(x)

/* Appends "/key" with the escapes of RFC 6901. */
static void add_segment(struct buf *out, struct str key)
{
    buf_addc(out, '/');
    for (size_t i = 0; i < key.n && out->n + 4 < out->max; i++) {
        if (key.p[i] == '~' || key.p[i] == '/')
            buf_addz(out, key.p[i] == '~' ? "~0" : "~1");
        else
            buf_addc(out, key.p[i]);
    }
}

/* Adds the path from the root to `at`, found by node index alone. */
static void add_pointer(const struct js_doc *d, const struct js_node *root,
                        const struct js_node *at, struct buf *out)
{
    const struct js_node *v = root, *child;
    char index[16];
    uint32_t i;

    while (v != at && v->type >= JS_ARRAY && out->n + 32 < out->max) {
        bool object = v->type == JS_OBJECT;
        const struct js_node *key = NULL, *value = NULL;

        for (child = js_first(d, v), i = 0; child; child = js_next(d, v, value), i++) {
            key = child;
            value = object ? js_value_of(child) : child;
            if (at >= key && at < &d->nodes[value->next])
                break;
        }
        if (!child)
            break;
        snprintf(index, sizeof(index), "%u", (unsigned)i);
        add_segment(out, object ? str_n(d->text.p + key->start + 1, key->end - key->start - 2u)
                                : str_of(index));
        v = value;
    }
}

const struct schema_gap *compile_gap(struct compile *c, const struct js_node *at,
                                     const char *keyword, const char *reason)
{
    struct schema_gap *gap;
    struct buf path;

    if (c->s->total_gaps++ >= SCHEMA_GAPS_MAX) {
        gap = arena_new_of(c->mem, struct schema_gap);
        *gap = (struct schema_gap){STR(""), keyword, reason};
        return gap;
    }
    gap = &c->s->gaps[c->s->n_gaps++];
    buf_init(&path, 1024);
    add_pointer(c->doc, c->root, at, &path);
    *gap = (struct schema_gap){arena_dup(c->mem, buf_str(&path)), keyword, reason};
    buf_release(&path);
    return gap;
}

static struct sub *gap_sub(struct compile *c, struct sub *s, const char *keyword,
                           const char *reason)
{
    s->kind = SUB_GAP;
    s->gap = compile_gap(c, s->node, keyword, reason);
    return s;
}

struct sub *compile_sub(struct compile *c, const struct js_node *node, const struct resource *in)
{
    struct sub **slot = &c->subs[node - c->root], *s = *slot;
    const char *reason = NULL;

    if (s)
        return s;
    *slot = s = arena_new_of(c->mem, struct sub);
    *s = (struct sub){.node = node, .resource = in};
    if (c->failed || c->n_subs++ >= SCHEMA_SUBSCHEMAS_MAX) {
        if (!c->failed)
            error_set(c->err, ERR_TOO_LARGE,
                      "the schema holds more than " NUMBER(SCHEMA_SUBSCHEMAS_MAX) " schemas; make "
                                                                                  "it smaller");
        c->failed = true;
        return s;
    }
    if (node->type == JS_TRUE || node->type == JS_FALSE) {
        s->kind = node->type == JS_TRUE ? SUB_TRUE : SUB_FALSE;
        return s;
    }
    if (node->type != JS_OBJECT)
        return gap_sub(c, s, "schema", "a schema is an object, true or false");
    s->resource = resource_of(c, node, in, &reason);
    if (!s->resource) {
        s->resource = in;
        return gap_sub(c, s, "$schema", reason);
    }
    resource_add_anchors(c, s);
    compile_rules(c, s);
    return s;
}

static void release_maps(void *arg)
{
    struct schema *s = arg;

    map_release(&s->anchors);
    map_release(&s->resources);
}

bool schema_compile(const struct js_doc *doc, const struct js_node *root, struct arena *mem,
                    struct schema **ret, struct error *err)
{
    struct compile c = {.doc = doc, .root = root, .mem = mem, .err = err};
    struct resource *outer;

    if (!root || (root->type != JS_OBJECT && root->type != JS_TRUE && root->type != JS_FALSE))
        return error_set(err, ERR_BAD_INPUT,
                         "a schema is an object, true or false; correct the tool's definition");
    if (root->end - root->start > SCHEMA_TEXT_MAX)
        return error_set(err, ERR_TOO_LARGE, "the schema is larger than 256 KiB; make it smaller");
    c.s = arena_new_of(mem, struct schema);
    c.s->doc = doc;
    arena_on_free(mem, release_maps, c.s);
    c.subs = arena_zalloc(mem, (size_t)(&doc->nodes[root->next] - root) * sizeof(struct sub *));
    outer = arena_new_of(mem, struct resource);
    *outer = (struct resource){.uri = STR(""), .root = root, .dialect = DIALECT_UNSAID};
    c.s->root = compile_sub(&c, root, outer);
    resource_link(&c);
    if (c.failed)
        return false;
    *ret = c.s;
    return true;
}

const struct schema_gap *schema_unsupported(const struct schema *s, unsigned *ret_n,
                                            unsigned *ret_total)
{
    *ret_n = s->n_gaps;
    *ret_total = s->total_gaps;
    return s->gaps;
}
