/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes.  A client's message is parsed strictly, because the upstream must read the same values
 * that we checked (threats M3-M5).  An upstream's message is parsed once, for its id and its
 * parts. */
#include "mcp/message.h"

#include "mcp/version.h"

static const struct str envelope_names[] = {
    {"jsonrpc", 7}, {"id", 2}, {"method", 6}, {"params", 6}, {"result", 6}, {"error", 5},
};
static const struct str params_names[] = {{"name", 4}, {"arguments", 9}, {"_meta", 5}, {"uri", 3}};

static bool has_capital(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= 'A' && s.p[i] <= 'Z')
            return true;
    return false;
}

/* Some servers would read "Method" beside or instead of "method", and others would not. */
static bool has_case_twin(const struct js_doc *doc, const struct js_node *object,
                          const struct str *names, size_t n, struct arena *mem)
{
    if (!js_type_is(object, JS_OBJECT))
        return false;
    for (const struct js_node *key = js_first(doc, object); key;
         key = js_next(doc, object, js_value_of(key))) {
        if (!key->escaped && !has_capital(js_raw(doc, key)))
            continue;
        struct str text = js_text(doc, key, mem);
        for (size_t i = 0; i < n; i++)
            if (text.n == names[i].n && !str_eq(text, names[i]) && str_ieq(text, names[i]))
                return true;
    }
    return false;
}

static bool id_is_acceptable(const struct js_node *id)
{
    return js_type_is(id, JS_STRING) || js_type_is(id, JS_NUMBER);
}

/* One walk over the members: an envelope has few, and all are needed. */
static void find_parts(struct mcp_message *m, struct arena *mem)
{
    const struct js_doc *d = &m->doc;
    const struct js_node *root = js_root(d);

    for (const struct js_node *key = js_first(d, root); key;
         key = js_next(d, root, js_value_of(key))) {
        struct str name = js_text(d, key, mem);
        const struct js_node *value = js_value_of(key);
        if (str_eq(name, STR("id")))
            m->id_node = value;
        else if (str_eq(name, STR("method")))
            m->method_node = value;
        else if (str_eq(name, STR("params")))
            m->params = value;
        else if (str_eq(name, STR("result")))
            m->result = value;
        else if (str_eq(name, STR("error")))
            m->error = value;
        else if (str_eq(name, STR("jsonrpc")))
            m->is_2_0 = js_is(d, value, STR("2.0"));
        else
            m->has_others = true;
    }
    m->method = js_text(d, m->method_node, mem);
    m->meta_node = js_get(d, m->params, STR("_meta"));
    m->meta = js_type_is(m->meta_node, JS_OBJECT) ? m->meta_node : NULL;
    if (m->id_node && id_is_acceptable(m->id_node))
        m->id = js_raw(d, m->id_node);
    if (!m->method.p)
        m->kind = MCP_RESPONSE;
    else
        m->kind = m->id_node ? MCP_REQUEST : MCP_NOTIFICATION;
}

static bool check_response(const struct mcp_message *m, struct error *err)
{
    if (m->method_node)
        return error_set(err, ERR_BAD_INPUT, "\"method\" must be a string");
    if (!m->result == !m->error || !m->id.p)
        return error_set(err, ERR_BAD_INPUT,
                         "send a \"method\", or an \"id\" with either \"result\" or \"error\"");
    return true;
}

static bool check_request(const struct mcp_message *m, struct arena *mem, struct error *err)
{
    const struct js_doc *d = &m->doc;
    const struct js_node *root = js_root(d);

    if ((m->has_others && has_case_twin(d, root, envelope_names, countof(envelope_names), mem)) ||
        has_case_twin(d, m->params, params_names, countof(params_names), mem))
        return error_set(
            err, ERR_BAD_INPUT,
            "a member name differs from a JSON-RPC name only by case; use the exact name");
    if (!m->is_2_0)
        return error_set(err, ERR_BAD_INPUT, "\"jsonrpc\" must be \"2.0\"");
    if (m->id_node && !id_is_acceptable(m->id_node))
        return error_set(err, ERR_BAD_INPUT, "\"id\" must be a string or a number");
    if (m->kind == MCP_RESPONSE)
        return check_response(m, err);
    if (memchr(m->method.p, 0, m->method.n) || m->method.n == 0 || m->method.n > 128)
        return error_set(err, ERR_BAD_PARAMS, "\"method\" is not a method name");
    if (m->params && m->params->type != JS_OBJECT)
        return error_set(err, ERR_BAD_PARAMS, "\"params\" must be an object");
    if (m->meta_node && !m->meta)
        return error_set(err, ERR_BAD_PARAMS, "\"_meta\" must be an object");
    return true;
}

bool mcp_parse_request(struct str text, struct arena *mem, struct mcp_message *ret,
                       struct str *ret_id, bool *ret_is_batch, struct error *err)
{
    struct js_fault fault = {0};
    struct mcp_message m = {0};

