/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the JSON reader.  Each input is parsed under every set of limits; what parses must
 * walk consistently: spans inside their parents and in order, every key found by js_get(), every
 * text readable, and whatever our writer makes of it readable again. */
#include "base/buf.h"
#include "json/read.h"
#include "json/write.h"

#include <stdlib.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_span(const struct js_doc *d, const struct js_node *parent,
                       const struct js_node *v)
{
    check(v->start < v->end && v->end <= d->text.n);
    check(parent->start < v->start && v->end < parent->end);
    check(v->next > (uint32_t)(v - d->nodes) && v->next <= parent->next);
}

static void check_string(const struct js_doc *d, const struct js_node *v, struct arena *mem)
{
    struct str text = js_text(d, v, mem);
    struct js_doc again;
    struct buf out;

    check(text.p != NULL && text.n <= v->end - v->start - 2);
    check(js_is(d, v, text));
    buf_init(&out, SIZE_MAX);
    js_quote(&out, text);
    check(js_parse(buf_str(&out), &js_limits_request, mem, &again, NULL));
    check(js_is(&again, js_root(&again), text));
    buf_release(&out);
}

static void check_scalar(const struct js_doc *d, const struct js_node *v, struct arena *mem)
{
    int64_t number;

    if (v->type == JS_STRING)
        check_string(d, v, mem);
    else
        check(js_text(d, v, mem).p == NULL);
    if (js_to_i64(d, v, &number))
        check(v->type == JS_NUMBER);
    check(v->next == (uint32_t)(v - d->nodes) + 1);
}

static void check_container(const struct js_doc *d, const struct js_node *c, struct arena *mem,
                            bool unique)
{
    const struct js_node *v, *after = c;
    unsigned looked_up = 0;

    for (v = js_first(d, c); v; v = js_next(d, c, v)) {
        check(v > after);
        check_span(d, c, v);
        if (c->type == JS_OBJECT) {
            const struct js_node *found;
            check(v->type == JS_STRING);
            /* Looking up is linear; a few per object keep the target fast. */
            if (looked_up++ < 32) {
                found = js_get_key(d, c, js_text(d, v, mem));
                check(found != NULL && (!unique || found == v) && found <= v);
            }
            v = js_value_of(v);
            check_span(d, c, v);
        }
        after = v;
    }
    check(after == c ? c->next == (uint32_t)(c - d->nodes) + 1 : after->next == c->next);
}

static void check_document(const struct js_doc *d, struct arena *mem, bool unique)
{
    check(d->n > 0 && js_root(d)->next == d->n);
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->nodes[i].type >= JS_ARRAY)
            check_container(d, &d->nodes[i], mem, unique);
        else
            check_scalar(d, &d->nodes[i], mem);
    }
}

static bool try_limits(struct str text, const struct js_limits *limits)
{
    struct arena *mem = arena_new(64 << 20);
    struct js_fault fault;
    struct js_doc doc;
    bool ok = js_parse(text, limits, mem, &doc, &fault);

    if (ok)
        check_document(&doc, mem, limits->flags & JS_NO_DUPLICATES);
    else
        check(fault.offset <= text.n && fault.line > 0 && fault.column > 0 && fault.reason);
    arena_free(mem);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct js_limits tight = {
        .depth = 3, .keys = 4, .nodes = 20, .flags = JS_NO_DUPLICATES};
    struct str text = {(const char *)data, size};
    bool request = try_limits(text, &js_limits_request);
    bool upstream = try_limits(text, &js_limits_upstream);
    bool config = try_limits(text, &js_limits_config);
    bool small = try_limits(text, &tight);

    /* Each set takes at least what the stricter one takes. */
    check(!request || (upstream && config));
    check(!small || request);
    return 0;
}
