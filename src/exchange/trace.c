/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a request.  Its parent is params._meta.traceparent, as MCP says; the header
 * `traceparent` of the HTTP request is the parent without it, and a link beside it.  With traces on,
 * each request of a client becomes a server span when its reply is written (docs/traces.md). */
#include "exchange/exchange.h"

#include "audit/event_id.h"
#include "base/clock.h"
#include "profile/tools.h"
#include "trace/traces.h"

#include <stdio.h>

/* True: the text is a valid parent; x->trace keeps it. */
static bool take_parent(struct exchange *x, struct str parent, struct str state)
{
    struct trace *t = &x->trace;

    if (!parent.p || !trace_context_parse(parent, &t->parent))
        return false;
    t->parent_text = parent;
    t->state = state.p && trace_state_is_valid(state) ? state : STR_NONE;
    return true;
}

static struct str meta_text(struct exchange *x, struct str name)
{
    const struct js_node *v = js_get(&x->msg.doc, x->msg.meta, name);

    return js_type_is(v, JS_STRING) ? js_text(&x->msg.doc, v, x->mem) : STR_NONE;
}

/* A header that is given twice names nothing. */
static struct str header_text(const struct exchange *x, struct str name)
{
    struct str value = http_header_get(x->head, name);

    return value.p && http_header_count(x->head, name) == 1 ? value : STR_NONE;
}

void exchange_read_trace(struct exchange *x)
{
    struct trace *t = &x->trace;

    if (t->is_read)
        return;
    t->is_read = true;
    struct str header = header_text(x, STR("traceparent"));
    bool in_meta = x->msg.meta && take_parent(x, meta_text(x, STR("traceparent")),
                                              meta_text(x, STR("tracestate")));
    if (in_meta)
        t->is_linked = header.p && trace_context_parse(header, &t->linked);
    else
        (void)take_parent(x, header, header_text(x, STR("tracestate")));
    t->is_recorded =
        traces_are_on(x->sv->traces) && (!t->parent_text.p || (t->parent.flags & TRACE_SAMPLED));
    if (t->is_recorded)
        t->own = t->parent_text.p ? trace_context_child(&t->parent) : trace_context_new();
}

/* Where the client is. */
static void add_network(struct span *s, const struct exchange *x)
{
    bool is_http = x->http || x->batch || x->is_2024;

    if (x->outlet->finish == outlet_http.finish || is_http) {
        span_text(s, "network.transport", STR("tcp"));
        span_text(s, "network.protocol.name", STR("http"));
    } else if (str_eq(str_of(x->outlet->name), STR("channel"))) {
        span_text(s, "network.transport", STR("pipe"));
    }
}

static void add_target(struct span *s, struct exchange *x)
{
    struct str name = x->call ? x->call->tool : x->tool;
    bool is_known = x->item || (x->call && (x->call->item || x->call->outcome == OUTCOME_OK));

    if (x->profile_tool) {
        name = str_of(x->profile_tool->name);
        is_known = true;
    }
    if (!name.p)
        name = mcp_param_text(&x->msg, STR("name"), x->mem);
    if (x->method->service == SERVE_CALL) {
        span_text(s, "gen_ai.operation.name", STR("execute_tool"));
        span_text(s, "gen_ai.tool.name", name);
    } else if (x->method->target == TARGET_NAME) {
        span_text(s, "gen_ai.prompt.name", name);
    } else {
        if (x->method->target == TARGET_URI)
            span_text(s, "mcp.resource.uri", span_uri(name, x->mem));
        return;
    }
    s->target = is_known ? name : STR_NONE;
}

static bool is_tool_error(const struct exchange *x)
{
    return (x->call && x->call->outcome == OUTCOME_TOOL_ERROR) || (x->refusal.p && !x->is_error);
}

/* The code that the client got, and the reason without one. */
static void add_error(struct span *s, struct exchange *x)
{
    const struct call *c = x->call;
    int64_t code = x->error_code;
    char text[24];

    if (!code && c && c->has_answer && c->answer.error &&
        !js_to_i64(&c->answer.doc, js_get(&c->answer.doc, c->answer.error, STR("code")), &code))
        code = 0;
    s->is_error = x->is_error || is_tool_error(x);
    if (!s->is_error)
        return;
    if (is_tool_error(x)) {
        span_text(s, "error.type", STR("tool_error"));
        return;
    }
    snprintf(text, sizeof(text), "%lld", (long long)code);
    struct str shown = arena_dup(x->mem, str_of(text));
    if (code)
        span_text(s, "rpc.response.status_code", shown);
    if (c && !c->has_answer && c->outcome != OUTCOME_OK)
        span_text(s, "error.type", call_outcome_name(c->outcome));
    else
        span_text(s, "error.type", code ? shown : STR("_OTHER"));
}

static void add_where(struct span *s, const struct exchange *x)
{
    const struct session *session = x->call ? x->call->session : x->session;
    struct upstream *up = x->call ? x->call->up : x->up;

    span_text(s, "mcp.session.id", session ? session->id : STR_NONE);
    span_text(s, "holdfast.server", up ? upstream_name(up) : STR_NONE);
    if (x->call && x->call->exec.id)
        span_text(s, "holdfast.event.id",
                  str_of(event_id_format(x->call->exec.id, arena_alloc(x->mem, EVENT_ID_TEXT))));
}

static void fill_span(struct exchange *x, struct span *s)
{
    struct str id = x->msg.id;

    span_text(s, "mcp.method.name", s->method);
    add_target(s, x);
    if (id.n > 1 && id.p[0] == '"')
        id = js_text(&x->msg.doc, x->msg.id_node, x->mem);
    span_text(s, "jsonrpc.request.id", id);
    span_text(s, "mcp.protocol.version", x->call ? x->call->client_version : x->version->name);
    add_where(s, x);
    add_network(s, x);
    add_error(s, x);
}

void exchange_end_trace(struct exchange *x)
{
    struct traces *traces = x->sv->traces;
    struct span s;

    if (likely(!traces_are_on(traces)) || x->msg.kind != MCP_REQUEST || !x->msg.id.p || !x->method)
        return;
    exchange_read_trace(x);
    if (!x->trace.is_recorded)
        return;
    s.n_attributes = 0;
    s.kind = SPAN_SERVER;
    s.context = x->trace.own;
    s.parent = x->trace.parent_text.p ? &x->trace.parent : NULL;
    s.parent_is_remote = true;
    s.link = x->trace.is_linked ? &x->trace.linked : NULL;
    s.state = x->trace.state;
    s.method = x->method->name;
    s.target = STR_NONE;
    s.start_us = traces_wall_us(traces, x->began_us);
    s.end_us = traces_wall_us(traces, clock_mono_us());
    fill_span(x, &s);
    traces_add(traces, &s);
}
