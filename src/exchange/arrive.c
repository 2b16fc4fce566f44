/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of an exchange.  At the beginning the arrival of any outlet (an HTTP
 * request, an item of a batch, a line of a pipe, a stream of 2024) is copied, and the other members
 * get their defaults.  Then steps.c drives the exchange.  At the end everything is released. */
#include "exchange/exchange.h"

#include "base/clock.h"

#include <stddef.h>

static const struct refusal *keep_refusal(const struct refusal *from, struct arena *mem)
{
    struct refusal *copy = arena_new_of(mem, struct refusal);

    *copy = *from;
    return copy;
}

void exchange_start(struct services *sv, const struct arrival *a)
{
    struct exchange *x = arena_alloc(a->mem, sizeof(*x));

    memset(x, 0, offsetof(struct exchange, admission));
    session_query_init(&x->query);
    x->sv = sv;
    x->outlet = a->outlet;
    x->outlet_data = a->outlet_data;
    x->http = a->http;
    x->head = a->head;
    x->mem = a->mem;
    x->body = a->body;
    if (a->caller)
        caller_take(&x->caller, a->caller);
    else
        caller_init(&x->caller, sv->front->config);
    x->began_us = a->http ? a->http->began_us : clock_mono_us();
    x->server = a->server;
    x->profile_name = a->profile;
    x->by_proxy = a->by_proxy;
    x->is_2024 = a->is_2024;
    if (a->profile.p)
        x->profile = config_profile(x->caller.config, a->profile);
    x->endpoint = a->endpoint;
    x->verb = a->verb;
    x->key = a->key;
    x->path_key = a->path_key;
    x->channel = a->channel;
    x->channel_resumes = a->channel_resumes;
    if (a->transport_id)
        memcpy(exchange_change(x)->id, a->transport_id, sizeof(x->change->id));
    x->has_message = str_eq(a->verb, STR("POST"));
    x->version = mcp_version_default;
    if (a->who) {
        x->caller.who = *a->who;
        x->caller.is_known = true;
    }
    if (a->refused)
        x->refused = keep_refusal(a->refused, a->mem);
    if (a->transport) {
        transport_ref(a->transport);
        x->transport = a->transport;
    }
    if (a->session) {
        session_ref(a->session);
        x->session = a->session;
        x->is_session_given = true;
    }
    deadline_init(&x->slow, NULL);
    buf_init(&x->out, 64u * 1024 * 1024);
    x->came_late = sv->front->closing || (sv->front->draining && !x->http);
    sv->front->under_way++;
    list_push(&sv->before_call, &x->before_call);
    if (x->outlet->begin)
        x->outlet->begin(x);
    exchange_resume(x);
}

void exchange_end(struct exchange *x)
{
    list_remove(&x->before_call);
    call_detach(&x->listener);
    session_plan_release(&x->session_plan); /* made for a call that was then refused */
    exchange_release_secrets(x);
    if (x->take)
        undelivered_take_release(x->take);
    deadline_clear(&x->slow);
    if (x->up)
        upstream_unref(x->up);
    exchange_release_session_catalogs(x);
    if (x->has_plan)
        plan_release(&x->plan);
    catalog_unref(x->catalog);
    session_unref(x->session);
    transport_unref(x->transport);
    caller_release(&x->caller);
    x->sv->front->under_way--;
    x->outlet->finish(x); /* may free x */
}
