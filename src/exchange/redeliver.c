/* SPDX-License-Identifier: Apache-2.0 */
/* Results that did not reach their client.  This file decides when a result is stored as
 * undelivered (call/undelivered.h), and replies with it when the same session repeats the same
 * call.
 *
 *     client gone      exchange_undelivered_on_disconnect()  the index expects the call's result
 *     answered         exchange_undelivered_on_answer()      sealed, committed with the outcome
 *     reply written    exchange_undelivered_after_reply()    client gone since: a commit of its own
 *     stream resumed   exchange_undelivered_on_resume()      the index expects it no longer
 *     connection lost  exchange_unsent()                     part of the reply unsent: a commit of
 *                                                            its own
 *     asked again      exchange_redeliver()                  deleted durably, noted in the audit,
 *                                                            written
 *
 * Only for legacy clients: a 2026-07-28 client that disconnects has cancelled.  Errors of a call
 * are not stored.  Nothing is stored for derived sessions: all clients of an owner that name no
 * session share one, and must not get each other's results. */
#include "exchange/exchange.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>

/* Smaller replies fit into the socket's buffer at once. */
#define UNSENT_MIN ((size_t)16 * 1024)

static const struct str reply_head = {"{\"jsonrpc\":\"2.0\",\"id\":", 22};
static const struct str result_key = {",\"result\":", 10};

static bool is_lost(const struct exchange *x)
{
    return x->outlet->is_lost && x->outlet->is_lost(x);
}

static bool may_be_undelivered(const struct exchange *x, const struct session *s)
{
    return !mcp_era(x->era)->disconnect_cancels && x->method && x->method->service == SERVE_CALL &&
           x->id.p && s && s->origin != ORIGIN_DERIVED;
}

static struct undelivered_ask ask_of(const struct exchange *x)
{
    const struct session *s = x->has_call ? x->call.session : x->session;
    const struct upstream *up = x->has_call ? x->call.up : x->up;
    const struct js_node *arguments = mcp_param(&x->msg, STR("arguments"));

    return (struct undelivered_ask){
        .who = &x->who,
        .session_id = s->id,
        .server = upstream_name(up),
        .method = x->msg.method,
        .tool = x->tool,
        .arguments = arguments ? js_raw(&x->msg.doc, arguments) : STR_NONE,
    };
}

static struct undelivered_result *expect(const struct exchange *x)
{
    struct undelivered_ask ask = ask_of(x);
    return undelivered_expect(x->sv->undelivered, &ask);
}

static void expect_undelivered(struct exchange *x)
{
    x->call.undelivered = expect(x);
    x->call.undelivered_given_up = !x->call.undelivered;
}

/* The result inside the reply that was just written. */
static struct str written_result(const struct exchange *x)
{
    size_t at = reply_head.n + x->id.n + result_key.n;

    if (x->is_error || x->status != 200 || x->out.n <= at)
        return STR_NONE;
    assert(memcmp(x->out.p + at - result_key.n, result_key.p, result_key.n) == 0);
    return str_n(x->out.p + at, x->out.n - at - 1);
}

void exchange_undelivered_on_disconnect(struct exchange *x)
{
    struct call *c = &x->call;

    if (x->take && !x->has_call && x->aborted)
        undelivered_take_cancel(x->take);
    else if (x->has_call && !c->undelivered && !c->undelivered_given_up && is_lost(x) &&
             c->state != CALL_DONE && may_be_undelivered(x, c->session))
        expect_undelivered(x);
}

static void give_up(struct call *c)
{
    undelivered_result_end(c->undelivered, false);
    c->undelivered = NULL;
    c->undelivered_given_up = true;
}

/* A request that meanwhile waits for this result has to call the server. */
void exchange_undelivered_on_resume(struct exchange *x)
{
    struct call *c = &x->call;

    if (x->has_call && c->undelivered && !undelivered_result_is_sealed(c->undelivered)) {
        give_up(c);
        c->undelivered_given_up = false;
    }
}

/* Seals the result in the written reply, or gives it up. */
static void seal_written(struct exchange *x)
{
    struct call *c = &x->call;
    struct str result = written_result(x);

    if (!result.p || !undelivered_result_seal(c->undelivered, c->exec.id, result, 0))
        give_up(c);
}

/* The reply is written here to get the bytes of its result.  It is written again when the outcome
 * is durable, because only then its content is final.  l->lost is restored, because the client has
 * not seen the first reply. */
