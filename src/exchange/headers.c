/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments mirrored in headers: a property with `x-mcp-header: "Region"` is also sent as
 * Mcp-Param-Region.  A modern client's headers are checked against its body (−32020), whatever the
 * server's era: the client got the schema from Holdfast.  Calls through run are not checked,
 * because its schema mirrors nothing.  For a modern upstream the header lines are written from the
 * body, so the upstream sees the values that were checked. */
#include "exchange/exchange.h"

#include "mcp/header.h"
#include "mcp/mirror.h"

#define MAX_DEPTH 8

struct mirror {
    struct exchange *x;
    const struct js_doc *schema;
    struct buf lines;
    unsigned n;
    const char *fault; /* why the request is refused; NULL: it is not */
};

/* The header form of an argument; absent for null, objects and arrays. */
static struct str value_text(struct exchange *x, const struct js_node *v)
{
    const struct js_doc *d = &x->msg.doc;
    switch (v->type) {
    case JS_STRING:
        return js_text(d, v, x->mem);
    case JS_TRUE:
    case JS_FALSE:
    case JS_NUMBER:
        return js_raw(d, v);
    default:
        return STR_NONE;
    }
}

/* Integers are compared as numbers: 42.0 is 42. */
static struct str without_zero_fraction(struct str s)
{
    size_t dot = str_find(s, '.');
    for (size_t i = dot + 1; i < s.n; i++)
        if (s.p[i] != '0')
            return s;
    return dot < s.n && dot + 1 < s.n ? str_n(s.p, dot) : s;
}

static bool same_value(const struct js_node *v, struct str header, struct str body)
{
    if (v->type == JS_NUMBER)
        return str_eq(without_zero_fraction(header), without_zero_fraction(body));
    return str_eq(header, body);
}

static void mirror_one(struct mirror *m, struct str name, const struct js_node *argument)
{
    struct exchange *x = m->x;
    struct str header_name = arena_printf(x->mem, "Mcp-Param-%.*s", STR_ARG(name));
    struct str header = http_header_get(x->head, header_name), decoded = STR_NONE;
    struct str body = argument ? value_text(x, argument) : STR_NONE;

    if (!body.p || m->n++ >= MCP_MIRROR_MAX)
        return;
    if (mcp_era(x->era)->mirrors_body && x->outlet->has_headers && !x->is_run) {
        if (!header.p)
            m->fault = "lacks an Mcp-Param header for an argument that its tool mirrors";
        else if (!mcp_header_decode(header, x->mem, &decoded) ||
                 !same_value(argument, decoded, body))
            m->fault = "has an Mcp-Param header that differs from the argument in the body";
    }
    if (body.n > 4096)
        m->fault = "mirrors an argument of more than 4096 bytes";
    if (m->fault)
        return;
    buf_addf(&m->lines, "%.*s: ", STR_ARG(header_name));
    mcp_header_encode(&m->lines, body);
    buf_addz(&m->lines, "\r\n");
}

/* Follows only `properties`, as the specification says. */
static void walk(struct mirror *m, const struct js_node *schema, const struct js_node *arguments,
                 unsigned depth)
{
    const struct js_node *properties = js_get(m->schema, schema, STR("properties"));

    if (!js_type_is(properties, JS_OBJECT) || !js_type_is(arguments, JS_OBJECT) ||
        depth > MAX_DEPTH)
        return;
    for (const struct js_node *key = js_first(m->schema, properties); key && !m->fault;
         key = js_next(m->schema, properties, js_value_of(key))) {
        const struct js_node *property = js_value_of(key);
        struct str name =
            js_text(m->schema, js_get(m->schema, property, STR("x-mcp-header")), m->x->mem);
        const struct js_node *argument =
            js_get(&m->x->msg.doc, arguments, js_text(m->schema, key, m->x->mem));
        if (mcp_mirror_is_name(name))
            mirror_one(m, name, argument);
        else
            walk(m, property, argument, depth + 1);
    }
}

/* The schema with the declarations of mirrored headers; NULL: none.  Tools of a modern HTTP server
 * with invalid declarations are left out of the catalog.  For other servers such declarations are
 * ignored. */
static const struct js_node *mirrored_schema(struct exchange *x, struct js_doc *schema)
{
    const struct catalog_item *tool = x->item;

    if (!tool || !tool->mirrors ||
        (!mcp_era(x->catalog->era)->mirrors_body && !mcp_era(x->era)->mirrors_body) ||
        !js_parse(tool->raw, &js_limits_upstream, x->mem, schema, NULL))
        return NULL;
    const struct js_node *input = js_get(schema, js_root(schema), STR("inputSchema"));
    return mcp_mirror_fault(schema, input, x->mem) ? NULL : input;
}

enum step_result exchange_check_params(struct exchange *x)
{
    struct mirror m = {.x = x};
    struct js_doc schema;
    const struct js_node *input = mirrored_schema(x, &schema);

    if (!input)
        return STEP_NEXT;
    m.schema = &schema;
    buf_init(&m.lines, 1024 * 1024);
    walk(&m, input, mcp_param(&x->msg, STR("arguments")), 0);
    if (!m.fault && m.lines.n)
        x->param_headers = arena_dup(x->mem, buf_str(&m.lines));
    buf_release(&m.lines);
    return m.fault ? exchange_refuse(x, 400, -32020, "the request %s", m.fault) : STEP_NEXT;
}
