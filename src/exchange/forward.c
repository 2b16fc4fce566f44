/* SPDX-License-Identifier: Apache-2.0 */
/* The call step for requests that a server answers: the exchange fills in a call (call/call.h) and
 * waits.  From then on the call holds upstream, catalog, session and transport.  A slow answer
 * becomes a stream if the outlet supports it. */
#include "exchange/exchange.h"

static void on_answer(struct call *c)
{
    exchange_resume(c->user);
}

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

enum step_result exchange_forward(struct exchange *x)
{
    struct call *c = &x->call;

    if (x->unwanted)
        return exchange_refuse(x, 200, -32000, "the client cancelled the request");
    c->user = x;
    c->kind = x->method->service == SERVE_CALL   ? EXEC_DURABLE
              : x->method->service == SERVE_READ ? EXEC_NOTE
                                                 : EXEC_HOUSEKEEPING;
    c->mem = x->mem;
    c->who = &x->who;
    c->request = &x->msg;
    c->own = exchange_secrets(x);
    c->client_era = x->era;
    c->client_version = x->version->name;
    c->tool = x->tool;
    c->named = x->named;
    c->up = x->up;
    c->catalog = x->catalog;
    c->item = x->item;
    c->session = x->session;
    c->transport = x->transport;
    c->plan = *exchange_plan_session(x);
    c->session_named = x->session_named;
    c->drop_session_id = x->drops_session_id;
    c->state_node = x->state_node;
    c->state_text = x->state_text;
    c->header_lines = x->param_headers;
    c->on_answer = c->on_outcome_durable = on_answer;
    c->on_progress = exchange_send_progress;
    c->on_message = exchange_tell;
    x->up = NULL; /* the call holds these from now on */
    x->catalog = NULL;
    x->session = NULL;
    x->transport = NULL;
    x->session_plan = (struct session_plan){0};
    x->has_call = true;
    list_remove(&x->before_call);
    exchange_await_slow(x);
    call_start(x->sv->calls, c);
    return STEP_WAIT;
}