    *ret_id = STR_NONE;
    *ret_is_batch = false;
    if (!js_parse(text, &js_limits_request, mem, &m.doc, &fault))
        return error_set(err, fault.duplicate || fault.limit ? ERR_BAD_INPUT : ERR_PARSE,
                         "the body is not acceptable JSON: %s (line %u, column %u)", fault.reason,
                         fault.line, fault.column);
    *ret_is_batch = js_root(&m.doc)->type == JS_ARRAY;
    if (js_root(&m.doc)->type != JS_OBJECT)
        return error_set(err, ERR_BAD_INPUT, "the body must be one JSON-RPC object%s",
                         *ret_is_batch ? "; arrays belong to protocol version 2025-03-26 only"
                                       : "");
    find_parts(&m, mem);
    *ret_id = m.id;
    if (!check_request(&m, mem, err))
        return false;
    *ret = m;
    return true;
}

bool mcp_parse_upstream(struct str text, struct arena *mem, struct mcp_message *ret,
                        struct error *err)
{
    struct js_fault fault = {0};
    struct mcp_message m = {0};

    if (!js_parse(text, &js_limits_upstream, mem, &m.doc, &fault))
        return error_set(err, ERR_UPSTREAM, "it sent something that is not JSON: %s", fault.reason);
    if (js_root(&m.doc)->type != JS_OBJECT)
        return error_set(err, ERR_UPSTREAM, "it sent something that is not a JSON-RPC object");
    find_parts(&m, mem);
    *ret = m;
    return true;
}

const char *mcp_response_fault(const struct mcp_message *m)
{
    int64_t code;

    if (!m->error && !m->result)
        return "neither a result nor an error";
    if (!m->error)
        return js_type_is(m->result, JS_OBJECT) ? NULL : "a result that is not an object";
    if (!js_to_i64(&m->doc, js_get(&m->doc, m->error, STR("code")), &code) ||
        !js_type_is(js_get(&m->doc, m->error, STR("message")), JS_STRING))
        return "an error without an integer \"code\" and a \"message\"";
    return NULL;
}

bool mcp_is_droppable(const struct mcp_message *m)
{
    static const struct str vital[] = {
        {"notifications/cancelled", 23},
        {"notifications/elicitation/complete", 34},
        {"notifications/resources/updated", 31},
        {"notifications/resources/list_changed", 36},
        {"notifications/tools/list_changed", 32},
        {"notifications/prompts/list_changed", 34},
        {"notifications/subscriptions/acknowledged", 40},
    };

    if (m->kind != MCP_NOTIFICATION)
        return false;
    for (size_t i = 0; i < countof(vital); i++)
        if (str_eq(m->method, vital[i]))
            return false;
    return true;
}

const struct js_node *mcp_param(const struct mcp_message *m, struct str name)
{
    return js_get(&m->doc, m->params, name);
}

struct str mcp_param_text(const struct mcp_message *m, struct str name, struct arena *mem)
{
    return js_text(&m->doc, mcp_param(m, name), mem);
}

struct str mcp_params_raw(const struct mcp_message *m)
{
    return m->params ? js_raw(&m->doc, m->params) : STR_NONE;
}

bool mcp_id_ours(struct str raw, uint64_t *ret)
{
    return str_to_u64(raw, UINT64_MAX, ret);
}

bool mcp_names_modern(const struct mcp_message *m)
{
    int64_t code = 0;
    const struct js_node *data = js_get(&m->doc, m->error, STR("data"));
    const struct js_node *list = js_get(&m->doc, data, STR("supported"));

    if (!js_to_i64(&m->doc, js_get(&m->doc, m->error, STR("code")), &code) || code != -32022 ||
        !js_type_is(list, JS_ARRAY))
        return false;
    for (const struct js_node *v = js_first(&m->doc, list); v; v = js_next(&m->doc, list, v))
        if (js_is(&m->doc, v, mcp_version_latest(MCP_MODERN)->name))
            return true;
    return false;
}

/* A view into the text of `from` becomes the same view of `to`; other text is copied. */
static struct str dup_text(struct str s, struct str from, struct str to, struct arena *mem)
{
    if (s.p >= from.p && s.p + s.n <= from.p + from.n)
        return str_n(to.p + (s.p - from.p), s.n);
    return arena_dup(mem, s);
}

static const struct js_node *dup_node(const struct js_node *node, const struct js_doc *from,
                                      const struct js_doc *to)
{
    return node ? to->nodes + (node - from->nodes) : NULL;
}

struct mcp_message mcp_message_dup(const struct mcp_message *m, struct arena *mem)
{
    struct mcp_message copy = *m;
    const struct js_doc *from = &m->doc, *to = &copy.doc;

    copy.doc.text = arena_dup(mem, from->text);
    copy.doc.nodes = arena_alloc(mem, from->n * sizeof(*from->nodes));
    memcpy(copy.doc.nodes, from->nodes, from->n * sizeof(*from->nodes));
    copy.id = dup_text(m->id, from->text, to->text, mem);
    copy.method = dup_text(m->method, from->text, to->text, mem);
    copy.params = dup_node(m->params, from, to);
    copy.meta = dup_node(m->meta, from, to);
    copy.result = dup_node(m->result, from, to);
    copy.error = dup_node(m->error, from, to);
    copy.id_node = dup_node(m->id_node, from, to);
    copy.method_node = dup_node(m->method_node, from, to);
    copy.meta_node = dup_node(m->meta_node, from, to);
    return copy;
}
