/* SPDX-License-Identifier: Apache-2.0 */
/* Enabling and disabling toolsets for a session.
 *
 * The session's row holds the enabled toolsets.  A change is committed before the answer, so it
 * survives a crash and holds on every transport of the session.  Memory changes first: of two
 * concurrent changes the second builds on the first, and the write lane keeps their order.  A
 * change that cannot be stored is undone. */
#include "exchange/profile_tools.h"

#include "base/log.h"
#include "base/log_quiet.h"
#include "profile/toolsets.h"

/* A change that is being stored. */
struct toolset_change {
    struct exchange *x;
    struct write_job job;
    struct store_op ops[SESSION_PLAN_OPS];
    struct session_row patch;
    struct str key;
    size_t at; /* index of the toolset in its profile */
    bool enables;
    /* Changes the session in memory; false: another change to the same is being stored. */
    bool differs;
    size_t tools;
};

static enum step_result reply_message(struct exchange *x, bool ok, struct str text)
{
    const struct toolset_change *c = x->toolset_change;
    struct toolset_message m = {.ok = ok, .text = text};
    const struct profile_view view = exchange_profile_view(x);
    struct profile_answer answer;

    if (!c) {
        x->adds_handle = false; /* nothing was stored: the session does not exist */
    } else if (ok) {
        m.session_id = x->adds_handle ? x->session->handle : STR_NONE;
        m.is_enabled = c->enables;
        m.at = c->at;
    }
    toolset_message(&view, &m, &answer);
    return profile_tool_reply(x, &answer);
}

/* The index of the toolset that the call names; -1: the call was refused. */
static int named(struct exchange *x)
{
    const struct profile_arguments arguments = exchange_profile_arguments(x);
    const struct profile_view view = exchange_profile_view(x);
    struct str refusal;
    int at = toolset_named(&view, &arguments, &refusal);

    if (at < 0)
        reply_message(x, false, refusal);
    return at;
}

/* Storing a change. */

static void on_stored(struct write_job *job)
{
    exchange_resume(container_of(job, struct toolset_change, job)->x);
}

static bool is_enabled(const struct exchange *x, size_t at)
{
    return profile_enabled(x->profile, x->session->toolsets) >> at & 1;
}

static struct str changed(const struct session *s, struct str key, bool enables, struct arena *mem)
{
    return enables ? toolset_keys_with(s->toolsets, key, mem)
                   : toolset_keys_without(s->toolsets, key, mem);
}

static void undo(struct toolset_change *c)
{
    struct session *s = c->x->session;

    if (c->differs)
        session_take_toolsets(s, changed(s, c->key, !c->enables, c->x->mem));
}

static enum step_result begin(struct exchange *x, size_t at, bool enables, size_t tools)
{
    struct toolset_change *c = arena_new_of(x->mem, struct toolset_change);
    struct str key = x->profile->toolset_keys[at];

    c->x = x;
    c->at = at;
    c->key = key;
    c->enables = enables;
    c->differs = is_enabled(x, at) != enables;
    c->tools = tools;
    x->toolset_change = c;
    session_used(x->session);
    session_change_toolsets(x->session, changed(x->session, key, enables, x->mem));
    struct session_plan *plan = exchange_plan_session(x);
    /* A copy: the write lane reads the row while the loop may change the session. */
    c->patch = (struct session_row){.id = x->session->id,
                                    .toolsets = arena_dup(x->mem, x->session->toolsets)};
    plan->patches = &c->patch;
    plan->fields = FIELD_TOOLSETS;
    c->job = (struct write_job){
        .ops = c->ops, .n = session_plan_ops(plan, x->mem, c->ops), .done = on_stored};
    if (lane_write(x->sv->lanes, &c->job))
        return STEP_WAIT;
    undo(c);
    session_toolsets_write_done(x->session);
    return exchange_refuse(x, 503, -32000, "too much is waiting for the store; try again shortly");
}

/* Checks the result of the commit.  NEXT: the change is stored. */
static enum step_result check_stored(struct toolset_change *c)
{
    struct exchange *x = c->x;
    struct transport *bound = x->session_plan.binds;
    static struct log_quiet quiet;

    switch (session_plan_committed(&x->session_plan, c->ops, c->job.n, c->job.ok)) {
    case VERDICT_OK:
        if (bound)
            hub_linked(x->sv->hub, bound);
        return STEP_NEXT;
    case VERDICT_FAILED:
        undo(c);
        log_warn_quietly(&quiet, "the store refused a write", LZ("why", c->job.err.text));
        return exchange_refuse(x, 503, -32000,
                               "the store cannot write right now; try again shortly");
    case VERDICT_LIMIT:
        undo(c);
        return exchange_over_session_limit(x);
    default:
        undo(c);
        return exchange_tool_error(x, "Session not found or expired. Call again without "
                                      "session_id to begin a new one.");
    }
}

/* Notifies the calling client before the answer if it has no listener. */
static void notify_changed(struct exchange *x)
{
    if (hub_tools_changed(x->sv->hub, x->session, x->transport) || mcp_era(x->era)->has_listen ||
        !x->transport)
        return;
    (void)!exchange_send_message(
        x, STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"),
        OUTLET_MUST);
}

static enum step_result finish(struct exchange *x)
{
    struct toolset_change *c = x->toolset_change;

    enum step_result stored = check_stored(c);
    session_toolsets_write_done(x->session);
    if (stored != STEP_NEXT)
        return STEP_REPLY;
    /* An earlier change that was undone in memory may have been stored with this one. */
    if (!x->session->toolset_writes && !str_eq(x->session->toolsets, c->patch.toolsets))
        session_take_toolsets(x->session, c->patch.toolsets);
    profile_tool_note(x, "ok");
    notify_changed(x);
    if (!c->enables)
        return reply_message(
            x, true,
            arena_printf(x->mem,
                         "Toolset '%.*s' disabled successfully. Its tools are no longer "
                         "available in this session.",
                         STR_ARG(c->key)));
    const struct profile_view view = exchange_profile_view(x);
    return reply_message(
        x, true,
        arena_printf(x->mem, "Toolset '%.*s' enabled successfully. Registered %zu tools.%s",
                     STR_ARG(c->key), c->tools,
                     toolset_count_unavailable(&view, c->at)
                         ? " The others will be there when their servers are available again."
                         : ""));
}

/* The tools. */

enum step_result exchange_answer_enable(struct exchange *x)
{
    struct str text;
    int at;

    if (x->toolset_change)
        return finish(x);
    at = named(x);
    if (at < 0)
        return STEP_REPLY;
    const struct profile_view view = exchange_profile_view(x);
    enum toolset_verdict verdict =
        toolset_may_enable(&view, (size_t)at, x->session->toolset_writes > 0, &text);
    if (verdict != TOOLSET_CHANGES)
        return reply_message(x, verdict == TOOLSET_SAME, text);
    return begin(x, (size_t)at, true, toolset_count_tools(&view, UINT64_C(1) << at));
}

enum step_result exchange_answer_disable(struct exchange *x)
{
    int at;

    if (x->toolset_change)
        return finish(x);
    at = named(x);
    if (at < 0)
        return STEP_REPLY;
    struct str key = x->profile->toolset_keys[at];
    if (!is_enabled(x, (size_t)at) && !x->session->toolset_writes)
        return reply_message(x, true,
                             arena_printf(x->mem, "Toolset '%.*s' is not enabled.", STR_ARG(key)));
    return begin(x, (size_t)at, false, 0);
}
