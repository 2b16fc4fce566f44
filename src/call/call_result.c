/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a call, written in the client's era, and the copy that is kept when no client is
 * there to get it (call/undelivered.h).
 *
 *     client gone        call_client_lost()   the index expects the call's result
 *     stream resumed     call_client_back()   the index expects it no longer
 *     answered           call_keep_result()   no client: sealed, committed with the outcome
 *     reply written      call_replied()       client gone since: a commit of its own
 *
 * Results are kept for legacy clients only: a 2026-07-28 client that disconnects has cancelled.
 * Errors are not kept.  Nothing is kept for derived sessions: all clients of an owner that name no
 * session share one, and must not get each other's results. */
#include "call/call_impl.h"

#include "base/clock.h"
#include "mcp/method.h"

#include <assert.h>

#define MAX_REPLY (256u * 1024 * 1024)

static const struct str reply_head = {"{\"jsonrpc\":\"2.0\",\"id\":", 22};
static const struct str result_key = {",\"result\":", 10};

bool call_asks_beyond_era(const struct call *c)
{
    return mcp_asks_beyond(c->client_era, &c->answer);
}

/* An error cannot carry the news of lost state.  If the client does not see this reply, the next
 * result carries the news too. */
static bool adds_lost_state(struct call *c, bool is_seen, struct str *ret_reason)
{
    struct session_link *l = session_link_of(c->session, upstream_name(c->up));

    if (!c->state_lost || !l || !l->lost || c->answer.error)
        return false;
    l->lost = !is_seen;
    *ret_reason = str_of(l->reason);
    return true;
}

void call_write_reply(struct call *c, const struct call_reply *r, struct buf *out)
{
    char at[CLOCK_TEXT];
    struct mcp_call_result result = {
        .m = &c->answer,
        .server_era = c->server_era,
        .client_era = c->client_era,
        .id = r->id,
        .server_info = c->catalog->server_info,
        .cacheable = c->method->target == TARGET_URI && c->method->service == SERVE_READ,
        .state = r->state,
        .recording = r->recording,
        .mem = r->mem,
    };

    assert(c->has_answer);
    if (c->adds_handle)
        result.handle = c->session->handle;
    if (adds_lost_state(c, r->is_seen, &result.lost_reason)) {
        clock_format(clock_wall_ms(), at);
        result.lost_server = upstream_name(c->up);
        result.lost_at = str_of(at);
    }
    (void)buf_room(out, c->answer.doc.text.n + r->id.n + 256);
    mcp_write_result(&result, out);
}

struct str call_reply_result(struct str reply, struct str id)
{
    size_t at = reply_head.n + id.n + result_key.n;

    if (reply.n <= at)
        return STR_NONE;
    assert(memcmp(reply.p + at - result_key.n, result_key.p, result_key.n) == 0);
    return str_n(reply.p + at, reply.n - at - 1);
}

bool call_has_client(const struct call *c)
{
    for (const struct list *it = c->listeners.next; it != &c->listeners; it = it->next) {
        const struct call_listener *l = list_entry(it, const struct call_listener, node);
        if (l->ops->is_connected(l))
            return true;
    }
    return false;
}

bool call_keeps_result(const struct call *c)
{
    return !c->undelivered_given_up && !mcp_era(c->client_era)->disconnect_cancels &&
           c->kind == EXEC_DURABLE && c->request.id.p && c->session->origin != ORIGIN_DERIVED;
}

struct undelivered_ask call_undelivered_ask(const struct call *c)
{
    const struct js_node *arguments = mcp_param(&c->request, STR("arguments"));

    return (struct undelivered_ask){
        .who = &c->who,
        .session_id = c->session->id,
        .server = upstream_name(c->up),
        .method = c->request.method,
        .tool = c->tool,
        .arguments = arguments ? js_raw(&c->request.doc, arguments) : STR_NONE,
    };
}

/* Tells the index that a result may come, unless it knows or the call keeps none. */
static void expect(struct call *c)
{
    if (c->undelivered || !call_keeps_result(c))
        return;
    struct undelivered_ask ask = call_undelivered_ask(c);
    c->undelivered = undelivered_expect(c->home->undelivered, &ask);
    c->undelivered_given_up = !c->undelivered;
}

static void give_up(struct call *c)
{
    undelivered_result_end(c->undelivered, false);
    c->undelivered = NULL;
    c->undelivered_given_up = true;
}

void call_client_lost(struct call *c)
{
    if (c->state != CALL_OVER && !call_has_client(c))
        expect(c);
}

/* A request that meanwhile waits for this result has to call the server. */
void call_client_back(struct call *c)
{
    if (c->undelivered && !undelivered_result_is_sealed(c->undelivered)) {
        give_up(c);
        c->undelivered_given_up = false;
    }
}

static void seal(struct call *c, struct str result)
{
    if (!result.p || !undelivered_result_seal(c->undelivered, c->exec.id, result, 0))
        give_up(c);
}

void call_keep_result(struct call *c)
{
    struct call_reply reply = {.id = c->request.id, .mem = c->mem};
    struct buf out;

    if (!call_has_client(c))
        expect(c);
    if (!c->undelivered)
        return;
    if (!c->has_answer || c->answer.error || call_asks_beyond_era(c)) {
        give_up(c);
        return;
    }
    buf_init(&out, MAX_REPLY);
    call_write_reply(c, &reply, &out);
    seal(c, call_reply_result(buf_str(&out), reply.id));
    buf_release(&out);
}

/* The outcome's commit has stored the result. */
static int64_t stored_with_outcome(struct call *c, bool is_lost)
{
    int64_t id = undelivered_result_id(c->undelivered);

    undelivered_result_end(c->undelivered, c->undelivered_stored);
    c->undelivered = NULL;
    c->undelivered_given_up = true; /* nothing more is stored */
    if (is_lost && !c->is_delivered)
        return id;
    undelivered_drop(c->home->undelivered, id); /* a client has resumed its stream */
    return 0;
}

int64_t call_replied(struct call *c, struct str result, bool is_lost)
{
    int64_t id;

    if (c->undelivered && undelivered_result_is_sealed(c->undelivered))
        return stored_with_outcome(c, is_lost);
    if (is_lost && c->has_answer && !c->is_delivered)
        expect(c);
    if (!c->undelivered)
        return 0;
    seal(c, result);
    if (!c->undelivered)
        return 0;
    id = undelivered_result_id(c->undelivered);
    undelivered_result_write(c->undelivered);
    c->undelivered = NULL;
    c->undelivered_given_up = true;
    return id;
}
