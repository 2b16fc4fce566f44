/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that Holdfast answers itself, except lists and handshakes (lists.c): ping, log levels,
 * cancellation, a client's answers and notifications, the standalone stream, the end of a
 * transport.  None of them starts a child. */
#include "exchange/exchange.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/log_quiet.h"
#include "exchange/batch.h"
#include "exchange/profile_tools.h"
#include "json/write.h"

#define MAX_INITIALIZE (8 * 1024) /* bytes, stored with every transport, in memory too */

static enum step_result answer_ping(struct exchange *x)
{
    buf_addz(exchange_begin_result(x), "{}");
    return exchange_end_result(x);
}

/* Marks a request whose call has not begun yet. */
static void cancel_before_call(const struct exchange *x, struct str id)
{
    list_each(&x->sv->before_call, n)
    {
        struct exchange *other = list_entry(n, struct exchange, before_call);
        if (other->transport == x->transport && other->msg.kind == MCP_REQUEST &&
            str_eq(other->id, id))
            other->cancelled_early = true;
    }
}

struct str exchange_cancel_reason(const struct exchange *x)
{
    struct str said = mcp_param_text(&x->msg, STR("reason"), x->mem);
    return said.n ? said : STR("client cancelled");
}

static enum step_result answer_cancelled(struct exchange *x)
{
    const struct js_node *id = mcp_param(&x->msg, STR("requestId"));
    struct call *c = NULL;

    if (id && x->outlet->cancel)
        x->outlet->cancel(x, js_raw(&x->msg.doc, id));
    else if (id && x->transport)
        c = calls_find(x->sv->calls, x->transport, js_raw(&x->msg.doc, id), x->mem);
    if (c)
        call_cancel(c, exchange_cancel_reason(x));
    else if (id && x->transport)
        cancel_before_call(x, js_raw(&x->msg.doc, id));
    return exchange_accept(x);
}

static enum step_result answer_level(struct exchange *x)
{
    const char *level = mcp_level(mcp_param_text(&x->msg, STR("level"), x->mem));
    if (!level)
        return exchange_refuse(x, 200, -32602, "logging/setLevel needs params.level, a log level");
    if (x->transport)
        x->transport->log_level = level;
    return answer_ping(x);
}

/* Passes a client's notification on to the servers of its session. */
static void relay(struct exchange *x)
{
    struct session *s = x->transport ? x->transport->session : NULL;
    struct exec token = exec_housekeeping(EXEC_CLIENT_RESPONSE);
    struct outgoing m = {.method = x->msg.method, .text = x->body};
    struct error ignored;

    for (struct session_link *n = s ? s->links : NULL; n; n = n->next) {
        struct upstream *u = upstreams_find(x->sv->upstreams, n->server);
        struct link *l = u ? upstream_find_link(u, s->link_key, n->generation) : NULL;
        if (l && mcp_era(link_era(l))->is_stateful && !upstream_send(l, &token, NULL, &m, &ignored))
            log_debug("a notification could not be passed on", LS("server", n->server));
    }
}

static enum step_result answer_relayed(struct exchange *x)
{
    if (str_eq(x->msg.method, STR("notifications/progress")))
        hub_progress(x->sv->hub, x->transport, &x->msg);
    else
        relay(x);
    return exchange_accept(x);
}

static enum step_result answer_response(struct exchange *x)
{
    if (x->transport)
        hub_answer(x->sv->hub, x->transport, &x->msg);
    return exchange_accept(x);
}

static void on_stored(struct write_job *job)
{
    exchange_resume(container_of(job, struct transport_change, job)->x);
}

struct transport_change *exchange_change(struct exchange *x)
{
    if (!x->change) {
        x->change = arena_new_of(x->mem, struct transport_change);
        x->change->x = x;
    }
    return x->change;
}

/* Commits x->change, and at initialize the session that begins with it.  NEXT when it is
 * durable. */
static enum step_result store_first(struct exchange *x)
{
    struct transport_change *c = x->change;

    if (!c->job.done) {
        c->op.who = &x->caller.who;
        c->op.transport = &c->row;
        c->job.ops = &c->op;
        c->job.n = 1;
        c->job.done = on_stored;
        c->job.grows = c->op.kind == OP_TRANSPORT_CREATE;
        if (x->session && c->op.kind == OP_TRANSPORT_CREATE)
            exchange_store_session(x);
        if (lane_write(x->sv->lanes, &c->job))
            return STEP_WAIT;
        c->job.ok = error_set(&c->job.err, ERR_UNAVAILABLE, "too much is waiting for the store");
    }
    if (c->job.ok)
        return STEP_NEXT;
    struct error err;
    static struct log_quiet quiet;
    (void)session_plan_committed(&x->session_plan, NULL, 0, false);
    log_warn_quietly(&quiet, "the store refused a write", LZ("why", c->job.err.text));
    if (!lanes_lack_room(x->sv->lanes, &err))
        error_set(&err, ERR_UNAVAILABLE, "the store cannot write right now; try again shortly");
    return exchange_fail(x, &err);
}

/* The params that are stored, and sent to servers of the legacy era: all of them up to
 * MAX_INITIALIZE bytes.  Longer params are cut to the members that the protocol needs, without
 * icons, descriptions and unknown members. */
