/* SPDX-License-Identifier: Apache-2.0 */
/* Names inside a schema: the dialect and base of each part ($schema, $id), its anchors, and the
 * targets of references, resolved once all names are known.  A reference out of the document is a
 * gap. */
#include "schema/schema_impl.h"

static const struct {
    const char *uri; /* without scheme and "#" */
    unsigned dialect;
} dialects[] = {
    {"json-schema.org/draft/2020-12/schema", DIALECT_2020},
    {"json-schema.org/draft/2019-09/schema", DIALECT_2019},
    {"json-schema.org/draft-07/schema", DIALECT_7},
    {"json-schema.org/draft-06/schema", DIALECT_6},
};

static struct str without_empty_fragment(struct str uri)
{
    return uri.n && uri.p[uri.n - 1] == '#' ? str_n(uri.p, uri.n - 1) : uri;
}

/* 0: not a known dialect. */
static unsigned dialect_of(struct str uri)
{
    static const char *const schemes[] = {"https://", "http://"};

    uri = without_empty_fragment(uri);
    for (size_t i = 0; i < countof(schemes); i++)
        if (str_starts(uri, str_of(schemes[i]))) {
            uri = str_n(uri.p + strlen(schemes[i]), uri.n - strlen(schemes[i]));
            break;
        }
    for (size_t i = 0; i < countof(dialects); i++)
        if (str_eq(uri, str_of(dialects[i].uri)))
            return dialects[i].dialect;
    return 0;
}

/* Reads $schema of a resource's root; false when it names an unknown dialect. */
static bool read_dialect(struct compile *c, const struct js_node *object, unsigned *dialect)
{
    const struct js_node *named = js_get(c->doc, object, STR("$schema"));

    if (!named)
        return true;
    *dialect = dialect_of(js_text(c->doc, named, c->mem));
    return *dialect != 0;
}

static bool siblings_are_ignored(struct compile *c, const struct js_node *object, unsigned dialect)
{
    return (dialect & DIALECTS_OLD) && js_get(c->doc, object, STR("$ref"));
}

/* Before 2019-09 an $id that is only a fragment sets an anchor. */
static bool is_old_anchor(struct str id, unsigned dialect)
{
    return (dialect & DIALECTS_OLD) && id.n > 1 && id.p[0] == '#';
}

const struct resource *resource_of(struct compile *c, const struct js_node *object,
                                   const struct resource *in, const char **ret_reason)
{
    const struct js_node *id = js_get(c->doc, object, STR("$id"));
    struct resource *own, *before;
    unsigned dialect = in->dialect;
    struct str uri = STR("");

    if ((id || object == in->root) && !read_dialect(c, object, &dialect)) {
        *ret_reason = "it names a dialect that is not known";
        return NULL;
    }
    if (siblings_are_ignored(c, object, dialect))
        id = NULL;
    if (object != in->root && (!id || is_old_anchor(js_text(c->doc, id, c->mem), dialect)))
        return in;
    own = arena_new_of(c->mem, struct resource);
    if (id && !is_old_anchor(js_text(c->doc, id, c->mem), dialect))
        uri = without_empty_fragment(js_text(c->doc, id, c->mem));
    if (!uri.p || !uri_resolve(in->uri, uri, c->mem, &uri) || str_find(uri, '#') < uri.n) {
        *ret_reason = "its $id is no URI that can be a base";
        return NULL;
    }
    *own = (struct resource){.uri = uri, .root = object, .dialect = dialect};
    before = map_put(&c->s->resources, own->uri, own);
    own->twice = before != NULL;
    return own;
}

struct str resource_anchor_key(struct str uri, struct str name, struct arena *mem)
{
    char *key = arena_alloc(mem, uri.n + 1 + name.n);

    memcpy(key, uri.p, uri.n);
    key[uri.n] = '#';
    memcpy(key + uri.n + 1, name.p, name.n);
    return str_n(key, uri.n + 1 + name.n);
}

/* If both kinds of anchor name one schema, the anchor is dynamic. */
static void add_anchor(struct compile *c, struct sub *s, struct str name, bool dynamic)
{
    struct anchor *a = arena_new_of(c->mem, struct anchor), *before;

    *a = (struct anchor){
        .key = resource_anchor_key(s->resource->uri, name, c->mem), .sub = s, .dynamic = dynamic};
    before = map_put(&c->s->anchors, a->key, a);
    a->twice = before && before->sub != s;
}

