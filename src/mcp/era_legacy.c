/* SPDX-License-Identifier: Apache-2.0 */
/* The versions before 2026-07-28. */
#include "mcp/era.h"

#include "mcp/translate_impl.h"

#define MAX_CAPABILITIES (256u * 1024 * 1024)

/* JSON-RPC errors are answers like any other. */
static int error_status(int64_t code)
{
    (void)code;
    return 200;
}

static enum mcp_fault fault_of(int64_t code)
{
    return code == -32002 ? MCP_FAULT_NO_RESOURCE : MCP_FAULT_OTHER;
}

static bool stays_behind(void *arg unused_arg, struct str raw_key)
{
    return !str_eq(raw_key, STR("\"roots\"")) && !str_eq(raw_key, STR("\"sampling\"")) &&
           !str_eq(raw_key, STR("\"elicitation\""));
}

/* Extensions and tasks mean other things in the other era, so they are removed. */
static struct str common_capabilities(const struct js_doc *doc, const struct js_node *capabilities,
                                      struct arena *mem)
{
    struct js_splice s;
    struct buf text;

    js_splice_init(&s, doc);
    js_splice_remove(&s, capabilities, stays_behind, NULL);
    buf_init(&text, MAX_CAPABILITIES);
    js_splice_write(&s, capabilities, &text);
    struct str raw = arena_dup(mem, buf_str(&text));
    buf_release(&text);
    return raw;
}

/* The level comes from logging/setLevel. */
static void read_client(const struct mcp_call_request *r, struct mcp_client_info *ret)
{
    struct js_doc doc;

    ret->log_level = r->log_level;
    if (!r->initialize_params.p ||
        !js_parse(r->initialize_params, &js_limits_request, r->mem, &doc, NULL))
        return;
    const struct js_node *info = js_get(&doc, js_root(&doc), STR("clientInfo"));
    const struct js_node *can = js_get(&doc, js_root(&doc), STR("capabilities"));
    if (js_type_is(info, JS_OBJECT))
        ret->client_info = js_raw(&doc, info);
    if (js_type_is(can, JS_OBJECT))
        ret->capabilities = common_capabilities(&doc, can, r->mem);
}

/* Removes the envelope, and _meta with it if it holds nothing else. */
static void edit_request(const struct mcp_call_request *r, struct mcp_request_edit *e)
{
    const struct mcp_message *m = r->m;
    bool has_envelope = mcp_era(r->client_era)->has_envelope && m->meta;
    bool drops_meta =
        has_envelope && js_splice_stay(&m->doc, m->meta, mcp_is_envelope_key, NULL) == 0;

    mcp_edit_params(r, e, drops_meta);
    if (has_envelope && !drops_meta)
        js_splice_remove(&e->splice, m->meta, mcp_is_envelope_key, NULL);
}

struct result_drops {
    bool meta, hints;
};

static bool drop_from_result(void *arg, struct str raw_key)
{
    const struct result_drops *drops = arg;
    return str_eq(raw_key, STR("\"resultType\"")) ||
           (drops->meta && str_eq(raw_key, STR("\"_meta\""))) ||
           (drops->hints &&
            (str_eq(raw_key, STR("\"ttlMs\"")) || str_eq(raw_key, STR("\"cacheScope\""))));
}

static bool is_server_info_key(void *arg unused_arg, struct str raw_key)
{
    return str_eq(raw_key, STR("\"" MCP_KEY_SERVER_INFO "\""));
}

static void remove_stamps(const struct mcp_call_result *r, struct js_splice *s)
{
    const struct js_doc *d = &r->m->doc;
    const struct js_node *meta = js_get(d, r->m->result, STR("_meta"));
    struct result_drops drops = {.hints = r->cacheable};

    if (js_type_is(meta, JS_OBJECT)) {
        unsigned stay = js_splice_stay(d, meta, is_server_info_key, NULL);
        drops.meta = stay == 0 && !mcp_adds_meta(r) && js_first(d, meta);
        if (!drops.meta)
            js_splice_remove(s, meta, is_server_info_key, NULL);
    }
    js_splice_remove(s, r->m->result, drop_from_result, &drops);
}

static void edit_result(const struct mcp_call_result *r, struct js_splice *s)
{
    if (mcp_era(r->server_era)->stamps_results)
        remove_stamps(r, s);
    mcp_add_notes(r, s, STR_NONE);
}

const struct mcp_era_rules mcp_era_legacy = {
    .name = "legacy",
    .is_stateful = true,
    .resumes_streams = true,
    .asks_by_requests = true,
    .no_method_status = 200, /* a client takes 404 for the end of its session */
    .no_resource_code = -32002,
    .envelope_code = -32603, /* clients do not know the codes of 2026-07-28 */
    .result_end = {"}", 1},
    .error_status = error_status,
    .read_client = read_client,
    .edit_result = edit_result,
    .edit_request = edit_request,
    .fault_of = fault_of,
};
