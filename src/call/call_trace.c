/* SPDX-License-Identifier: Apache-2.0 */
/* The client span of a call: one for each attempt that was sent, a child of the span of the client's
 * request.  HTTP servers get its position in the header `traceparent`, if the client named a trace;
 * without exported traces they get the client's own.  params._meta is never changed. */
#include "call/call_impl.h"

#include "base/clock.h"
#include "http/client.h"
#include "mcp/method.h"
#include "trace/traces.h"

#include <stdio.h>

/* The operator may have configured the header for this server. */
static bool is_configured(const struct server_config *to)
{
    for (size_t i = 0; i < to->n_headers; i++)
        if (str_ieq(to->headers[i].name, STR("traceparent")))
            return true;
    return false;
}

struct str call_trace_send(struct call *c)
{
    const struct server_config *to = upstream_config(c->up);
    struct trace *t = &c->trace;
    char own[TRACE_PARENT_TEXT];
    struct str parent = t->parent_text;

    if (t->is_recorded)
        c->span = trace_context_child(&t->own);
    if (likely(!parent.p) || to->kind != SERVER_HTTP || is_configured(to))
        return STR_NONE;
    if (t->is_recorded) {
        trace_context_format(&c->span, own);
        parent = str_of(own);
    }
    if (!t->state.p)
        return arena_printf(c->mem, "traceparent: %.*s\r\n", STR_ARG(parent));
    return arena_printf(c->mem, "traceparent: %.*s\r\ntracestate: %.*s\r\n", STR_ARG(parent),
                        STR_ARG(t->state));
}

static void add_server(struct span *s, const struct server_config *to)
{
    struct http_url url;
    struct error ignored;

    span_text(s, "holdfast.server", to->name);
    if (to->kind != SERVER_HTTP) {
        span_text(s, "network.transport", to->kind == SERVER_STDIO ? STR("pipe") : STR_NONE);
        return;
    }
    span_text(s, "network.transport", STR("tcp"));
    span_text(s, "network.protocol.name", STR("http"));
    if (!http_url_parse(to->url, &url, &ignored))
        return;
    span_text(s, "server.address", url.host);
    span_number(s, "server.port", url.port);
}

static void add_target(struct span *s, const struct call *c)
{
    if (c->kind == EXEC_DURABLE) {
        span_text(s, "gen_ai.operation.name", STR("execute_tool"));
        span_text(s, "gen_ai.tool.name", c->tool);
        s->target = c->item ? c->tool : STR_NONE;
    } else if (c->method->target == TARGET_NAME) {
        span_text(s, "gen_ai.prompt.name", c->tool);
        s->target = c->outcome == OUTCOME_OK ? c->tool : STR_NONE;
    } else if (c->method->target == TARGET_URI) {
        span_text(s, "mcp.resource.uri", span_uri(c->tool, c->mem));
    }
}

static void add_error(struct span *s, const struct call *c, struct str error_type)
{
    int64_t code = 0;
    char text[24];

    s->is_error = error_type.p != NULL;
    if (!s->is_error)
        return;
    if (c->has_answer && c->answer.error &&
        js_to_i64(&c->answer.doc, js_get(&c->answer.doc, c->answer.error, STR("code")), &code)) {
        snprintf(text, sizeof(text), "%lld", (long long)code);
        error_type = arena_dup(c->mem, str_of(text));
        span_text(s, "rpc.response.status_code", error_type);
    }
    span_text(s, "error.type", error_type);
}

void call_trace_end(struct call *c, struct str error_type)
{
    struct traces *traces = c->home->traces;
    struct span s;
    char id[24];

    if (likely(!c->trace.is_recorded) || !c->sent_us || !traces_are_on(traces))
        return;
    s.n_attributes = 0;
    s.kind = SPAN_CLIENT;
    s.context = c->span;
    s.parent = &c->trace.own;
    s.parent_is_remote = false;
    s.link = NULL;
    s.state = c->trace.state;
    s.method = c->method->name;
    s.target = STR_NONE;
    s.start_us = traces_wall_us(traces, c->sent_us);
    s.end_us = traces_wall_us(traces, clock_mono_us());
    snprintf(id, sizeof(id), "%llu", (unsigned long long)c->pending.id);
    span_text(&s, "mcp.method.name", c->method->name);
    add_target(&s, c);
    span_text(&s, "jsonrpc.request.id", str_of(id));
    if (c->server_era == c->catalog->era)
        span_text(&s, "mcp.protocol.version", c->catalog->version);
    add_server(&s, upstream_config(c->up));
    add_error(&s, c, error_type);
    traces_add(traces, &s);
}
