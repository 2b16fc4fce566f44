/* SPDX-License-Identifier: Apache-2.0 */
/* Results and progress towards a client, by splices over the server's bytes. */
#include "mcp/translate_impl.h"

#include "json/write.h"

#include <stdio.h>

#define MAX_MESSAGE (32u * 1024 * 1024)

static bool is_input_required(const struct mcp_message *m)
{
    return js_is(&m->doc, js_get(&m->doc, m->result, STR("resultType")), STR("input_required"));
}

bool mcp_asks_beyond(enum mcp_era client, const struct mcp_message *m)
{
    return mcp_era(client)->asks_by_requests && is_input_required(m);
}

const struct js_node *mcp_request_state(enum mcp_era server, const struct mcp_message *m)
{
    if (mcp_era(server)->asks_by_requests || !is_input_required(m))
        return NULL;
    const struct js_node *state = js_get(&m->doc, m->result, STR("requestState"));
    return js_type_is(state, JS_STRING) ? state : NULL;
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
static struct str lost_text(const struct mcp_call_result *r)
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

    while (i > 0 && !str_eq(r->lost_reason, str_of(texts[i].reason)))
        i--;
    return arena_printf(r->mem, "[holdfast: %s%.*s%s]", texts[i].before, STR_ARG(r->lost_server),
                        texts[i].after);
}

/* Adds the lines for the model: lost state, the record, the handle last. */
static void add_lines(const struct mcp_call_result *r, struct js_splice *s)
{
    const struct js_node *content = js_get(&r->m->doc, r->m->result, STR("content"));
    if (!js_type_is(content, JS_ARRAY))
        return;
    if (r->lost_server.p)
        js_splice_element(s, content, text_block(r->mem, lost_text(r)));
    if (r->recording.p)
        js_splice_element(
            s, content, text_block(r->mem, STR("[holdfast: this session is recorded completely]")));
    if (r->handle.p)
        js_splice_element(
            s, content,
            text_block(r->mem, arena_printf(r->mem, "[session: %.*s]", STR_ARG(r->handle))));
}

bool mcp_adds_meta(const struct mcp_call_result *r)
{
    return r->lost_server.p || r->recording.p || r->handle.p || r->redelivered_at.p;
}

/* The members that are added to _meta; absent: none. */
static struct str extra_meta(const struct mcp_call_result *r, struct str first)
{
    struct buf extra;

    if (!mcp_adds_meta(r))
        return first;
    buf_init(&extra, MAX_MESSAGE);
    buf_addstr(&extra, first);
    if (r->lost_server.p)
        buf_addf(
            &extra,
            "%s\"holdfast/state-lost\":{\"server\":\"%.*s\",\"reason\":\"%.*s\",\"at\":\"%.*s\"}",
            extra.n ? "," : "", STR_ARG(r->lost_server), STR_ARG(r->lost_reason),
            STR_ARG(r->lost_at));
    if (r->recording.p)
        buf_addf(&extra, "%s\"holdfast/recording\":%.*s", extra.n ? "," : "",
                 STR_ARG(r->recording));
    if (r->handle.p) {
        buf_addf(&extra, "%s\"holdfast/session\":", extra.n ? "," : "");
        js_quote(&extra, r->handle);
    }
    if (r->redelivered_at.p)
        buf_addf(&extra, "%s\"holdfast/redelivered\":{\"at\":\"%.*s\"}", extra.n ? "," : "",
                 STR_ARG(r->redelivered_at));
    struct str text = arena_dup(r->mem, buf_str(&extra));
    buf_release(&extra);
    return text;
}

void mcp_add_notes(const struct mcp_call_result *r, struct js_splice *s, struct str first)
{
    const struct js_node *result = r->m->result;
    const struct js_node *meta = js_get(&r->m->doc, result, STR("_meta"));
    struct str extra = extra_meta(r, first);

    add_lines(r, s);
    if (extra.p && js_type_is(meta, JS_OBJECT))
        js_splice_member(s, meta, extra);
    else if (extra.p && !meta)
        js_splice_member(s, result, arena_printf(r->mem, "\"_meta\":{%.*s}", STR_ARG(extra)));
}

/* An error whose meaning both eras know gets the code of the client's era. */
static void write_error(const struct mcp_call_result *r, struct buf *out)
{
    const struct mcp_era_rules *client = mcp_era(r->client_era);
    const struct js_doc *d = &r->m->doc;
    const struct js_node *node = js_get(d, r->m->error, STR("code"));
    enum mcp_fault fault = MCP_FAULT_OTHER;
    struct js_splice s;
    int64_t code = 0;
    char text[16];

    js_splice_init(&s, d);
    if (js_to_i64(d, node, &code))
        fault = mcp_era(r->server_era)->fault_of(code);
    int theirs = fault == MCP_FAULT_NO_RESOURCE ? client->no_resource_code
                 : fault == MCP_FAULT_ENVELOPE  ? client->envelope_code
                                                : 0;
    if (theirs && theirs != code) {
        int n = snprintf(text, sizeof(text), "%d", theirs);
        js_splice_replace(&s, node, str_n(text, (size_t)n));
    }
    buf_addz(out, ",\"error\":");
    js_splice_write(&s, r->m->error, out);
}

static void edit_result(const struct mcp_call_result *r, struct js_splice *s)
{
    bool is_same = r->server_era == r->client_era && !mcp_adds_meta(r);

    if (!js_type_is(r->m->result, JS_OBJECT))
        return;
    if (!is_same)
        mcp_era(r->client_era)->edit_result(r, s);
    if (r->state.p)
        js_splice_replace(s, js_get(&r->m->doc, r->m->result, STR("requestState")), r->state);
}

void mcp_write_result(const struct mcp_call_result *r, struct buf *out)
{
    struct js_splice s;

    buf_addz(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addstr(out, r->id);
    if (r->m->error) {
        write_error(r, out);
    } else {
        js_splice_init(&s, &r->m->doc);
        edit_result(r, &s);
        buf_addz(out, ",\"result\":");
        js_splice_write(&s, r->m->result, out);
    }
    buf_addc(out, '}');
}

void mcp_write_progress(const struct mcp_message *m, struct str client_token, struct buf *out)
{
    struct js_splice s;
    const struct js_node *token = mcp_param(m, STR("progressToken"));

    js_splice_init(&s, &m->doc);
    if (token)
        js_splice_replace(&s, token, client_token);
    js_splice_write(&s, js_root(&m->doc), out);
}
