/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a replay: the catalog of its server as it is now, an exchange through the spine, the
 * comparison on a worker.
 *
 * The exchange has an outlet of its own.  It carries no message before the result, so a server that
 * asks its client something during the call gets a refusal.  The replay reads the server's answer
 * in answered(), where the call is over and still lives. */
#include "replay/impl.h"

#include "base/clock.h"
#include "identity/scopes.h"
#include "json/read.h"
#include "mcp/version.h"

#define EXCHANGE_BYTES (64u * 1024 * 1024)
#define PAUSE_MAX_S 60
#define TRIES_MAX 10

static void settle(struct replay *r, enum replay_status status, struct str reason)
{
    r->verdict.status = status;
    r->verdict.reason = reason;
    r->verdict.diff.n = r->verdict.diff.total = 0;
    replay_settled(r);
}

/* Comparing. */

static void run_compare(struct worker_job *job)
{
    struct replay *r = container_of(job, struct replay, job);

    replay_compare(r->call, &r->answer, &r->options.ignore, r->call_mem, &r->verdict);
}

static void on_compared(struct worker_job *job, bool ran)
{
    struct replay *r = container_of(job, struct replay, job);

    if (ran)
        replay_settled(r);
    else
        settle(r, REPLAY_UNKNOWN, STR("Holdfast stopped before the results were compared"));
}

static void compare(struct replay *r)
{
    r->job = (struct worker_job){.run = run_compare, .done = on_compared};
    if (!worker_submit(r->home->worker, &r->job))
        settle(r, REPLAY_UNKNOWN, STR("too many results wait to be compared; try again"));
}

/* The exchange. */

static bool on_send(struct exchange *x unused_arg, struct str json unused_arg,
                    enum outlet_weight weight unused_arg)
{
    return false;
}

/* A quota is used up: the result says when to try again (exchange/limit.c). */
static int64_t retry_after(struct exchange *x)
{
    struct js_doc doc;
    int64_t seconds = 0;

    if (!js_parse(buf_str(&x->out), &js_limits_upstream, x->mem, &doc, NULL))
        return 0;
    const struct js_node *result = js_get(&doc, js_root(&doc), STR("result"));
    const struct js_node *meta = js_get(&doc, result, STR("_meta"));
    return js_to_i64(&doc, js_get(&doc, meta, STR("holdfast/retry-after")), &seconds) ? seconds : 0;
}

/* The words of Holdfast's own answer. */
static struct str refusal_of(struct exchange *x, struct arena *mem)
{
    struct js_doc doc;
    struct str text = x->refusal;

    if (!text.p && js_parse(buf_str(&x->out), &js_limits_upstream, x->mem, &doc, NULL)) {
        const struct js_node *root = js_root(&doc), *result = js_get(&doc, root, STR("result"));
        const struct js_node *content = js_get(&doc, result, STR("content"));
        const struct js_node *first =
            js_type_is(content, JS_ARRAY) ? js_first(&doc, content) : NULL;
        text = js_text(&doc, js_get(&doc, first, STR("text")), x->mem);
        if (!text.p)
            text = js_text(&doc, js_get(&doc, js_get(&doc, root, STR("error")), STR("message")),
                           x->mem);
    }
    return arena_dup(mem, text.p ? str_cut(text, REFUSAL_MAX) : STR("Holdfast refused it"));
}

static void take_answer(struct replay *r, const struct call *c)
{
    struct replay_answer *a = &r->answer;
    const struct js_node *body = c->answer.error ? c->answer.error : c->answer.result;

    a->outcome = call_outcome_name(c->outcome);
    if (c->has_answer && body) {
        a->is_error = c->answer.error != NULL;
        a->body = arena_dup(r->call_mem, js_raw(&c->answer.doc, body));
    } else {
        a->why = arena_dup(r->call_mem,
                           c->err.text[0] ? str_of(c->err.text) : STR("the server gave no answer"));
    }
}

static void on_answered(struct exchange *x)
{
    struct replay *r = x->outlet_data;
    const struct call *c = x->call;

    r->answer = (struct replay_answer){.took_us = clock_mono_us() - r->began_us};
    if (c && !c->is_refused && !c->session_over_limit && c->err.code != ERR_QUOTA) {
        take_answer(r, c);
        return;
    }
    r->answer.is_refused = true;
    r->answer.outcome = STR("refused");
    r->answer.retry_s = retry_after(x);
    r->answer.why = refusal_of(x, r->call_mem);
}

static void send_call(struct replay *r);

