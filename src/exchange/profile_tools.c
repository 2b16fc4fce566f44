/* SPDX-License-Identifier: Apache-2.0 */
/* The profile's own tools: find and run, the lists of toolsets, and how all of them reply. */
#include "exchange/profile_tools.h"

#include "json/write.h"
#include "profile/find.h"
#include "profile/run.h"
#include "profile/toolsets.h"
#include "upstream/pins.h"

#include <assert.h>

static_assert(RUN_NAME_MAX == EXCHANGE_NAME_MAX,
              "a name that is not looked up is refused as unknown");

/* The view. */

static struct catalog *listed(const void *request, size_t i)
{
    return exchange_listed_catalog(request, i);
}

static bool adds_session_id(const void *request, const struct upstream *up, const struct catalog *c)
{
    return exchange_injects_handles(request, up, c);
}

struct profile_view exchange_profile_view(const struct exchange *x)
{
    return (struct profile_view){
        .profile = x->profile,
        .who = &x->caller.who,
        .permitted = exchange_permitted_toolsets(x),
        .toolsets = exchange_toolsets(x),
        .upstreams = x->sv->upstreams,
        .plan = x->has_plan ? &x->plan : NULL,
        .mem = x->mem,
        .request = x,
        .listed = listed,
        .adds_session_id = adds_session_id,
    };
}

struct profile_arguments exchange_profile_arguments(const struct exchange *x)
{
    return (struct profile_arguments){&x->msg.doc, mcp_param(&x->msg, STR("arguments"))};
}

/* Replies. */

