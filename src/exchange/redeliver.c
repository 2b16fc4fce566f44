/* SPDX-License-Identifier: Apache-2.0 */
/* Results that did not reach their client, as the exchange sees them.  The call keeps its result
 * (call/call_result.c); this file tells the call when its client leaves and returns, and replies
 * with a stored result when the same session repeats the same call.
 *
 *     client gone      exchange_undelivered_on_disconnect()
 *     stream resumed   exchange_undelivered_on_resume()
 *     reply written    exchange_undelivered_after_reply()
 *     connection lost  exchange_unsent()       part of the reply was not sent: a commit of its own
 *     asked again      exchange_redeliver()    deleted durably, noted in the audit, written */
#include "exchange/exchange.h"

#include "base/clock.h"
#include "base/log.h"

/* Smaller replies fit into the socket's buffer at once. */
#define UNSENT_MIN ((size_t)16 * 1024)

static bool is_lost(const struct exchange *x)
{
    return x->outlet->is_lost && x->outlet->is_lost(x);
}

/* The same rule as call_keeps_result(), before there is a call. */
static bool may_be_undelivered(const struct exchange *x)
{
    return !mcp_era(x->era)->disconnect_cancels && x->id.p && x->session &&
           x->session->origin != ORIGIN_DERIVED;
}

static struct undelivered_ask ask_of(const struct exchange *x)
{
    const struct js_node *arguments = mcp_param(&x->msg, STR("arguments"));

    return (struct undelivered_ask){
        .who = &x->caller.who,
        .session_id = x->session->id,
        .server = upstream_name(x->up),
        .method = x->msg.method,
        .tool = x->tool,
        .arguments = arguments ? js_raw(&x->msg.doc, arguments) : STR_NONE,
    };
}

/* The result inside the reply that was just written. */
static struct str written_result(const struct exchange *x)
{
    if (x->is_error || x->status != 200)
        return STR_NONE;
    return call_reply_result(buf_str(&x->out), x->id);
}

void exchange_undelivered_on_disconnect(struct exchange *x)
{
    if (x->call)
        call_client_lost(x->call);
    else if (x->take && x->aborted)
        undelivered_take_cancel(x->take);
}

void exchange_undelivered_on_resume(struct exchange *x)
{
    if (x->call)
        call_client_back(x->call);
}

/* If the client of the repeated call is gone too, stores the result again unchanged. */
static void store_again(struct exchange *x)
{
    struct undelivered_take *t = x->take;
    struct undelivered_ask ask = ask_of(x);
    struct undelivered_result *k = is_lost(x) ? undelivered_expect(x->sv->undelivered, &ask) : NULL;

    if (k && undelivered_result_seal(k, t->exec, t->result, t->until_ms)) {
        if (x->stream)
            stream_set_undelivered(x->stream, undelivered_result_id(k));
        undelivered_result_write(k);
    } else if (k) {
        undelivered_result_end(k, false);
    }
}

/* A reply being sent, with everything needed to store its result. */
struct unsent_reply {
    struct http_receipt receipt;
    struct undelivered *home;
    struct arena *mem; /* holds this struct too, once the reply waits for its connection */
    struct principal who;
    struct str session_id, result;
    uint8_t digest[32];
    int64_t exec;
};

/* Session, server and call may be freed before the reply is sent, so their texts are copied. */
static void watch_sending(struct exchange *x)
{
    struct unsent_reply *u = arena_new_of(x->mem, struct unsent_reply);
    struct undelivered_ask ask = call_undelivered_ask(x->call);

    u->home = x->sv->undelivered;
    u->session_id = arena_dup(x->mem, ask.session_id);
    u->exec = x->call->exec.id;
    undelivered_digest(&ask, u->digest);
    x->unsent = u;
}