/* Every second, so that the end of the replay does not wait for the end of the pause. */
static void on_pause(void *arg)
{
    struct replay *r = arg;

    if (--r->pause_s > 0 && !replay_reason_to_stop(r))
        return;
    loop_timer_free(r->pause);
    r->pause = NULL;
    send_call(r);
}

static void on_finished(struct loop_task *task)
{
    struct replay *r = container_of(task, struct replay, again);
    int64_t wait_s = r->answer.retry_s;

    if (!wait_s || ++r->tries > TRIES_MAX) {
        compare(r);
        return;
    }
    r->pause_s = wait_s < PAUSE_MAX_S ? wait_s : PAUSE_MAX_S;
    r->pause = loop_timer_new(r->home->sv->loop, on_pause, r);
    loop_timer_start(r->pause, 1000, 1000);
}

static void on_finish(struct exchange *x)
{
    struct replay *r = x->outlet_data;

    buf_release(&x->out);
    arena_free(x->mem); /* frees x too */
    r->again.fn = on_finished;
    loop_defer(r->home->sv->loop, &r->again);
}

static const struct outlet outlet_replay = {
    .name = "replay",
    .send = on_send,
    .finish = on_finish,
    .answered = on_answered,
};

/* While the call waited for the catalog or for a quota, the replay may have come to its end. */
static void send_call(struct replay *r)
{
    if (replay_reason_to_stop(r)) {
        if (r->answer.is_refused)
            settle(r, REPLAY_REFUSED, r->answer.why);
        else
            settle(r, REPLAY_SKIPPED, STR("the replay ended before it was sent"));
        return;
    }
    struct arena *mem = arena_new(EXCHANGE_BYTES);
    struct buf body;

    buf_init(&body, SIZE_MAX / 4);
    replay_write_request(r->call, &body);
    struct arrival a = {
        .outlet = &outlet_replay,
        .outlet_data = r,
        .head = arena_new_of(mem, struct http_head),
        .mem = mem,
        .verb = STR("POST"),
        .body = arena_dup(mem, buf_str(&body)),
        .server = r->server,
        .endpoint = arena_printf(mem, "/mcp/%.*s", STR_ARG(r->server)),
        .who = &r->who,
        .session = r->session,
    };
    buf_release(&body);
    r->began_us = clock_mono_us();
    exchange_start(r->home->sv, &a);
}

/* What the server offers now. */

static void no_tool(struct replay *r)
{
    struct str tool = r->call->tool, server = r->server;

    r->verdict = (struct replay_verdict){
        .status = REPLAY_DIFFERENT,
        .reason =
            arena_printf(r->call_mem, "%.*s has no tool %.*s now", STR_ARG(server), STR_ARG(tool)),
    };
    replay_settled(r);
}

static void judge_tool(struct replay *r, const struct catalog *c)
{
    const struct catalog_item *item = catalog_tool(c, r->call->tool);
    bool is_seen = principal_may_use_tool(&r->who, r->server, r->call->tool);

    if (!item && is_seen && !catalog_needs_task(c, r->call->tool))
        no_tool(r);
    else if (is_seen && item && !item->read_only && !r->options.writes)
        settle(
            r, REPLAY_SKIPPED,
            STR("the server does not annotate this tool as read-only; replay with writes to send "
                "it again"));
    else
        send_call(r); /* also a tool that the caller may not see: it is refused, and audited */
}

static void on_catalog(struct catalog_want *w, struct catalog *c, const struct error *err)
{
    struct replay *r = container_of(w, struct replay, want);

    if (c)
        judge_tool(r, c);
    else
        settle(r, REPLAY_FAILED, arena_dup(r->call_mem, str_of(err->text)));
}

static void find_tool(struct replay *r)
{
    struct upstream *up = upstreams_find(r->home->sv->upstreams, r->server);
    struct catalog *c = NULL;
    struct error err;

    if (!up || !principal_may_use_server(&r->who, r->server)) {
        settle(r, REPLAY_FAILED,
               arena_printf(r->call_mem, "there is no server %.*s here now; replay against another",
                            STR_ARG(r->server)));
        return;
    }
    r->want.done = on_catalog;
    if (!upstream_catalog(up, false, &r->want, &c, &err))
        settle(r, REPLAY_FAILED, arena_dup(r->call_mem, str_of(err.text)));
    else if (c)
        judge_tool(r, c);
}

void replay_run_call(struct replay *r)
{
    const char *lack = replay_lack(r->call, r->call_mem);

    r->answer = (struct replay_answer){.took_us = -1};
    r->tries = 0;
    r->server = r->options.against.p ? r->options.against : r->call->server;
    if (lack)
        settle(r, REPLAY_SKIPPED, str_of(lack));
    else
        find_tool(r);
}
