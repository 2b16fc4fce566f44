/* SPDX-License-Identifier: Apache-2.0 */
/* Checks declarations of mirrored arguments.  Every place of a schema that can
 * hold a schema is visited.  A declaration outside of the chain of `properties` makes the tool
 * invalid, because a client could not tell which argument it means. */
#include "mcp/mirror.h"

#include <ctype.h>

struct check {
    const struct js_doc *doc;
    struct arena *mem;
    struct str names[MCP_MIRROR_MAX];
    unsigned n;
    const char *fault;
};

/* Other keywords that hold schemas. */
static const struct elsewhere {
    const char *keyword;
    bool is_map; /* name → schema; otherwise a schema or an array of schemas */
} elsewhere[] = {
    {.keyword = "items"},
    {.keyword = "prefixItems"},
    {.keyword = "contains"},
    {.keyword = "additionalProperties"},
    {.keyword = "unevaluatedProperties"},
    {.keyword = "unevaluatedItems"},
    {.keyword = "propertyNames"},
    {.keyword = "patternProperties", .is_map = true},
    {.keyword = "dependentSchemas", .is_map = true},
    {.keyword = "oneOf"},
    {.keyword = "anyOf"},
    {.keyword = "allOf"},
    {.keyword = "not"},
    {.keyword = "if"},
    {.keyword = "then"},
    {.keyword = "else"},
    {.keyword = "$defs", .is_map = true},
    {.keyword = "definitions", .is_map = true},
};

bool mcp_mirror_is_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c >= 0x80 || (!isalnum(c) && !memchr("!#$%&'*+-.^_`|~", c, 15)))
            return false;
    }
    return name.n > 0 && name.n <= MCP_MIRROR_NAME_MAX;
}

static bool is_mirrorable(const struct js_doc *doc, const struct js_node *type)
{
    return js_is(doc, type, STR("string")) || js_is(doc, type, STR("integer")) ||
           js_is(doc, type, STR("boolean"));
}

static const char *declare(struct check *c, const struct js_node *property,
                           const struct js_node *value)
{
    struct str name = js_text(c->doc, value, c->mem);

    if (!mcp_mirror_is_name(name))
        return "an x-mcp-header is no header name";
    if (!is_mirrorable(c->doc, js_get(c->doc, property, STR("type"))))
        return "an x-mcp-header is on a property that is no string, integer or boolean";
    for (unsigned i = 0; i < c->n; i++)
        if (str_ieq(c->names[i], name))
            return "two x-mcp-header declarations have the same name";
    if (c->n == MCP_MIRROR_MAX)
        return "it has more x-mcp-header declarations than Holdfast mirrors (32)";
    c->names[c->n++] = name;
    return NULL;
}

static void visit(struct check *c, const struct js_node *schema, bool reachable, bool is_root);

/* A schema, an array of schemas, or an object with schemas as values. */
static void visit_each(struct check *c, const struct js_node *v, bool is_map, bool reachable)
{
    if (js_type_is(v, JS_ARRAY)) {
        for (const struct js_node *e = js_first(c->doc, v); e && !c->fault;
             e = js_next(c->doc, v, e))
            visit(c, e, reachable, false);
    } else if (is_map && js_type_is(v, JS_OBJECT)) {
        for (const struct js_node *key = js_first(c->doc, v); key && !c->fault;
             key = js_next(c->doc, v, js_value_of(key)))
            visit(c, js_value_of(key), reachable, false);
    } else {
        visit(c, v, reachable, false);
    }
}

static void visit(struct check *c, const struct js_node *schema, bool reachable, bool is_root)
{
    const struct js_node *value = js_get(c->doc, schema, STR("x-mcp-header"));

    if (!js_type_is(schema, JS_OBJECT))
        return;
    if (value)
        c->fault = reachable && !is_root
                       ? declare(c, schema, value)
                       : "an x-mcp-header is at a place where no property is named";
    if (!c->fault)
        visit_each(c, js_get(c->doc, schema, STR("properties")), true, reachable);
    for (size_t i = 0; i < countof(elsewhere) && !c->fault; i++)
        visit_each(c, js_get(c->doc, schema, str_of(elsewhere[i].keyword)), elsewhere[i].is_map,
                   false);
}

const char *mcp_mirror_fault(const struct js_doc *doc, const struct js_node *schema,
                             struct arena *mem)
{
    struct check c = {.doc = doc, .mem = mem};
    if (schema)
        visit(&c, schema, true, true);
    return c.fault;
}