static void on_receipt(struct http_receipt *receipt, bool is_sent)
{
    struct unsent_reply *u = container_of(receipt, struct unsent_reply, receipt);
    struct undelivered_ask ask = {.who = &u->who, .session_id = u->session_id, .digest = u->digest};
    struct undelivered_result *k = is_sent ? NULL : undelivered_expect(u->home, &ask);

    if (k && undelivered_result_seal(k, u->exec, u->result, 0))
        undelivered_result_write(k);
    else if (k)
        undelivered_result_end(k, false);
    arena_free(u->mem); /* frees u too */
}

struct http_receipt *exchange_unsent(struct exchange *x)
{
    struct str result = written_result(x);

    if (!x->unsent || !result.p || result.n > UNDELIVERED_MAX)
        return NULL;
    struct arena *mem = arena_new(2 * UNDELIVERED_MAX);
    struct unsent_reply *u = arena_new_of(mem, struct unsent_reply);
    *u = *x->unsent;
    u->receipt.fn = on_receipt;
    u->mem = mem;
    u->who = x->caller.who;
    u->who.tenant = arena_dup(mem, x->caller.who.tenant);
    u->who.owner = arena_dup(mem, x->caller.who.owner);
    u->session_id = arena_dup(mem, u->session_id);
    u->result = arena_dup(mem, result);
    return &u->receipt;
}

void exchange_undelivered_after_reply(struct exchange *x)
{
    if (x->take && x->take->found)
        store_again(x);
    if (!x->call)
        return;
    bool keeps = x->call->has_answer && call_keeps_result(x->call);
    int64_t stored_ms = call_replied(x->call, keeps ? written_result(x) : STR_NONE, is_lost(x));
    if (stored_ms && x->stream)
        stream_set_undelivered(x->stream, stored_ms);
    else if (keeps && !is_lost(x) && x->out.n >= UNSENT_MIN && x->http)
        watch_sending(x);
}

static void note(const struct exchange *x)
{
    struct exec_request what = exchange_what(x);
    struct exec_result result = {.outcome = STR("redelivered")};

    what.era =
        arena_printf(x->mem, "%.*s>%.*s", STR_ARG(x->version->name), STR_ARG(x->catalog->version));
    what.parent = x->take->exec;
    exec_note(x->sv->audit, &what, &result);
}

static enum step_result hand_out(struct exchange *x)
{
    struct undelivered_take *t = x->take;
    struct mcp_message m = {.kind = MCP_RESPONSE};
    char at[CLOCK_TEXT];

    if (!js_parse(t->result, &js_limits_upstream, t->mem, &m.doc, NULL))
        return exchange_refuse(x, 200, -32603,
                               "an undelivered result could not be read; make the call again");
    m.result = js_root(&m.doc);
    clock_format(t->at_ms, at);
    struct mcp_call_result result = {
        .m = &m,
        .server_era = x->era,
        .client_era = x->era,
        .id = x->id,
        .redelivered_at = str_of(at),
        .mem = x->mem,
    };
    session_used(x->session);
    note(x);
    log_debug("an undelivered result was returned", LS("server", upstream_name(x->up)));
    x->status = 200;
    (void)buf_room(&x->out, t->result.n + x->id.n + 256);
    mcp_write_result(&result, &x->out);
    return STEP_REPLY;
}

static void on_taken(struct undelivered_take *t)
{
    exchange_resume(t->user);
}

enum step_result exchange_redeliver(struct exchange *x)
{
    struct undelivered_take *t = x->take;

    if (!t) {
        if (!undelivered_count(x->sv->undelivered) || !may_be_undelivered(x))
            return STEP_NEXT;
        struct undelivered_ask ask = ask_of(x);
        t = arena_new_of(x->mem, struct undelivered_take);
        t->user = x;
        t->done = on_taken;
        if (!undelivered_find(x->sv->undelivered, &ask, t))
            return STEP_NEXT;
        x->take = t;
        exchange_await_slow(x);
        return STEP_WAIT;
    }
    if (!t->ok)
        return exchange_fail(x, &t->err);
    if (t->found)
        return hand_out(x);
    if (t->was_cancelled)
        return exchange_refuse(x, 503, -32000, "the client left; make the call again");
    return STEP_NEXT;
}