static enum step_result reply(struct exchange *x, struct str text, struct str structured,
                              bool is_error)
{
    struct buf *out = exchange_begin_result(x);

    buf_addz(out, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(out, text);
    if (x->adds_handle && !is_error)
        buf_addf(out, "},{\"type\":\"text\",\"text\":\"[session: %.*s]\"",
                 STR_ARG(x->session->handle));
    buf_addz(out, "}]");
    if (x->adds_handle && !is_error)
        buf_addf(out, ",\"_meta\":{\"holdfast/session\":\"%.*s\"}", STR_ARG(x->session->handle));
    if (structured.p)
        buf_addf(out, ",\"structuredContent\":%.*s", STR_ARG(structured));
    if (is_error)
        buf_addz(out, ",\"isError\":true");
    buf_addstr(out, mcp_era(x->era)->result_end);
    return exchange_end_result(x);
}

enum step_result profile_tool_reply(struct exchange *x, struct profile_answer *answer)
{
    struct str text = buf_str(&answer->text);
    struct str structured = answer->is_json        ? text
                            : answer->structured.n ? buf_str(&answer->structured)
                                                   : STR_NONE;
    enum step_result result =
        answer->is_error ? profile_tool_refuse(x, text) : reply(x, text, structured, false);

    profile_answer_release(answer);
    return result;
}

enum step_result profile_tool_refuse(struct exchange *x, struct str text)
{
    x->refusal = arena_dup(x->mem, str_cut(text, REFUSAL_MAX));
    return reply(x, text, STR_NONE, true);
}

void profile_tool_note(struct exchange *x, const char *outcome)
{
    struct exec_request what = exchange_what(x);
    struct exec_result result = {.outcome = str_of(outcome)};

    what.server = STR("holdfast");
    what.mode = AUDIT_REDACTED;
    exec_note(x->sv->audit, &what, &result);
}

/* find. */

/* Indexing the words of the tools takes one slice per turn of the loop, so that other exchanges run
 * in between. */
struct reading {
    struct exchange *x;
    struct loop_task next;
};

static void on_next_slice(struct loop_task *task)
{
    exchange_resume(container_of(task, struct reading, next)->x);
}

static enum step_result await_next_slice(struct exchange *x)
{
    struct reading *r = arena_new_of(x->mem, struct reading);

    r->x = x;
    r->next.fn = on_next_slice;
    loop_post(x->sv->loop, &r->next);
    return STEP_WAIT;
}

static enum step_result answer_find(struct exchange *x)
{
    const struct profile_arguments arguments = exchange_profile_arguments(x);
    struct str wrong = profile_wrong_argument(x->profile_tool, &arguments, x->mem);
    struct profile_answer answer;
    struct find_query query;

    if (!wrong.p)
        wrong = str_of(find_query_read(&arguments, x->mem, &query));
    if (wrong.p)
        return profile_tool_refuse(x, wrong);
    if (exchange_gather_session_catalogs(x, CATALOG_TOOLS) == STEP_WAIT)
        return STEP_WAIT;
    const struct profile_view view = exchange_profile_view(x);
    if (query.words.n && !find_index_step(&view))
        return await_next_slice(x);
    find_answer(&view, &query, &answer);
    profile_tool_note(x, "ok");
    return profile_tool_reply(x, &answer);
}

/* run. */

static void free_arena(void *arg)
{
    arena_free(arg);
}

/* Turns the request into a call of the tool. */
static enum step_result translate(struct exchange *x, const struct run_request *r)
{
    struct arena *mem = arena_new(RUN_MEMORY);
    struct mcp_message m;
    struct error err;
    struct str id;
    bool is_batch;

    arena_on_free(x->mem, free_arena, mem);
    if (!mcp_parse_request(run_rewritten(r, &x->msg, mem), mem, &m, &id, &is_batch, &err))
        return exchange_refuse(x, 400, error_info(err.code)->jsonrpc, "%s", err.text);
    x->msg = m;
    x->tool = arena_dup(x->mem, r->tool);
    x->named = NULL;
    x->profile_tool = NULL;
    x->is_run = true;
    return STEP_NEXT;
}

/* NEXT: the tool may be called. */
static enum step_result check_pin(struct exchange *x, struct upstream *up, struct str tool)
{
    enum pin_verdict verdict =
        upstream_is_guarded(up) ? pins_check(x->sv->pins, up, tool, true) : PIN_FREE;

    if (verdict == PIN_FREE)
        return STEP_NEXT;
    return profile_tool_refuse(x, pins_held_text(verdict, upstream_name(up), tool, x->mem));
}

static enum step_result reply_preview(struct exchange *x, const struct run_request *r,
                                      struct str unsure)
{
    struct profile_answer answer;

    profile_tool_note(x, "ok");
    run_preview(r, unsure, x->mem, &answer);
    return profile_tool_reply(x, &answer);
}

/* Uses only the known catalog; never asks the server. */
static enum step_result dry_run(struct exchange *x, const struct profile_view *view,
                                struct upstream *up, const struct run_request *r)
{
    struct catalog *c = upstream_known(up);
    const struct catalog_item *item = c ? catalog_tool(c, r->tool) : NULL;
    struct profile_answer refusal;
    struct str unsure;

    if (!c)
        return profile_tool_refuse(x, run_unknown_catalog(up, x->mem));
    if ((!item && !c->tools_fault.p) || !profile_sees_tool(view, view->toolsets, up, r->tool))
        return profile_tool_refuse(x, run_unknown_tool(view, r));
    if (check_pin(x, up, r->tool) != STEP_NEXT)
        return STEP_REPLY;
    if (!item)
        return reply_preview(
            x, r,
            arena_printf(x->mem, "its tools could not be listed: %.*s", STR_ARG(c->tools_fault)));
    if (!run_check(view, r, &(struct run_target){up, c, item}, &unsure, &refusal))
        return profile_tool_reply(x, &refusal);
    return reply_preview(x, r, unsure);
}

/* The catalog lacks tools that only this session was told of, and all tools if the server could not
 * list them.  Then the server decides, as it does for a direct call. */
static bool may_be_there(struct exchange *x, struct str tool)
{
    struct link *l = exchange_session_catalog_link(x, x->up, CATALOG_TOOLS);
    return x->catalog->tools_fault.p || (l && link_session_catalog_has(l, CATALOG_TOOLS, tool));
}

/* Continues once x->catalog is set. */
static enum step_result go(struct exchange *x, const struct run_request *r)
{
    const struct profile_view view = exchange_profile_view(x);
    const struct catalog_item *item = catalog_tool(x->catalog, r->tool);
    bool is_seen = profile_sees_tool(&view, view.toolsets, x->up, r->tool);
    struct profile_answer refusal;
    struct str unsure; /* present: the server decides */

    if (is_seen && catalog_needs_task(x->catalog, r->tool))
        return profile_tool_refuse(x, exchange_task_text(x, x->up, r->tool));
    if (!is_seen || (!item && !may_be_there(x, r->tool)))
        return profile_tool_refuse(x, run_unknown_tool(&view, r));
    if (item &&
        !run_check(&view, r, &(struct run_target){x->up, x->catalog, item}, &unsure, &refusal))
        return profile_tool_reply(x, &refusal);
    return translate(x, r);
}

static enum step_result route_run(struct exchange *x)
{
    const struct profile_arguments arguments = exchange_profile_arguments(x);
    const struct profile_view view = exchange_profile_view(x);
    struct str wrong = profile_wrong_argument(x->profile_tool, &arguments, x->mem);
    struct run_request r;
    struct upstream *up;

    if (!wrong.p)
        wrong = str_of(run_request_read(&arguments, x->mem, &r));
    if (wrong.p)
        return profile_tool_refuse(x, wrong);
    if (!r.server.p)
        return profile_tool_refuse(x, run_unknown_tool(&view, &r));
    if (x->catalog)
        return go(x, &r);
    up = exchange_sees_server(x, r.server) ? upstreams_find(x->sv->upstreams, r.server) : NULL;
    if (!up)
        return profile_tool_refuse(x, run_unknown_server(&view, r.server));
    if (r.is_dry)
        return dry_run(x, &view, up, &r);
    if (!x->up) {
        x->up = up;
        upstream_ref(up);
    }
    enum step_result result = exchange_want_catalog(x, true);
    return result == STEP_NEXT ? go(x, &r) : result;
}

/* The lists of toolsets. */

static enum step_result answer_list_toolsets(struct exchange *x)
{
    const struct profile_view view = exchange_profile_view(x);
    struct profile_answer answer;

    toolset_list(&view, &answer);
    profile_tool_note(x, "ok");
    return profile_tool_reply(x, &answer);
}

static enum step_result answer_describe(struct exchange *x)
{
    const struct profile_arguments arguments = exchange_profile_arguments(x);
    const struct profile_view view = exchange_profile_view(x);
    struct toolset_message m = {.ok = false};
    struct profile_answer answer;
    int at = toolset_named(&view, &arguments, &m.text);

    if (at < 0) {
        x->adds_handle = false; /* the session may not exist */
        toolset_message(&view, &m, &answer);
        return profile_tool_reply(x, &answer);
    }
    toolset_describe(&view, (size_t)at, &answer);
    profile_tool_note(x, "ok");
    return profile_tool_reply(x, &answer);
}

static enum step_result answer_list_tools(struct exchange *x)
{
    const struct profile_view view = exchange_profile_view(x);
    struct profile_answer answer;

    toolset_list_tools(&view, &answer);
    profile_tool_note(x, "ok");
    return profile_tool_reply(x, &answer);
}

/* The steps of each tool. */

enum step_result exchange_route_profile_tool(struct exchange *x)
{
    return x->profile_tool->id == PROFILE_RUN ? route_run(x) : exchange_gather(x);
}

enum step_result exchange_answer_profile_tool(struct exchange *x)
{
    /* PROFILE_RUN has none: the route step has turned the request into another call. */
    static enum step_result (*const answers[PROFILE_TOOLS])(struct exchange * x) = {
        [PROFILE_FIND] = answer_find,
        [PROFILE_ENABLE] = exchange_answer_enable,
        [PROFILE_DISABLE] = exchange_answer_disable,
        [PROFILE_LIST_TOOLSETS] = answer_list_toolsets,
        [PROFILE_DESCRIBE] = answer_describe,
        [PROFILE_LIST_TOOLS] = answer_list_tools,
    };
    return answers[x->profile_tool->id](x);
}
