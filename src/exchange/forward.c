/* SPDX-License-Identifier: Apache-2.0 */
/* The call step for requests that a server answers: the exchange makes a call (call/call.h),
 * attaches to it as a listener and waits until the call is over.  A slow answer becomes a stream if
 * the outlet supports it. */
#include "exchange/exchange.h"

static struct exchange *exchange_of(const struct call_listener *l)
{
    return container_of(l, struct exchange, listener);
}

static void on_over(struct call_listener *l)
{
    exchange_resume(exchange_of(l));
}

static void on_progress(struct call_listener *l, const struct mcp_message *m)
{
    exchange_send_progress(exchange_of(l), m);
}

static bool on_message(struct call_listener *l, const struct mcp_message *m)
{
    return exchange_pass_message(exchange_of(l), m);
}

static bool is_connected(const struct call_listener *l)
{
    const struct exchange *x = exchange_of(l);

    return !x->outlet->is_lost || !x->outlet->is_lost(x);
}

static const struct call_listener_ops listener_ops = {
    .over = on_over,
    .progress = on_progress,
    .message = on_message,
    .is_connected = is_connected,
};

static void on_slow(struct deadline *d)
{
    struct exchange *x = container_of(d, struct exchange, slow);
    x->outlet->slow(x);
}

void exchange_await_slow(struct exchange *x)
{
    if (!x->outlet->slow || x->streaming)
        return;
    x->slow.fn = on_slow;
    deadline_set(&x->sv->slow_calls, &x->slow);
}

static enum exec_kind exec_kind_of(const struct exchange *x)
{
    switch (x->method->service) {
    case SERVE_CALL:
        return EXEC_DURABLE;
    case SERVE_READ:
        return EXEC_NOTE;
    default:
        return EXEC_HOUSEKEEPING;
    }
}

enum step_result exchange_forward(struct exchange *x)
{
    if (x->cancelled_early)
        return exchange_refuse(x, 200, -32000, "the client cancelled the request");
    exchange_read_trace(x);
    struct carrier lasting = {0};
    if (x->builtin && !x->is_session_given)
        lasting = exchange_lasting_carrier(x);
    struct call_args args = {
        .kind = exec_kind_of(x),
        .method = x->method,
        .who = &x->caller.who,
        .request = &x->msg,
        .own = exchange_secrets(x),
        .client_era = x->era,
        .client_version = x->version->name,
        .client_name = exchange_client(x),
        .tool = x->tool,
        .named = x->named,
        .state_node = x->state_node,
        .state_text = x->state_text,
        .header_lines = x->param_headers,
        .up = x->up,
        .catalog = x->catalog,
        .item = x->item,
        .session = x->session,
        .transport = x->transport,
        .plan = *exchange_plan_session(x),
        .carrier = lasting.label,
        .carrier_key = lasting.name,
        .session_named = x->session_named,
        .drop_session_id = x->drops_session_id,
        .adds_handle = x->adds_handle,
        .trace = &x->trace,
    };
    x->session_plan = (struct session_plan){0}; /* the call has it */
    x->call = call_new(x->sv->calls, &args);
    x->listener.ops = &listener_ops;
    call_attach(x->call, &x->listener);
    list_remove(&x->before_call);
    exchange_await_slow(x);
    call_start(x->call);
    return STEP_WAIT;
}
