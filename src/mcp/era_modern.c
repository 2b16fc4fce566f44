/* SPDX-License-Identifier: Apache-2.0 */
/* 2026-07-28. */
#include "mcp/era.h"

#include "mcp/translate_impl.h"

#define COMPLETE ",\"resultType\":\"complete\"}"

/* Some codes have an HTTP status of their own. */
static int error_status(int64_t code)
{
    return code == -32601 ? 404 : code <= -32020 && code >= -32022 ? 400 : 200;
}

/* "Resource not found" shares its code with other errors of parameters. */
static enum mcp_fault fault_of(int64_t code)
{
    return code <= -32020 && code >= -32022 ? MCP_FAULT_ENVELOPE : MCP_FAULT_OTHER;
}

/* The members of _meta that say for a client without envelopes what its initialize said. */
static struct str envelope(const struct mcp_call_request *r)
{
    const struct mcp_era_rules *client = mcp_era(r->client_era);
    struct mcp_client_info w = {0};

    if (client->read_client)
        client->read_client(r, &w);
    return arena_printf(
        r->mem,
        "\"" MCP_KEY_VERSION "\":\"2026-07-28\",\"" MCP_KEY_CAPABILITIES "\":%.*s%s%.*s%s%s%s",
        w.capabilities.p ? (int)w.capabilities.n : 2, w.capabilities.p ? w.capabilities.p : "{}",
        w.client_info.p ? ",\"" MCP_KEY_CLIENT_INFO "\":" : "", STR_ARG(w.client_info),
        w.log_level ? ",\"" MCP_KEY_LOG_LEVEL "\":\"" : "", w.log_level ? w.log_level : "",
        w.log_level ? "\"" : "");
}

/* Adds the envelope, unless the client wrote its own. */
static void edit_request(const struct mcp_call_request *r, struct mcp_request_edit *e)
{
    const struct mcp_message *m = r->m;

    mcp_edit_params(r, e, false);
    if (m->params && mcp_era(r->client_era)->has_envelope)
        return;
    struct str keys = envelope(r);
    if (m->meta) {
        js_splice_remove(&e->splice, m->meta, mcp_is_envelope_key, NULL);
        js_splice_member(&e->splice, m->meta, keys);
    } else if (m->params) {
        js_splice_member(&e->splice, m->params,
                         arena_printf(r->mem, "\"_meta\":{%.*s}", STR_ARG(keys)));
    } else {
        e->params = arena_printf(r->mem, "{\"_meta\":{%.*s}}", STR_ARG(keys));
    }
}

/* The server's name and version as a member of _meta; absent: unknown, or the result has them. */
static struct str server_info(const struct mcp_call_result *r)
{
    const struct js_doc *d = &r->m->doc;
    const struct js_node *meta = js_get(d, r->m->result, STR("_meta"));

    if (!r->server_info.p || js_get(d, meta, STR(MCP_KEY_SERVER_INFO)))
        return STR_NONE;
    return arena_printf(r->mem, "\"" MCP_KEY_SERVER_INFO "\":%.*s", STR_ARG(r->server_info));
}

static void edit_result(const struct mcp_call_result *r, struct js_splice *s)
{
    const struct js_node *result = r->m->result;
    bool is_stamped = mcp_era(r->server_era)->stamps_results;

    mcp_add_notes(r, s, is_stamped ? STR_NONE : server_info(r));
    if (is_stamped)
        return;
    if (!js_get(&r->m->doc, result, STR("resultType")))
        js_splice_member(s, result, STR("\"resultType\":\"complete\""));
    if (r->cacheable)
        js_splice_member(s, result, STR("\"ttlMs\":0,\"cacheScope\":\"private\""));
}

const struct mcp_era_rules mcp_era_modern = {
    .name = "modern",
    .has_envelope = true,
    .mirrors_body = true,
    .stamps_results = true,
    .disconnect_cancels = true,
    .has_listen = true,
    .no_method_status = 404,
    .no_resource_code = -32602,
    .result_end = {COMPLETE, sizeof(COMPLETE) - 1},
    .error_status = error_status,
    .edit_result = edit_result,
    .edit_request = edit_request,
    .fault_of = fault_of,
};
