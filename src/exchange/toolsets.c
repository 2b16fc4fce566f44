/* SPDX-License-Identifier: Apache-2.0 */
/* Toolsets of a profile: listing them, and enabling and disabling them for a session.
 *
 * The session's row holds the enabled toolsets.  A change is committed before the answer, so it
 * survives a crash and holds on every transport of the session.  Memory changes first: of two
 * concurrent changes the second builds on the first, and the write lane keeps their order.  A
 * change that cannot be stored is undone. */
#include "exchange/profile_tools.h"

#include "base/log.h"
#include "base/log_quiet.h"
#include "identity/scopes.h"
#include "json/write.h"
#include "profile/profile.h"

#define KEY_SHOWN 64
#define ANSWER_MAX (8u << 20)
#define NAMES_MAX (2u << 20) /* bytes of names in an answer; further tools are not named */

#define SESSION_ID                                                                                 \
    "\"session_id\":{\"type\":\"string\",\"description\":\"A session handle (ses_...), for "       \
    "clients "                                                                                     \
    "that name their session by it; the session of this call when omitted.\"}"
#define NAME                                                                                       \
    "\"name\":{\"type\":\"string\",\"description\":\"The toolset's key, as list_toolsets gives "   \
    "it.\"}"

const char enable_definition[] =
    "{\"name\":\"enable_toolset\",\"description\":\"Makes the tools of a toolset available in this "
    "session.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" NAME "," SESSION_ID
    "},\"required\":[\"name\"]},\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":false,"
    "\"idempotentHint\":true}}";
const char disable_definition[] =
    "{\"name\":\"disable_toolset\",\"description\":\"Takes the tools of a toolset away from this "
    "session; they can be enabled "
    "again.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" NAME "," SESSION_ID
    "},\"required\":[\"name\"]},\"annotations\":{\"readOnlyHint\":false,"
    "\"destructiveHint\":true,\"idempotentHint\":true}}";
const char list_toolsets_definition[] =
    "{\"name\":\"list_toolsets\",\"description\":\"Lists the toolsets that there are, and which of "
    "them "
    "are enabled in this "
    "session.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" SESSION_ID
    "}},\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true}}";
const char describe_definition[] =
    "{\"name\":\"describe_toolset\",\"description\":\"Says what a toolset is for and which tools "
    "it "
    "has.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" NAME "," SESSION_ID
    "},\"required\":[\"name\"]},\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true}}";
const char list_tools_definition[] =
    "{\"name\":\"list_tools\",\"description\":\"Lists the names of the tools that can be called "
    "now, by "
    "toolset.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" SESSION_ID
    "}},\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true}}";

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

/* Visibility. */

struct reaching {
    const struct exchange *x;
    const struct toolset_config *toolset;
    bool found;
};

static void reach_server(void *arg, struct upstream *up)
{
    struct reaching *r = arg;

    for (size_t i = 0; i < r->toolset->n_tools && !r->found; i++)
        r->found = scope_reaches(r->toolset->tools[i], upstream_name(up)) &&
                   exchange_sees_server(r->x, upstream_name(up));
}

/* A toolset that the policy withholds stays visible: enabling it is refused with the policy as the
 * reason.  A toolset without anything for this caller is not visible. */
static bool is_seen(const struct exchange *x, size_t at)
{
    struct str key = x->profile->toolset_keys[at];
    struct reaching r = {.x = x, .toolset = x->profile->toolsets[at]};
    bool withheld = !x->profile->proxy_permits && x->profile->n_clients == 0 &&
                    (!profile_allows(x->profile, key) || profile_denies(x->profile, key));

    upstreams_each(x->sv->upstreams, reach_server, &r);
    return r.found && (withheld || (exchange_permitted_toolsets(x) >> at & 1));
}

/* The tools of a toolset that this caller sees, as "server__tool". */

struct listing {
    const struct exchange *x;
    uint64_t toolsets;
    struct js_writer *w; /* NULL: only counts */
    size_t n;
    bool more; /* there was no room for all names */
};

static void list_part(struct listing *l, const struct plan_part *part)
{
    const struct catalog_list *list = part->catalog ? &part->catalog->lists[CATALOG_TOOLS] : NULL;
    struct str server = upstream_name(part->up);
    const struct builtin *b =
        upstream_config(part->up)->kind == SERVER_BUILTIN ? builtin_find(server) : NULL;

    for (size_t i = 0; list && i < list->n; i++) {
        struct str name = list->items[i].name;
        if (!profile_shows(l->x->profile, l->toolsets, server, name) ||
            !principal_may_use_tool(&l->x->who, server, name) ||
            (b && builtin_hides(b, &l->x->who, name)))
            continue;
        l->n++;
        l->more = l->w && l->w->out->n > NAMES_MAX;
        if (l->more)
            return;
        if (l->w)
            js_string(l->w, arena_printf(l->x->mem, "%.*s" ROUTE_SEPARATOR "%.*s", STR_ARG(server),
                                         STR_ARG(name)));
    }
}

