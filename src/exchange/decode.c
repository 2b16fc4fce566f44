/* SPDX-License-Identifier: Apache-2.0 */
/* The message step.  The body decides the era, and the headers are checked against it.  A modern
 * request then goes through a list of checks; the first failure is the answer. */
#include "exchange/batch.h"
#include "exchange/exchange.h"

#include "json/write.h"
#include "mcp/header.h"

static const struct js_node *claim(const struct exchange *x, const char *key)
{
    return js_get(&x->msg.doc, x->msg.meta, str_of(key));
}

static struct str version_header(const struct exchange *x)
{
    return http_header_get(x->head, STR("mcp-protocol-version"));
}

static bool is_modern(const struct mcp_version *v)
{
    return v && mcp_era(v->era)->has_envelope;
}

static bool header_is_modern(const struct exchange *x)
{
    struct str header = version_header(x);
    return header.p && is_modern(mcp_version_find(header));
}

static bool is_client_info(const struct exchange *x, const struct js_node *v)
{
    const struct js_doc *d = &x->msg.doc;
    return js_type_is(v, JS_OBJECT) && js_type_is(js_get(d, v, STR("name")), JS_STRING) &&
           js_type_is(js_get(d, v, STR("version")), JS_STRING);
}

/* Rung 2: the _meta envelope. */
static enum step_result check_envelope(struct exchange *x)
{
    const struct js_node *info = claim(x, MCP_KEY_CLIENT_INFO);
    const struct js_node *level = claim(x, MCP_KEY_LOG_LEVEL);

    if (!js_type_is(claim(x, MCP_KEY_VERSION), JS_STRING))
        return exchange_refuse(x, 400, -32602, "params._meta lacks \"" MCP_KEY_VERSION "\"%s",
                               js_type_is(claim(x, MCP_KEY_CAPABILITIES), JS_OBJECT)
                                   ? ""
                                   : " and \"" MCP_KEY_CAPABILITIES "\"");
    if (!js_type_is(claim(x, MCP_KEY_CAPABILITIES), JS_OBJECT))
        return exchange_refuse(x, 400, -32602,
                               "params._meta lacks the object \"" MCP_KEY_CAPABILITIES "\"");
    if (info && !is_client_info(x, info))
        return exchange_refuse(
            x, 400, -32602, "\"" MCP_KEY_CLIENT_INFO "\" must be an object with name and version");
    if (level && !mcp_level(js_text(&x->msg.doc, level, x->mem)))
        return exchange_refuse(x, 400, -32602, "\"" MCP_KEY_LOG_LEVEL "\" is not a log level");
    return STEP_NEXT;
}

/* Rungs 3 and 4: the version, in header and body. */
static enum step_result check_version(struct exchange *x)
{
    struct str asked = js_text(&x->msg.doc, claim(x, MCP_KEY_VERSION), x->mem);
    struct str header = version_header(x);
    const struct mcp_version *v = mcp_version_find(asked);
    struct buf data;

    if (x->outlet->has_headers && (!header.p || !str_eq(header, asked)))
        return exchange_refuse(x, 400, -32020,
                               "the MCP-Protocol-Version header must equal the version in _meta");
    if (is_modern(v)) {
        x->version = v;
        return STEP_NEXT;
    }
    buf_init(&data, 64 * 1024 * 1024);
    buf_addz(&data, "{\"supported\":" MCP_SUPPORTED_MODERN ",\"requested\":");
    js_quote(&data, asked);
    buf_addc(&data, '}');
    enum step_result result =
        exchange_refuse_data(x, 400, -32022, buf_str(&data), "Unsupported protocol version");
    buf_release(&data);
    return result;
}

/* Rungs 5 and 6: Mcp-Method and Mcp-Name mirror the body. */
static enum step_result check_mirrors(struct exchange *x)
{
    struct str method = http_header_get(x->head, STR("mcp-method"));
    struct str name = http_header_get(x->head, STR("mcp-name"));
    const struct mcp_method *known = mcp_method_find(x->msg.method, x->era);
    struct str decoded = STR_NONE;

    if (!x->outlet->has_headers)
        return STEP_NEXT;
    if (!method.p || !str_eq(method, x->msg.method))
        return exchange_refuse(x, 400, -32020,
                               "the Mcp-Method header must equal the method in the body");
    if (!known || !known->name_param.p)
        return STEP_NEXT;
    struct str in_body = mcp_param_text(&x->msg, known->name_param, x->mem);
    if (name.p && !mcp_header_decode(name, x->mem, &decoded))
        return exchange_refuse(x, 400, -32020,
                               "the Mcp-Name header is not valid base64 inside its sentinel");
    if (name.p ? !in_body.p || !str_eq(decoded, in_body) : in_body.p != NULL)
        return exchange_refuse(x, 400, -32020,
                               "the Mcp-Name header must equal params.%.*s in the body",
                               STR_ARG(known->name_param));
    return STEP_NEXT;
}

