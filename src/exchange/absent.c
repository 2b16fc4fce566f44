/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a running call has left.  Its exchange ends at once, with its connection and the
 * memory of its request.  The call goes on, and an absent client takes the place of the exchange
 * among its listeners.  The absent client lives in the memory of the call and holds only:
 *
 *   the share of the quotas    a call counts against its limits until it is over
 *   the resumable stream       gets the messages of the server and the reply; the client may resume
 *                              it with Last-Event-ID
 *   the time of the request    metrics count the request when it is over
 *
 * Without a stream, messages of the server do not reach this client.  When the call is over, an
 * exchange is made from the call for the step `reply` alone. */
#include "exchange/exchange.h"

#define MAX_MESSAGE (64u * 1024 * 1024)

struct absent_client {
    struct call_listener listener;
    struct services *sv;
    struct stream *stream; /* one reference; NULL: the client cannot come back to its request */
    bool keeps_result;     /* its outlet stores a reply that is lost */
    struct caller caller;
    struct listener_scope scope;
    int64_t began_us;
};

static struct absent_client *absent_of(const struct call_listener *l)
{
    return container_of(l, struct absent_client, listener);
}

static void on_connected(void *arg, bool is_connected)
{
    struct absent_client *a = arg;

    if (is_connected)
        call_client_back(a->listener.call);
    else
        call_client_lost(a->listener.call);
}

static bool say(void *arg, struct str json, enum stream_weight weight)
{
    struct absent_client *a = arg;

    if (!a->stream)
        return false;
    caller_spend(&a->caller, json.n);
    stream_send(a->stream, json, weight);
    return true;
}

static bool ask(void *arg, struct str json)
{
    return say(arg, json, STREAM_MUST);
}

static void on_progress(struct call_listener *l, const struct mcp_message *m)
{
    const struct mcp_message *request = &l->call->request;
    const struct js_node *token = js_get(&request->doc, request->meta, STR("progressToken"));
    struct buf text;

    if (!absent_of(l)->stream || !token)
        return;
    buf_init(&text, MAX_MESSAGE);
    mcp_write_progress(m, js_raw(&request->doc, token), &text);
    (void)!say(absent_of(l), buf_str(&text), STREAM_PROGRESS);
    buf_release(&text);
}

static bool on_message(struct call_listener *l, const struct mcp_message *m)
{
    struct absent_client *a = absent_of(l);
    enum catalog_kind kind = catalog_kind_changed(m->method);

    if (m->kind == MCP_REQUEST)
        return exchange_ask(a->sv, l->call, m, ask, a);
    if (kind != CATALOG_KINDS &&
        !listener_may_see(a->sv, &a->scope, l->call->session, l->call->up, kind))
        return true; /* dropped */
    return say(a, m->doc.text, mcp_is_droppable(m) ? STREAM_MAY : STREAM_MUST);
}

static bool is_connected(const struct call_listener *l)
{
    const struct absent_client *a = absent_of(l);

    return a->stream ? stream_is_connected(a->stream) : !a->keeps_result;
}

/* The outlet of the exchange that writes the reply. */

static bool outlet_is_lost(const struct exchange *x)
{
    return !is_connected(&((const struct absent_client *)x->outlet_data)->listener);
}

static void outlet_finish(struct exchange *x)
{
    struct absent_client *a = x->outlet_data;

    if (a->stream) {
        stream_on_connected(a->stream, NULL, NULL);
        stream_finish(a->stream, buf_str(&x->out), x->is_error);
        stream_unref(a->stream);
    }
    buf_release(&x->out);
    call_detach(&a->listener); /* frees a and x too, with the call */
}

static const struct outlet outlet_absent = {
    .name = "absent",
    .finish = outlet_finish,
    .is_lost = outlet_is_lost,
};

static struct exchange *make_exchange(struct absent_client *a)
{
    static const struct http_head no_head;
    struct call *c = a->listener.call;
    struct exchange *x = arena_new_of(c->mem, struct exchange);

    x->sv = a->sv;
    x->outlet = &outlet_absent;
    x->outlet_data = a;
    x->head = &no_head;
    x->mem = c->mem;
    x->began_us = a->began_us;
    x->aborted = !a->stream;
    x->has_message = true;
    x->msg = c->request;
    x->id = c->request.id;
    x->era = c->client_era;
    x->version = mcp_version_default;
    x->method = c->method;
    x->call = c;
    x->trace = c->trace;
    x->stream = a->stream;
    x->streaming = a->stream != NULL;
    caller_take(&x->caller, &a->caller);
    list_init(&x->before_call);
    deadline_init(&x->slow, NULL);
    buf_init(&x->out, MAX_MESSAGE);
    a->sv->front->under_way++;
    return x;
}

static void on_over(struct call_listener *l)
{
    struct absent_client *a = absent_of(l);

    if (l->call->transport)
        hub_linked(a->sv->hub, l->call->transport);
    exchange_reply(make_exchange(a));
}

static const struct call_listener_ops listener_ops = {
    .over = on_over,
    .progress = on_progress,
    .message = on_message,
    .is_connected = is_connected,
};

/* The scope of x with texts that outlive x. */
static struct listener_scope scope_of(const struct exchange *x, struct call *c)
{
    struct listener_scope scope = exchange_listener_scope(x);

    scope.endpoint = arena_dup(c->mem, scope.endpoint);
    scope.who = c->who;
    scope.client = arena_dup(c->mem, scope.client);
    scope.permissions = arena_dup(c->mem, scope.permissions);
    return scope;
}

static struct absent_client *replace(struct exchange *x)
{
    struct call *c = x->call;
    struct absent_client *a = arena_new_of(c->mem, struct absent_client);

    a->listener.ops = &listener_ops;
    a->sv = x->sv;
    a->keeps_result = x->outlet->is_lost != NULL;
    a->scope = scope_of(x, c);
    a->began_us = x->began_us;
    caller_take(&a->caller, &x->caller);
    a->caller.who = c->who;
    a->stream = x->stream;
    x->stream = NULL;
    if (a->stream) {
        stream_on_connected(a->stream, on_connected, a);
        stream_on_gone(a->stream, NULL, NULL);
    }
    call_attach(c, &a->listener);
    return a;
}

void exchange_leave(struct exchange *x)
{
    struct call *c = x->listener.call;

    if (!c || c->state == CALL_OVER)
        return;
    struct absent_client *a = replace(x);
    exchange_end(x); /* frees x */
    if (mcp_era(c->client_era)->disconnect_cancels)
        call_abandon(&a->listener, STR("client disconnected"));
    else
        call_client_lost(c);
}