static size_t count_tools(const struct exchange *x, uint64_t toolsets)
{
    struct listing l = {.x = x, .toolsets = toolsets};

    for (size_t i = 0; i < x->plan.n; i++)
        list_part(&l, &x->plan.parts[i]);
    return l.n;
}

/* Writes an array of the tools' names; false: there was no room for all. */
static bool name_tools(const struct exchange *x, uint64_t toolsets, struct js_writer *w)
{
    struct listing l = {.x = x, .toolsets = toolsets, .w = w};

    js_array(w);
    for (size_t i = 0; i < x->plan.n && !l.more; i++)
        list_part(&l, &x->plan.parts[i]);
    js_array_end(w);
    return !l.more;
}

/* Writes an array of the toolset's servers that have no catalog now; returns how many. */
static size_t list_unavailable(const struct exchange *x, size_t at, struct js_writer *w)
{
    struct reaching r = {.x = x, .toolset = x->profile->toolsets[at]};
    size_t n = 0;

    for (size_t i = 0; i < x->plan.n; i++) {
        r.found = false;
        if (!x->plan.parts[i].catalog)
            reach_server(&r, x->plan.parts[i].up);
        if (!r.found)
            continue;
        if (w && n == 0) {
            js_key(w, STR("unavailable"));
            js_array(w);
        }
        if (w)
            js_string(w, upstream_name(x->plan.parts[i].up));
        n++;
    }
    if (w && n)
        js_array_end(w);
    return n;
}

/* Answers are JSON, as text and as structure. */

static enum step_result reply_json(struct exchange *x, struct buf *json, bool ok)
{
    enum step_result result = ok ? profile_tool_reply(x, buf_str(json), buf_str(json))
                                 : profile_tool_refuse(x, buf_str(json));
    buf_release(json);
    return result;
}

static enum step_result reply_message(struct exchange *x, bool ok, struct str message)
{
    struct js_writer w;
    struct buf json;

    buf_init(&json, ANSWER_MAX);
    js_begin(&w, &json);
    js_object(&w);
    js_kv_bool(&w, "success", ok);
    js_kv_string(&w, "message", message);
    if (!x->toolset_change)
        x->tells_handle = false; /* nothing was stored: the session does not exist */
    else if (ok && x->tells_handle)
        js_kv_string(&w, "session_id", x->session->handle);
    if (ok && x->toolset_change && x->toolset_change->enables)
        list_unavailable(x, x->toolset_change->at, &w);
    js_object_end(&w);
    return reply_json(x, &json, ok);
}

static enum step_result refuse_unknown(struct exchange *x, struct str key)
{
    struct str names = STR_NONE;

    for (size_t i = 0; i < x->profile->n_toolset_keys; i++)
        if (is_seen(x, i))
            names = names.p ? arena_printf(x->mem, "%.*s, %.*s", STR_ARG(names),
                                           STR_ARG(x->profile->toolset_keys[i]))
                            : x->profile->toolset_keys[i];
    return reply_message(x, false,
                         arena_printf(x->mem, "Toolset '%.*s' not found. Available toolsets: %.*s",
                                      STR_ARG(str_cut(key, KEY_SHOWN)),
                                      STR_ARG(names.p ? names : STR("none"))));
}

