/* SPDX-License-Identifier: Apache-2.0 */
/* Requests towards a server, by splices over the client's bytes. */
#include "mcp/translate_impl.h"

#include "json/write.h"

#include <stdio.h>

bool mcp_is_envelope_key(void *arg unused_arg, struct str raw_key)
{
    return str_starts(raw_key, STR("\"" MCP_KEY_PREFIX));
}

static bool is_named(void *arg, struct str raw_key)
{
    const struct str *name = arg;
    return raw_key.n == name->n + 2 && memcmp(raw_key.p + 1, name->p, name->n) == 0;
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

struct param_drops {
    bool meta, task;
};

static bool drop_from_params(void *arg, struct str raw_key)
{
    const struct param_drops *drops = arg;

    return (drops->meta && str_eq(raw_key, STR("\"_meta\""))) ||
           (drops->task && str_eq(raw_key, STR("\"task\"")));
}

/* Holdfast does not announce tasks: a call that asks for a task runs as a call. */
void mcp_edit_params(const struct mcp_call_request *r, struct mcp_request_edit *e, bool drops_meta)
{
    const struct mcp_message *m = r->m;
    struct param_drops drops = {
        .meta = drops_meta,
        .task = unlikely(mcp_param(m, STR("task")) != NULL) && str_eq(m->method, STR("tools/call")),
    };

    if (drops.meta || drops.task)
        js_splice_remove(&e->splice, m->params, drop_from_params, &drops);
}

/* The edits that every server needs.  `our_token` lives until the request is written. */
static void edit_for_any(const struct mcp_call_request *r, struct js_splice *s, char our_token[24])
{
    const struct mcp_message *m = r->m;
    const struct js_node *token = js_get(&m->doc, m->meta, STR("progressToken"));
    static struct str session_id = {"session_id", 10};

    if (r->drop_session_id)
        js_splice_remove(s, mcp_param(m, STR("arguments")), is_named, &session_id);
    if (r->named)
        js_splice_replace(s, r->named, quoted(r->mem, r->name));
    if (r->state_node)
        js_splice_replace(s, r->state_node, quoted(r->mem, r->state));
    if (token) {
        int n = snprintf(our_token, 24, "%llu", (unsigned long long)r->id);
        js_splice_replace(s, token, str_n(our_token, (size_t)n));
    }
}

void mcp_write_request(const struct mcp_call_request *r, struct buf *out)
{
    const struct mcp_message *m = r->m;
    struct mcp_request_edit e;
    char our_token[24];

    js_splice_init(&e.splice, &m->doc);
    e.params = STR_NONE;
    mcp_era(r->server_era)->edit_request(r, &e);
    edit_for_any(r, &e.splice, our_token);
    buf_addz(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addu(out, r->id);
    buf_addz(out, ",\"method\":");
    js_quote(out, m->method);
    if (m->params || e.params.p)
        buf_addz(out, ",\"params\":");
    if (m->params)
        js_splice_write(&e.splice, m->params, out);
    else
        buf_addstr(out, e.params);
    buf_addc(out, '}');
}
