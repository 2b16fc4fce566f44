/* SPDX-License-Identifier: Apache-2.0 */
/* Re-stamping, by splices over the original bytes. */
#include "bridge/bridge.h"

#include "json/splice.h"
#include "json/write.h"

#include <stdio.h>

#define MAX_MESSAGE (32u * 1024 * 1024)

static bool is_envelope_key(void *arg unused_arg, struct str raw_key)
{
    return str_starts(raw_key, STR("\"" MCP_KEY_PREFIX));
}

static bool is_named(void *arg, struct str raw_key)
{
    const struct str *name = arg;
    return raw_key.n == name->n + 2 && memcmp(raw_key.p + 1, name->p, name->n) == 0;
}

static struct str envelope(const struct bridge_request *b, struct arena *mem)
{
    return arena_printf(
        mem, "\"" MCP_KEY_VERSION "\":\"2026-07-28\",\"" MCP_KEY_CAPABILITIES "\":%.*s%s%.*s%s%s%s",
        b->capabilities.p ? (int)b->capabilities.n : 2,
        b->capabilities.p ? b->capabilities.p : "{}",
        b->client_info.p ? ",\"" MCP_KEY_CLIENT_INFO "\":" : "", STR_ARG(b->client_info),
        b->log_level ? ",\"" MCP_KEY_LOG_LEVEL "\":\"" : "", b->log_level ? b->log_level : "",
        b->log_level ? "\"" : "");
}

static struct str quoted(struct arena *mem, struct str text)
{
    struct buf b;
    buf_init(&b, 6 * text.n + 2); /* the longest possible result */
    js_quote(&b, text);
    struct str raw = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return raw;
}

/* Members removed from params.  One pass removes both: a splice may visit an object once. */
struct gone {
    bool meta; /* _meta holds only the envelope, which older servers do not know */
    bool task; /* Holdfast does not announce tasks: a call that asks for a task runs as a call */
};

static struct gone gone_of(const struct bridge_request *b)
{
    const struct mcp_message *m = b->m;

    return (struct gone){
        .meta = b->from != b->to && b->to == MCP_LEGACY && m->meta &&
                js_splice_stay(&m->doc, m->meta, is_envelope_key, NULL) == 0,
        .task = unlikely(mcp_param(m, STR("task")) != NULL) && str_eq(m->method, STR("tools/call")),
    };
}

static bool is_gone(void *arg, struct str raw_key)
{
    const struct gone *gone = arg;

    return (gone->meta && str_eq(raw_key, STR("\"_meta\""))) ||
           (gone->task && str_eq(raw_key, STR("\"task\"")));
}

static void cross_meta(const struct bridge_request *b, struct js_splice *s, struct arena *mem)
{
    const struct mcp_message *m = b->m;

    if (b->to == MCP_MODERN) {
        struct str keys = envelope(b, mem);
        if (m->meta) {
            js_splice_remove(s, m->meta, is_envelope_key, NULL);
            js_splice_member(s, m->meta, keys);
        } else if (m->params) {
            js_splice_member(s, m->params, arena_printf(mem, "\"_meta\":{%.*s}", STR_ARG(keys)));
        }
        return;
    }
    if (m->meta)
        js_splice_remove(s, m->meta, is_envelope_key, NULL);
}