static struct str copy_params(struct exchange *x, const struct js_node *params)
{
    const struct js_doc *doc = &x->msg.doc;
    const struct js_node *info = js_get(doc, params, STR("clientInfo"));
    static const char *const wanted[] = {"name", "title", "version"};
    struct str all = js_raw(doc, params);
    struct js_writer w;
    struct buf out;

    if (all.n <= MAX_INITIALIZE)
        return all;
    buf_init(&out, SIZE_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_key(&w, STR("protocolVersion"));
    js_raw_value(&w, js_raw(doc, js_get(doc, params, STR("protocolVersion"))));
    const struct js_node *capabilities = js_get(doc, params, STR("capabilities"));
    js_key(&w, STR("capabilities"));
    js_raw_value(&w, capabilities ? js_raw(doc, capabilities) : STR("{}"));
    js_key(&w, STR("clientInfo"));
    js_object(&w);
    for (size_t i = 0; i < countof(wanted); i++) {
        const struct js_node *v = js_get(doc, info, str_of(wanted[i]));
        if (!v)
            continue;
        js_key(&w, str_of(wanted[i]));
        js_raw_value(&w, js_raw(doc, v));
    }
    js_object_end(&w);
    js_object_end(&w);
    struct str copy = arena_dup(x->mem, buf_str(&out));
    buf_release(&out);
    return copy;
}

/* The transport's row is committed before its id is given out, so the id stays valid after a
 * crash. */
static enum step_result answer_initialize(struct exchange *x)
{
    const struct js_node *params = x->msg.params;
    struct transport_change *c = exchange_change(x);
    struct transport_row *row = &c->row;

    if (!c->job.done) {
        struct str asked = mcp_param_text(&x->msg, STR("protocolVersion"), x->mem);
        if (!asked.p || !js_type_is(params, JS_OBJECT))
            return exchange_refuse(x, 200, -32602, "initialize needs params.protocolVersion");
        struct str copy = copy_params(x, params);
        if (copy.n > MAX_INITIALIZE)
            return exchange_refuse(x, 200, -32602,
                                   "protocolVersion, capabilities and the client's name, title and "
                                   "version have %zu bytes in initialize; at most %d are taken",
                                   copy.n, MAX_INITIALIZE);
        x->version = mcp_version_negotiate(asked);
        if (!c->id[0])
            token_transport_id(c->id);
        *row = (struct transport_row){
            .tenant = x->caller.who.tenant,
            .owner = x->caller.who.owner,
            .endpoint = x->endpoint,
            .protocol_version = x->version->name,
            .initialize_params = copy,
            .created_ms = clock_life_ms(),
            .last_used_ms = clock_life_ms(),
            .session_id = x->session ? x->session->id : STR_NONE,
        };
        token_hash(str_of(c->id), row->id_hash);
        c->op.kind = OP_TRANSPORT_CREATE;
        transports_make_room(x->sv->sessions, &x->caller.who);
    }
    enum step_result stored = store_first(x);
    if (stored != STEP_NEXT)
        return stored;
    if (x->session && exchange_session_stored(x) != STEP_NEXT)
        return STEP_REPLY;
    struct transport *t = transport_new(x->sv->sessions, row);
    if (x->session) {
        transport_link(t, x->session);
        t->link_stored = true;
        hub_linked(x->sv->hub, t);
    }
    if (x->outlet->initialized)
        x->outlet->initialized(x, t);
    transport_unref(t);
    x->headers = arena_printf(x->mem, "Mcp-Session-Id: %s\r\n", c->id);
    exchange_write_initialized(x);
    return exchange_end_result(x);
}

static enum step_result answer_delete(struct exchange *x)
{
    if (!x->transport)
        return exchange_refuse(x, 400, -32600,
                               "DELETE takes an Mcp-Session-Id; a handle is ended over REST");
    struct transport_change *c = exchange_change(x);
    if (!c->job.done) {
        transport_fill_row(x->transport, &c->row);
        c->row.ended_ms = clock_life_ms();
        c->op.kind = OP_TRANSPORT_END;
    }
    enum step_result stored = store_first(x);
    if (stored != STEP_NEXT)
        return stored;
    hub_transport_ended(x->sv->hub, x->transport);
    streams_forget(x->sv->streams, x->transport);
    transport_ended(x->transport);
    x->status = 204;
    return STEP_REPLY;
}

enum step_result exchange_answer(struct exchange *x)
{
    static enum step_result (*const answers[])(struct exchange * x) = {
        [SERVE_INITIALIZE] = answer_initialize,
        [SERVE_PING] = answer_ping,
        [SERVE_DISCOVER] = exchange_answer_discover,
        [SERVE_LIST] = exchange_answer_list,
        [SERVE_SET_LEVEL] = answer_level,
        [SERVE_LISTEN] = exchange_answer_listen,
        [SERVE_CANCELLED] = answer_cancelled,
        [SERVE_RELAYED] = answer_relayed,
        [SERVE_ANSWERED] = answer_response,
        [SERVE_ACCEPTED] = exchange_accept,
        [SERVE_STREAM] = exchange_answer_stream,
        [SERVE_END] = answer_delete,
        [SERVE_BATCH] = exchange_answer_batch,
    };
    return x->profile_tool ? exchange_answer_profile_tool(x) : answers[x->method->service](x);
}