void exchange_undelivered_on_answer(struct exchange *x)
{
    struct call *c = &x->call;

    if (!c->undelivered && !c->undelivered_given_up && is_lost(x) &&
        may_be_undelivered(x, c->session))
        expect_undelivered(x);
    if (!c->undelivered)
        return;
    if (c->state != CALL_ANSWERED || !c->has_answer || c->answer.error) {
        give_up(c);
        return;
    }
    struct session_link *l = session_link_of(c->session, upstream_name(c->up));
    bool was_lost = l && l->lost;
    exchange_write_call_reply(x);
    seal_written(x);
    if (l)
        l->lost = was_lost;
    buf_reset(&x->out);
    x->status = 0;
    x->is_error = false;
}

/* If the client of the repeated call is gone too, stores the result again unchanged. */
static void store_again(struct exchange *x)
{
    struct undelivered_take *t = x->take;
    struct undelivered_result *k = is_lost(x) ? expect(x) : NULL;

    if (k && undelivered_result_seal(k, t->exec, t->result, t->until_ms)) {
        if (x->stream)
            stream_set_undelivered(x->stream, undelivered_result_id(k));
        undelivered_result_write(k);
    } else if (k) {
        undelivered_result_end(k, false);
    }
}

/* The outcome's commit has stored the result. */
static void stored_with_outcome(struct exchange *x)
{
    struct call *c = &x->call;
    int64_t id = undelivered_result_id(c->undelivered);

    undelivered_result_end(c->undelivered, c->undelivered_stored);
    c->undelivered = NULL;
    if (!is_lost(x)) /* the client has resumed its stream */
        undelivered_drop(x->sv->undelivered, id);
    else if (x->stream)
        stream_set_undelivered(x->stream, id);
}

/* Copies session id, server and tool: session and server may be freed before the reply is sent. */
static void watch_sending(struct exchange *x)
{
    struct undelivered_ask *ask = arena_new_of(x->mem, struct undelivered_ask);

    *ask = ask_of(x);
    ask->session_id = arena_dup(x->mem, ask->session_id);
    ask->server = arena_dup(x->mem, ask->server);
    ask->tool = arena_dup(x->mem, ask->tool);
    x->unsent = ask;
}

/* A reply being sent, with everything needed to store its result. */
struct unsent {
    struct http_receipt receipt;
    struct undelivered *home;
    struct arena *mem;
    struct principal who;
    struct str session_id, result;
    uint8_t digest[32];
    int64_t exec;
};

static void on_receipt(struct http_receipt *receipt, bool is_sent)
{
    struct unsent *u = container_of(receipt, struct unsent, receipt);
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
    struct unsent *u = arena_new_of(mem, struct unsent);
    u->receipt.fn = on_receipt;
    u->home = x->sv->undelivered;
    u->mem = mem;
    u->who = x->who;
    u->who.tenant = arena_dup(mem, x->who.tenant);
    u->who.owner = arena_dup(mem, x->who.owner);
    u->session_id = arena_dup(mem, x->unsent->session_id);
    u->result = arena_dup(mem, result);
    u->exec = x->call.exec.id;
    undelivered_digest(x->unsent, u->digest);
    return &u->receipt;
}

void exchange_undelivered_after_reply(struct exchange *x)
{
    struct call *c = &x->call;

    if (x->take && x->take->found)
        store_again(x);
    if (!x->has_call)
        return;
    if (c->undelivered && undelivered_result_is_sealed(c->undelivered)) {
        stored_with_outcome(x);
        return;
    }
    if (!c->undelivered && !c->undelivered_given_up && c->has_answer &&
        may_be_undelivered(x, c->session)) {
        if (is_lost(x))
            expect_undelivered(x);
        else if (x->out.n >= UNSENT_MIN && x->http)
            watch_sending(x);
    }
    if (!c->undelivered)
        return;
    seal_written(x);
    if (!c->undelivered)
        return;
    if (x->stream)
        stream_set_undelivered(x->stream, undelivered_result_id(c->undelivered));
    undelivered_result_write(c->undelivered);
    c->undelivered = NULL;
}

static void note(const struct exchange *x)
{
    struct exec_what what = exchange_what(x);
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
                               "a kept result could not be read; make the call again");
    m.result = js_root(&m.doc);
    clock_format(t->at_ms, at);
    struct bridge_result b = {
        .m = &m,
        .from = x->era,
        .to = x->era,
        .id = x->id,
        .redelivered_at = str_of(at),
        .mem = x->mem,
    };
    session_used(x->session);
    note(x);
    log_debug("a kept result was handed out", LS("server", upstream_name(x->up)));
    x->status = 200;
    (void)buf_room(&x->out, t->result.n + x->id.n + 256);
    bridge_write_result(&b, &x->out);
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
        if (!undelivered_count(x->sv->undelivered) || !may_be_undelivered(x, x->session))
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