void resource_add_anchors(struct compile *c, struct sub *s)
{
    static const char *const keywords[] = {"$anchor", "$dynamicAnchor"};
    unsigned dialect = s->resource->dialect;
    struct str text;

    if (siblings_are_ignored(c, s->node, dialect))
        return;
    if (dialect & DIALECTS_OLD) {
        text = js_text(c->doc, js_get(c->doc, s->node, STR("$id")), c->mem);
        if (is_old_anchor(text, dialect) && text.n <= SCHEMA_URI_MAX)
            add_anchor(c, s, str_n(text.p + 1, text.n - 1), false);
        return;
    }
    for (size_t i = 0; i < countof(keywords); i++) {
        text = js_text(c->doc, js_get(c->doc, s->node, str_of(keywords[i])), c->mem);
        if (text.p && text.n <= SCHEMA_URI_MAX)
            add_anchor(c, s, text, i == 1 && dialect != DIALECT_2019);
    }
}

static const struct js_node *child_at(struct compile *c, const struct js_node *array,
                                      struct str digits)
{
    const struct js_node *item = js_first(c->doc, array);
    uint64_t index;

    if (!str_to_u64(digits, UINT32_MAX, &index) || (digits.n > 1 && digits.p[0] == '0'))
        return NULL;
    for (; item && index && c->passed < SCHEMA_LINK_MAX; index--, c->passed++)
        item = js_next(c->doc, array, item);
    return index ? NULL : item;
}

static const struct js_node *child_named(struct compile *c, const struct js_node *object,
                                         struct str name)
{
    const struct js_node *key = js_type_is(object, JS_OBJECT) ? js_first(c->doc, object) : NULL;

    for (; key && c->passed < SCHEMA_LINK_MAX; c->passed++) {
        if (js_is(c->doc, key, name))
            return js_value_of(key);
        key = js_next(c->doc, object, js_value_of(key));
    }
    return NULL;
}

/* One segment with "~1" and "~0" unescaped. */
static struct str plain_segment(struct compile *c, struct str s)
{
    char *out = arena_alloc(c->mem, s.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        bool escape = s.p[i] == '~' && i + 1 < s.n && (s.p[i + 1] == '0' || s.p[i + 1] == '1');
        out[n++] = escape ? (s.p[i + 1] == '0' ? '~' : '/') : s.p[i];
        i += escape;
    }
    out[n] = '\0';
    return str_n(out, n);
}

/* The target of a JSON pointer, compiled in the resource that it is in. */
static struct sub *follow_pointer(struct compile *c, const struct resource *from, struct str rest)
{
    const struct js_node *v = from->root;
    const struct resource *in = from;
    struct str segment;

    if (rest.n)
        rest = str_n(rest.p + 1, rest.n - 1);
    else
        rest = STR_NONE;
    while (rest.p && v) {
        if (c->subs[v - c->root] && c->subs[v - c->root]->kind == SUB_GAP)
            return NULL;
        segment = plain_segment(c, str_split(&rest, '/'));
        v = v->type == JS_ARRAY ? child_at(c, v, segment) : child_named(c, v, segment);
        if (v && c->subs[v - c->root])
            in = c->subs[v - c->root]->resource;
    }
    return v ? compile_sub(c, v, in) : NULL;
}

static struct sub *find_target(struct compile *c, const struct pending *p, const char **reason)
{
    struct str reference = js_text(c->doc, p->rule->value, c->mem), uri, fragment;
    const struct resource *to;
    const struct anchor *a;

    *reason = "the reference leads out of the schema or nowhere";
    if (!reference.p || !uri_resolve(p->sub->resource->uri, reference, c->mem, &uri))
        return NULL;
    fragment = uri;
    uri = str_split(&fragment, '#');
    to = str_eq(uri, p->sub->resource->uri) ? p->sub->resource : map_get(&c->s->resources, uri);
    if (!to || !uri_decode(fragment.p ? fragment : STR(""), c->mem, &fragment))
        return NULL;
    if (to->twice) {
        *reason = "two parts of the schema have the $id it names";
        return NULL;
    }
    if (c->passed >= SCHEMA_LINK_MAX) {
        *reason = "the schema has more references than are followed";
        return NULL;
    }
    if (fragment.n == 0 || fragment.p[0] == '/')
        return follow_pointer(c, to, fragment);
    a = map_get(&c->s->anchors, resource_anchor_key(uri, fragment, c->mem));
    if (!a || a->twice)
        return NULL;
    if (p->dynamic && a->dynamic) {
        p->rule->dynamic = a;
        p->rule->anchor_name = fragment;
    }
    return a->sub;
}

void resource_link(struct compile *c)
{
    while (c->pending && !c->failed) {
        struct pending *p = c->pending;
        const char *reason;

        c->pending = p->next;
        p->rule->sub = find_target(c, p, &reason);
        if (p->rule->sub)
            continue;
        p->rule->check = check_gap;
        p->rule->gap = compile_gap(c, p->rule->value, p->rule->keyword, reason);
    }
}
