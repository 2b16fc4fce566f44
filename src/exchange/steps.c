/* SPDX-License-Identifier: Apache-2.0 */
/* THE SPINE.  The path of one client request, from its bytes to its reply, as a table of steps:
 *
 *   message    parse the bytes: JSON-RPC message, era, method    (decode.c)
 *   identify   find out who is calling, or 401, or 429 after     (identify.c)
 *              many invalid credentials
 *   limit      count the request against the quotas, or 429;     (limit.c, front/admit.c,
 *              a tools/call gets a result with isError           identity/quota.c)
 *   transport  look up the legacy Mcp-Session-Id, or 404         (session_select.c, session/)
 *   route      find the server and its catalog                   (route.c, upstream/)
 *   session    find or create the session of a call; the call    (session_select.c,
 *              stores the row of a new one with its intent       session/plan.c)
 *   context    check the values the client gives its session,    (context.c)
 *              or 400
 *   secrets    open what the session keeps secret, so that       (secrets.c, session/)
 *              records show only its name
 *   permit     check that the server has the method and that     (identify.c, pin.c, context.c,
 *              it came before a stop began; then scopes, held    state.c, headers.c)
 *              tools, tasks, context, requestState and
 *              mirrored headers
 *   redeliver  reply with an earlier result of the same call     (redeliver.c)
 *              that did not reach its client
 *   call       answer here, or make a call to the server and     (answer.c, forward.c, call/)
 *              wait until it is over: the call commits its
 *              intent, opens the link, writes the request in
 *              the server's era, sends, receives and commits
 *              its outcome
 *   reply      write JSON, or the last event of a stream         (reply.c)
 *
 * Before the first step, http/server_conn.c has read the whole HTTP request, and front/front.c has
 * checked its head.  Pipes, batches and the streams of 2024 start exchanges too (outlet.h).
 *
 * Each step returns NEXT, WAIT, REPLY or DONE.  An exchange waits for one thing at a time.  When
 * that has happened, exchange_resume() is called on the loop thread and runs the same step again.
 * REPLY skips to the last step.
 *
 * mcp/era.h and mcp/version.h say how the eras differ.  In this file only session, permit and
 * exchange_on_disconnect() look at the era; permit refuses what is not translated.  Every exchange
 * ends in exchange_end(): after its reply in exchange_finish(), or, if its client leaves during a
 * call, at once (absent.c). */
#include "exchange/exchange.h"

#include "base/log.h"
#include "exchange/batch.h"
#include "exchange/measure.h"
#include "exchange/profile_tools.h"

#include <assert.h>

static void exchange_finish(struct exchange *x);

static enum step_result step_message(struct exchange *x)
{
    return exchange_decode(x);
}

static enum step_result step_identify(struct exchange *x)
{
    return exchange_identify(x);
}

static enum step_result step_limit(struct exchange *x)
{
    return exchange_limit(x);
}

static enum step_result step_transport(struct exchange *x)
{
    return exchange_find_transport(x);
}

static enum step_result step_route(struct exchange *x)
{
    return exchange_route(x);
}

/* True: a server answers this request, through a call. */
static bool forwards(const struct exchange *x)
{
    return mcp_method_forwards(x->method) && !x->profile_tool;
}

static enum step_result step_session(struct exchange *x)
{
    if (forwards(x))
        return exchange_select_session(x);
    if (unlikely(x->context != NULL) && x->method->service == SERVE_INITIALIZE)
        return exchange_select_initial_session(x);
    if (x->profile_tool && x->profile_tool->has_session)
        return exchange_select_profile_session(x, x->profile_tool->only_looks);
    if (x->profile && x->profile->mode == PROFILE_DYNAMIC && x->method->service == SERVE_LIST &&
        mcp_era(x->era)->is_stateful && !x->transport)
        return exchange_select_channel_session(x);
    return STEP_NEXT;
}

static enum step_result step_context(struct exchange *x)
{
    return exchange_fix_context(x);
}

/* Other requests record nothing, and open no link of the session. */
static enum step_result step_secrets(struct exchange *x)
{
    if (!forwards(x) && !x->profile_tool && x->method->service != SERVE_LISTEN)
        return STEP_NEXT;
    return exchange_know_secrets(x);
}