/* The index of the toolset that the call names; -1: the call was refused. */
static int named(struct exchange *x)
{
    const struct js_node *v =
        js_get(&x->msg.doc, mcp_param(&x->msg, STR("arguments")), STR("name"));
    struct str key = js_text(&x->msg.doc, v, x->mem);
    int at;

    if (!key.n) {
        reply_message(x, false,
                      STR("\"name\" must be the key of a toolset; list_toolsets has them."));
        return -1;
    }
    at = profile_toolset(x->profile, key);
    if (at < 0 || !is_seen(x, (size_t)at)) {
        refuse_unknown(x, key);
        return -1;
    }
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
static void tell_changed(struct exchange *x)
{
    if (hub_tools_changed(x->sv->hub, x->session, x->transport) || mcp_era(x->era)->has_listen ||
        !x->transport)
        return;
    (void)!exchange_say(
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
    tell_changed(x);
    if (!c->enables)
        return reply_message(
            x, true,
            arena_printf(x->mem,
                         "Toolset '%.*s' disabled successfully. Its tools are no longer "
                         "available in this session.",
                         STR_ARG(c->key)));
    return reply_message(
        x, true,
        arena_printf(x->mem, "Toolset '%.*s' enabled successfully. Registered %zu tools.%s",
                     STR_ARG(c->key), c->tools,
                     list_unavailable(x, c->at, NULL)
                         ? " The others will be there when their servers are available again."
                         : ""));
}

/* The tools. */

static const char *policy_refusal(const struct exchange *x, struct str key)
{
    if (profile_denies(x->profile, key))
        return "is denied by policy.";
    return profile_allows(x->profile, key) ? NULL : "is not allowed by policy.";
}

enum step_result exchange_answer_enable(struct exchange *x)
{
    uint64_t enabled, bit;
    int at;

    if (x->toolset_change)
        return finish(x);
    at = named(x);
    if (at < 0)
        return STEP_REPLY;
    struct str key = x->profile->toolset_keys[at];
    const char *refusal = policy_refusal(x, key);
    if (refusal)
        return reply_message(x, false,
                             arena_printf(x->mem, "Toolset '%.*s' %s", STR_ARG(key), refusal));
    enabled = exchange_toolsets(x);
    bit = UINT64_C(1) << at;
    /* A change is acknowledged only once it is stored.  If a change is still being stored, this
     * request stores it too and waits. */
    if ((enabled & bit) && !x->session->toolset_writes)
        return reply_message(
            x, true, arena_printf(x->mem, "Toolset '%.*s' is already enabled.", STR_ARG(key)));
    if (!(enabled & bit) && x->profile->max_active &&
        __builtin_popcountll(enabled) >= x->profile->max_active)
        return reply_message(x, false,
                             arena_printf(x->mem, "Activation exceeds maxActiveToolsets (%lld).",
                                          (long long)x->profile->max_active));
    return begin(x, (size_t)at, true, count_tools(x, bit));
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

static void write_toolset(const struct exchange *x, size_t at, bool with_tools, struct js_writer *w)
{
    const struct toolset_config *t = x->profile->toolsets[at];

    js_object(w);
    js_kv_string(w, "key", t->key);
    js_kv_bool(w, "active", exchange_toolsets(x) >> at & 1);
    js_key(w, STR("definition"));
    js_object(w);
    js_kv_string(w, "name", t->name.p ? t->name : t->key);
    js_kv_string(w, "description", t->description);
    js_object_end(w);
    if (with_tools) {
        js_key(w, STR("tools"));
        if (!name_tools(x, UINT64_C(1) << at, w))
            js_kv_bool(w, "more", true);
        list_unavailable(x, at, w);
    }
    js_object_end(w);
}

enum step_result exchange_answer_list_toolsets(struct exchange *x)
{
    struct js_writer w;
    struct buf json;

    buf_init(&json, ANSWER_MAX);
    js_begin(&w, &json);
    js_object(&w);
    js_key(&w, STR("toolsets"));
    js_array(&w);
    for (size_t i = 0; i < x->profile->n_toolset_keys; i++)
        if (is_seen(x, i))
            write_toolset(x, i, false, &w);
    js_array_end(&w);
    js_object_end(&w);
    profile_tool_note(x, "ok");
    return reply_json(x, &json, true);
}

enum step_result exchange_answer_describe(struct exchange *x)
{
    int at = named(x);
    struct js_writer w;
    struct buf json;

    if (at < 0)
        return STEP_REPLY;
    buf_init(&json, ANSWER_MAX);
    js_begin(&w, &json);
    write_toolset(x, (size_t)at, true, &w);
    profile_tool_note(x, "ok");
    return reply_json(x, &json, true);
}

/* Writes the tools of each enabled toolset, by its key; false: there was no room for all. */
static bool name_by_toolset(struct exchange *x, uint64_t counting, struct js_writer *w)
{
    bool all = true;

    js_object(w);
    for (size_t i = 0; i < x->profile->n_toolset_keys; i++)
        if ((counting >> i & 1) && is_seen(x, i)) {
            js_key(w, x->profile->toolset_keys[i]);
            all = name_tools(x, UINT64_C(1) << i, w) && all;
        }
    js_object_end(w);
    return all;
}

enum step_result exchange_answer_list_tools(struct exchange *x)
{
    uint64_t counting = exchange_toolsets(x);
    struct js_writer w;
    struct buf json;
    bool all;

    buf_init(&json, ANSWER_MAX);
    js_begin(&w, &json);
    js_object(&w);
    js_key(&w, STR("tools"));
    all = name_tools(x, counting, &w);
    js_key(&w, STR("toolsetToTools"));
    all = name_by_toolset(x, counting, &w) && all;
    if (!all)
        js_kv_bool(&w, "more", true);
    js_object_end(&w);
    profile_tool_note(x, "ok");
    return reply_json(x, &json, true);
}