void bridge_write_request(const struct bridge_request *b, struct buf *out)
{
    const struct mcp_message *m = b->m;
    const struct js_node *token = js_get(&m->doc, m->meta, STR("progressToken"));
    static struct str session_id = {"session_id", 10};
    struct gone gone = gone_of(b);
    struct arena *mem = NULL;
    struct js_splice s;
    char our_token[24];

    js_splice_init(&s, &m->doc);
    if (gone.meta || gone.task)
        js_splice_remove(&s, m->params, is_gone, &gone);
    if (b->from != b->to && !gone.meta)
        cross_meta(b, &s, mem = arena_new(MAX_MESSAGE));
    if (b->drop_session_id)
        js_splice_remove(&s, mcp_param(m, STR("arguments")), is_named, &session_id);
    if (b->named) {
        if (!mem)
            mem = arena_new(MAX_MESSAGE);
        js_splice_replace(&s, b->named, quoted(mem, b->name));
    }
    if (b->state_node) {
        if (!mem)
            mem = arena_new(MAX_MESSAGE);
        js_splice_replace(&s, b->state_node, quoted(mem, b->state));
    }
    if (token) {
        int n = snprintf(our_token, sizeof(our_token), "%llu", (unsigned long long)b->id);
        js_splice_replace(&s, token, str_n(our_token, (size_t)n));
    }
    buf_addz(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addu(out, b->id);
    buf_addz(out, ",\"method\":");
    js_quote(out, m->method);
    if (m->params) {
        buf_addz(out, ",\"params\":");
        js_splice_write(&s, m->params, out);
    } else if (b->to == MCP_MODERN) {
        if (!mem)
            mem = arena_new(MAX_MESSAGE);
        struct str keys = envelope(b, mem);
        buf_addf(out, ",\"params\":{\"_meta\":{%.*s}}", STR_ARG(keys));
    }
    buf_addc(out, '}');
    arena_free(mem);
}

bool bridge_is_input_required(const struct mcp_message *m)
{
    return js_is(&m->doc, js_get(&m->doc, m->result, STR("resultType")), STR("input_required"));
}

static struct str text_block(struct arena *mem, struct str text)
{
    struct buf b;
    buf_init(&b, 64 * 1024);
    buf_addz(&b, "{\"type\":\"text\",\"text\":");
    js_quote(&b, text);
    buf_addc(&b, '}');
    struct str block = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return block;
}

/* The text for the model when state was lost.  It says which side lost it, in the words of
 * docs/what-we-change.md. */
static struct str lost_text(const struct bridge_result *b)
{
    static const struct {
        const char *reason, *before, *after;
    } texts[] = {
        {"child_restarted", "", " was restarted; its earlier state is lost"},
        {"child_recycled", "",
         " was idle and Holdfast ended it to free its place; it was started again and its earlier "
         "state is lost"},
        {"remote_session_lost", "",
         " no longer knows this session, so a new one was opened; its earlier state is lost"},
        {"holdfast_restarted", "Holdfast was restarted; the earlier state of ", " is lost"},
    };
    size_t i = countof(texts) - 1;

    while (i > 0 && !str_eq(b->lost_reason, str_of(texts[i].reason)))
        i--;
    return arena_printf(b->mem, "[holdfast: %s%.*s%s]", texts[i].before, STR_ARG(b->lost_server),
                        texts[i].after);
}

/* Adds the lines for the model: lost state first, the handle last. */
static void add_lines(const struct bridge_result *b, struct js_splice *s)
{
    const struct js_node *content = js_get(&b->m->doc, b->m->result, STR("content"));
    if (!js_type_is(content, JS_ARRAY))
        return;
    if (b->lost_server.p)
        js_splice_element(s, content, text_block(b->mem, lost_text(b)));
    if (b->handle.p)
        js_splice_element(
            s, content,
            text_block(b->mem, arena_printf(b->mem, "[session: %.*s]", STR_ARG(b->handle))));
}

static struct str extra_meta(const struct bridge_result *b, bool has_server_info)
{
    struct buf extra;
    buf_init(&extra, MAX_MESSAGE);
    if (b->from == MCP_LEGACY && b->to == MCP_MODERN && b->server_info.p && !has_server_info)
        buf_addf(&extra, "\"" MCP_KEY_SERVER_INFO "\":%.*s", STR_ARG(b->server_info));
    if (b->lost_server.p)
        buf_addf(
            &extra,
            "%s\"holdfast/state-lost\":{\"server\":\"%.*s\",\"reason\":\"%.*s\",\"at\":\"%.*s\"}",
            extra.n ? "," : "", STR_ARG(b->lost_server), STR_ARG(b->lost_reason),
            STR_ARG(b->lost_at));
    if (b->handle.p) {
        buf_addf(&extra, "%s\"holdfast/session\":", extra.n ? "," : "");
        js_quote(&extra, b->handle);
    }
    if (b->redelivered_at.p)
        buf_addf(&extra, "%s\"holdfast/redelivered\":{\"at\":\"%.*s\"}", extra.n ? "," : "",
                 STR_ARG(b->redelivered_at));
    struct str text = extra.n ? arena_dup(b->mem, buf_str(&extra)) : STR_NONE;
    buf_release(&extra);
    return text;
}

struct result_drops {
    bool result_type, meta, hints;
};

static bool drop_from_result(void *arg, struct str raw_key)
{
    const struct result_drops *drops = arg;
    return (drops->result_type && str_eq(raw_key, STR("\"resultType\""))) ||
           (drops->meta && str_eq(raw_key, STR("\"_meta\""))) ||
           (drops->hints &&
            (str_eq(raw_key, STR("\"ttlMs\"")) || str_eq(raw_key, STR("\"cacheScope\""))));
}

static bool is_server_info_key(void *arg unused_arg, struct str raw_key)
{
    return str_eq(raw_key, STR("\"" MCP_KEY_SERVER_INFO "\""));
}

static void restamp(const struct bridge_result *b, struct js_splice *s)
{
    const struct js_doc *d = &b->m->doc;
    const struct js_node *result = b->m->result;
    const struct js_node *meta = js_get(d, result, STR("_meta"));
    bool to_legacy = b->from == MCP_MODERN && b->to == MCP_LEGACY;
    struct str extra = extra_meta(b, js_get(d, meta, STR(MCP_KEY_SERVER_INFO)) != NULL);
    struct result_drops drops = {.result_type = to_legacy, .hints = to_legacy && b->cacheable};

    if (to_legacy && js_type_is(meta, JS_OBJECT)) {
        unsigned stay = js_splice_stay(d, meta, is_server_info_key, NULL);
        drops.meta = stay == 0 && !extra.p && js_first(d, meta);
        if (!drops.meta)
            js_splice_remove(s, meta, is_server_info_key, NULL);
    }
    js_splice_remove(s, result, drop_from_result, &drops);
    add_lines(b, s);
    if (extra.p && js_type_is(meta, JS_OBJECT))
        js_splice_member(s, meta, extra);
    else if (extra.p && !meta)
        js_splice_member(s, result, arena_printf(b->mem, "\"_meta\":{%.*s}", STR_ARG(extra)));
    if (b->from == MCP_LEGACY && b->to == MCP_MODERN && !js_get(d, result, STR("resultType")))
        js_splice_member(s, result, STR("\"resultType\":\"complete\""));
    if (b->from == MCP_LEGACY && b->to == MCP_MODERN && b->cacheable)
        js_splice_member(s, result, STR("\"ttlMs\":0,\"cacheScope\":\"private\""));
    if (b->state.p)
        js_splice_replace(s, js_get(d, result, STR("requestState")), b->state);
}

/* Legacy clients do not know the error codes of the modern era, and "resource not found" has
 * another code. */
static void write_error(const struct bridge_result *b, struct buf *out)
{
    const struct js_doc *d = &b->m->doc;
    const struct js_node *code = js_get(d, b->m->error, STR("code"));
    struct js_splice s;
    int64_t value;

    js_splice_init(&s, d);
    if (b->from == MCP_MODERN && b->to == MCP_LEGACY && js_to_i64(d, code, &value) &&
        value <= -32020 && value >= -32022)
        js_splice_replace(&s, code, STR("-32603"));
    if (b->from == MCP_LEGACY && b->to == MCP_MODERN && js_to_i64(d, code, &value) &&
        value == -32002)
        js_splice_replace(&s, code, STR("-32602"));
    buf_addz(out, ",\"error\":");
    js_splice_write(&s, b->m->error, out);
}

void bridge_write_result(const struct bridge_result *b, struct buf *out)
{
    bool untouched = b->from == b->to && !b->handle.p && !b->lost_server.p && !b->state.p &&
                     !b->redelivered_at.p;
    struct js_splice s;

    buf_addz(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addstr(out, b->id);
    if (b->m->error) {
        write_error(b, out);
    } else {
        js_splice_init(&s, &b->m->doc);
        if (!untouched && js_type_is(b->m->result, JS_OBJECT))
            restamp(b, &s);
        buf_addz(out, ",\"result\":");
        js_splice_write(&s, b->m->result, out);
    }
    buf_addc(out, '}');
}

void bridge_write_progress(const struct mcp_message *m, struct str client_token, struct buf *out)
{
    struct js_splice s;
    const struct js_node *token = mcp_param(m, STR("progressToken"));

    js_splice_init(&s, &m->doc);
    if (token)
        js_splice_replace(&s, token, client_token);
    js_splice_write(&s, js_root(&m->doc), out);
}