static enum step_result step_permit(struct exchange *x)
{
    if (x->catalog && x->method->capability && !catalog_offers(x->catalog, x->method->capability))
        return exchange_refuse(x, mcp_era(x->era)->no_method_status, -32601,
                               "Method not found: this server has no %s", x->method->capability);
    if (unlikely(x->session && x->session->rules) && exchange_limit_session(x) != STEP_NEXT)
        return STEP_REPLY;
    if (!forwards(x))
        return x->profile_tool && profile_tool_changes(x->profile_tool) ? exchange_check_role(x)
                                                                        : STEP_NEXT;
    if (exchange_check_scopes(x) != STEP_NEXT || exchange_check_shared(x) != STEP_NEXT ||
        (unlikely(x->session->rules != NULL) && exchange_check_profile(x) != STEP_NEXT))
        return STEP_REPLY;
    if (upstream_is_guarded(x->up) && exchange_check_pin(x) != STEP_NEXT)
        return STEP_REPLY;
    if (unlikely(catalog_needs_task(x->catalog, x->tool)) && x->method->service == SERVE_CALL)
        return exchange_tool_error(x, exchange_task_text(x, x->up, x->tool).p);
    if (unlikely(upstream_config(x->up)->takes_context) && exchange_check_context(x) != STEP_NEXT)
        return STEP_REPLY;
    if (x->tool.n > EXCHANGE_NAME_MAX)
        return exchange_refuse(x, 200, -32602, "a name or uri has at most %d bytes",
                               EXCHANGE_NAME_MAX);
    if (x->method->service == SERVE_SUBSCRIBE &&
        !mcp_method_find(x->msg.method, upstream_era_for(x->up, x->catalog, x->era)))
        return exchange_refuse(x, 200, -32601, CALL_NOT_TRANSLATED);
    if (x->came_late)
        return exchange_refuse(x, 503, -32000, "Holdfast is stopping; try again in a moment");
    if (exchange_check_state(x) != STEP_NEXT)
        return STEP_REPLY;
    return x->method->service == SERVE_CALL ? exchange_check_params(x) : STEP_NEXT;
}

static enum step_result step_redeliver(struct exchange *x)
{
    return x->method->service == SERVE_CALL && forwards(x) ? exchange_redeliver(x) : STEP_NEXT;
}

static enum step_result step_call(struct exchange *x)
{
    if (!forwards(x))
        return exchange_answer(x);
    if (!x->call)
        return exchange_forward(x);
    if (x->transport)
        hub_linked(x->sv->hub, x->transport);
    return STEP_NEXT;
}

static enum step_result step_reply(struct exchange *x)
{
    if (x->call && !x->status)
        exchange_write_call_reply(x);
    if (unlikely(x->refusal.p != NULL) && exchange_note_refusal(x) == STEP_WAIT)
        return STEP_WAIT;
    exchange_undelivered_after_reply(x);
    exchange_finish(x);
    return STEP_DONE;
}

static const struct step {
    const char *name;
    enum step_result (*run)(struct exchange *x);
} steps[] = {
    {"message", step_message},     {"identify", step_identify}, {"limit", step_limit},
    {"transport", step_transport}, {"route", step_route},       {"session", step_session},
    {"context", step_context},     {"secrets", step_secrets},   {"permit", step_permit},
    {"redeliver", step_redeliver}, {"call", step_call},         {"reply", step_reply},
};

/* True: a reply cannot reach the client now. */
static bool is_left(const struct exchange *x)
{
    return x->aborted || (x->outlet->is_lost && x->outlet->is_lost(x));
}

/* A step that returned WAIT runs again when the exchange is resumed.  Each step sees from its own
 * fields how far it has come. */
static void exchange_run(struct exchange *x)
{
    enum step_result result = STEP_NEXT;

    x->running = true;
    while (result != STEP_DONE) {
        x->resumed = false;
        result = steps[x->step].run(x);
        if (result == STEP_NEXT)
            x->step++;
        else if (result == STEP_REPLY)
            x->step = countof(steps) - 1;
        else if (result == STEP_WAIT && !x->resumed)
            break;
    }
    if (result == STEP_DONE)
        return;
    x->running = false;
    if (x->call && unlikely(is_left(x)))
        exchange_leave(x);
}

void exchange_resume(struct exchange *x)
{
    if (x->running)
        x->resumed = true; /* resumed before the step could return WAIT */
    else
        exchange_run(x);
}

void exchange_reply(struct exchange *x)
{
    x->step = countof(steps) - 1;
    exchange_run(x);
}

/* A modern client that disconnects has cancelled.  A legacy client may come back for its answer.
 * An exchange that waits for its call ends now, the others when their wait is over. */
void exchange_on_disconnect(struct exchange *x)
{
    x->aborted = true;
    if (x->batch)
        batch_on_disconnect(x->batch);
    else if (x->listen)
        exchange_listen_gone(x);
    else if (x->call && !x->running)
        exchange_leave(x);
    else if (mcp_era(x->era)->disconnect_cancels)
        x->cancelled_early = true;
    else
        exchange_undelivered_on_disconnect(x);
}

static void exchange_finish(struct exchange *x)
{
    measure_exchange(x);
    exchange_end_trace(x);
    caller_spend(&x->caller, x->out.n);
    if (unlikely(x->outlet->answered != NULL))
        x->outlet->answered(x);
    exchange_end(x);
}