static enum step_result climb_ladder(struct exchange *x)
{
    enum step_result (*const rungs[])(struct exchange *) = {check_envelope, check_version,
                                                            check_mirrors};

    x->era = mcp_era_by_envelope(true);
    for (size_t i = 0; i < countof(rungs); i++)
        if (rungs[i](x) != STEP_NEXT)
            return STEP_REPLY;
    x->method = mcp_method_find(x->msg.method, x->era);
    if (!x->method)
        return exchange_refuse(x, 404, -32601, "Method not found");
    return STEP_NEXT;
}

static enum step_result decode_request(struct exchange *x)
{
    const struct js_node *pv = claim(x, MCP_KEY_VERSION);
    bool initialize = str_eq(x->msg.method, STR("initialize"));
    struct str text = js_text(&x->msg.doc, pv, x->mem);
    const struct mcp_version *claimed = text.p ? mcp_version_find(text) : NULL;
    struct str header = version_header(x);
    const struct mcp_version *said = header.p ? mcp_version_find(header) : NULL;

    if (initialize && (!pv || (claimed && !is_modern(claimed)))) {
        if (is_modern(said))
            return exchange_refuse(
                x, 400, -32020,
                "initialize belongs to the legacy versions, the header names a modern one");
    } else if (pv) {
        return climb_ladder(x);
    } else if (is_modern(said)) {
        return check_envelope(x);
    } else if (header.p && !said) {
        return exchange_refuse(x, 400, -32600,
                               "Unsupported protocol version in MCP-Protocol-Version");
    }
    x->method = mcp_method_find(x->msg.method, x->era);
    if (!x->method)
        return exchange_refuse(x, 200, -32601, "Method not found");
    return STEP_NEXT;
}

static enum step_result decode_notification(struct exchange *x)
{
    const struct mcp_method *known;

    x->era = mcp_era_by_envelope(claim(x, MCP_KEY_VERSION) || header_is_modern(x));
    known = mcp_method_find(x->msg.method, x->era);
    x->method = known ? known : &mcp_method_notification;
    return STEP_NEXT;
}

/* The modern era has no standalone streams and no sessions to end. */
static enum step_result refuse_verb(struct exchange *x)
{
    x->headers = STR("Allow: POST\r\n");
    return exchange_refuse(x, 405, -32600,
                           "2026-07-28 has only POST; subscriptions/listen opens a "
                           "stream");
}

/* Reads the name of the target: params.name, or params.uri. */
static enum step_result check_subject(struct exchange *x)
{
    bool by_uri = x->method->target == TARGET_URI;
    const struct js_node *arguments = mcp_param(&x->msg, STR("arguments"));

    if (!mcp_method_forwards(x->method) || x->method->target == TARGET_REF)
        return STEP_NEXT;
    x->tool = mcp_param_text(&x->msg, by_uri ? STR("uri") : STR("name"), x->mem);
    if (!x->tool.n || memchr(x->tool.p, 0, x->tool.n))
        return exchange_refuse(x, 200, -32602, "%.*s needs params.%s, a string",
                               STR_ARG(x->method->name), by_uri ? "uri" : "name");
    if (x->method->service == SERVE_CALL && arguments && arguments->type != JS_OBJECT)
        return exchange_refuse(x, 200, -32602, "params.arguments must be an object");
    return STEP_NEXT;
}

enum step_result exchange_decode(struct exchange *x)
{
    struct error err;
    bool is_batch;

    if (!x->has_message) {
        x->method = str_eq(x->verb, STR("GET")) ? &mcp_method_get : &mcp_method_delete;
        return header_is_modern(x) ? refuse_verb(x) : STEP_NEXT;
    }
    if (!mcp_parse_request(x->body, x->mem, &x->msg, &x->id, &is_batch, &err)) {
        x->method = &mcp_method_batch;
        if (!x->id.p)
            x->id = STR("null"); /* JSON-RPC 2.0 §5: the id could not be read, or there are many */
        if (is_batch && batch_is_item(x))
            return exchange_refuse(x, 400, -32600,
                                   "a batch must not be part of a batch; send its messages in one "
                                   "array of at most %d",
                                   BATCH_MAX_ITEMS);
        return is_batch ? STEP_NEXT
                        : exchange_refuse(x, 400, error_info(err.code)->jsonrpc, "%s", err.text);
    }
    if (x->msg.kind == MCP_RESPONSE) {
        x->method = &mcp_method_response;
        return STEP_NEXT;
    }
    if (x->msg.kind == MCP_NOTIFICATION)
        return decode_notification(x);
    enum step_result result = decode_request(x);
    return result == STEP_NEXT ? check_subject(x) : result;
}
