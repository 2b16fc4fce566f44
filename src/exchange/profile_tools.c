/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the tools that profiles provide themselves, and the common part of their answers. */
#include "exchange/profile_tools.h"

#include "identity/scopes.h"
#include "json/write.h"

#define MODE(mode) (1u << (mode))
#define NAME_SHOWN 64

static const char *const find_takes[] = {"description",          "limit", "page", "depth",
                                         "confidence_threshold", NULL};
static const char *const run_takes[] = {"tool", "parameters", "dry_run", NULL};

static const struct profile_tool tools[] = {
    {.name = "find",
     .modes = MODE(PROFILE_SEARCH),
     .definition = find_definition,
     .takes = find_takes,
     .route = exchange_gather,
     .answer = exchange_answer_find},
    {.name = "run",
     .modes = MODE(PROFILE_SEARCH),
     .definition = run_definition,
     .takes = run_takes,
     .route = exchange_route_run},
    {.name = "enable_toolset",
     .modes = MODE(PROFILE_DYNAMIC),
     .definition = enable_definition,
     .route = exchange_gather,
     .has_session = true,
     .answer = exchange_answer_enable},
    {.name = "disable_toolset",
     .modes = MODE(PROFILE_DYNAMIC),
     .definition = disable_definition,
     .route = exchange_gather,
     .has_session = true,
     .answer = exchange_answer_disable},
    {.name = "list_toolsets",
     .modes = MODE(PROFILE_DYNAMIC),
     .definition = list_toolsets_definition,
     .route = exchange_gather,
     .has_session = true,
     .only_looks = true,
     .answer = exchange_answer_list_toolsets},
    {.name = "describe_toolset",
     .modes = MODE(PROFILE_DYNAMIC),
     .definition = describe_definition,
     .route = exchange_gather,
     .has_session = true,
     .only_looks = true,
     .answer = exchange_answer_describe},
    {.name = "list_tools",
     .modes = MODE(PROFILE_STATIC) | MODE(PROFILE_DYNAMIC),
     .definition = list_tools_definition,
     .route = exchange_gather,
     .has_session = true,
     .only_looks = true,
     .answer = exchange_answer_list_tools},
};

static bool is_of(const struct profile_tool *t, const struct profile_config *p)
{
    return t->modes & MODE((unsigned)p->mode);
}

const struct profile_tool *profile_tool_find(const struct profile_config *p, struct str name)
{
    for (size_t i = 0; i < countof(tools); i++)
        if (is_of(&tools[i], p) && str_eq(str_of(tools[i].name), name))
            return &tools[i];
    return NULL;
}

const struct profile_tool *profile_tool_next(const struct profile_config *p,
                                             const struct profile_tool *before)
{
    for (const struct profile_tool *t = before ? before + 1 : tools; t < tools + countof(tools);
         t++)
        if (is_of(t, p))
            return t;
    return NULL;
}

const struct js_node *profile_tool_argument(const struct exchange *x, const char *name)
{
    const struct js_node *v =
        js_get(&x->msg.doc, mcp_param(&x->msg, STR("arguments")), str_of(name));
    return js_type_is(v, JS_NULL) ? NULL : v;
}

static bool takes(const struct exchange *x, const struct js_node *key)
{
    for (const char *const *name = x->profile_tool->takes; *name; name++)
        if (js_is(&x->msg.doc, key, str_of(*name)))
            return true;
    return false;
}

static enum step_result refuse_name(struct exchange *x, struct str name)
{
    const struct profile_tool *t = x->profile_tool;
    struct buf text;

    buf_init(&text, 4096);
    buf_addf(&text, "%s has no \"%.*s\"; it takes ", t->name,
             (int)(name.n < NAME_SHOWN ? name.n : NAME_SHOWN), name.p);
    for (const char *const *take = t->takes; *take; take++)
        buf_addf(&text, "%s%s", take == t->takes ? "" : take[1] ? ", " : " and ", *take);
    buf_addz(&text, t->answer ? "." : ". What the tool itself takes goes into parameters.");
    enum step_result result = profile_tool_refuse(x, buf_str(&text));
    buf_release(&text);
    return result;
}

enum step_result profile_tool_check_names(struct exchange *x)
{
    const struct js_doc *doc = &x->msg.doc;
    const struct js_node *arguments = mcp_param(&x->msg, STR("arguments"));

    if (!js_type_is(arguments, JS_OBJECT))
        return STEP_NEXT;
    for (const struct js_node *key = js_first(doc, arguments); key;
         key = js_next(doc, arguments, js_value_of(key)))
        if (!takes(x, key))
            return refuse_name(x, js_text(doc, key, x->mem));
    return STEP_NEXT;
}

static enum step_result reply(struct exchange *x, struct str text, struct str structured,
                              bool is_error)
{
    struct buf *out = exchange_begin_result(x);

    buf_addz(out, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(out, text);
    if (x->tells_handle && !is_error)
        buf_addf(out, "},{\"type\":\"text\",\"text\":\"[session: %.*s]\"",
                 STR_ARG(x->session->handle));
    buf_addz(out, "}]");
    if (x->tells_handle && !is_error)
        buf_addf(out, ",\"_meta\":{\"holdfast/session\":\"%.*s\"}", STR_ARG(x->session->handle));
    if (structured.p)
        buf_addf(out, ",\"structuredContent\":%.*s", STR_ARG(structured));
    if (is_error)
        buf_addz(out, ",\"isError\":true");
    buf_addstr(out, mcp_era(x->era)->result_end);
    return exchange_end_result(x);
}

enum step_result profile_tool_reply(struct exchange *x, struct str text, struct str structured)
{
    return reply(x, text, structured, false);
}

enum step_result profile_tool_refuse(struct exchange *x, struct str text)
{
    x->refusal = arena_dup(x->mem, str_cut(text, REFUSAL_MAX));
    return reply(x, text, STR_NONE, true);
}

void profile_tool_note(struct exchange *x, const char *outcome)
{
    struct exec_what what = exchange_what(x);
    struct exec_result result = {.outcome = str_of(outcome)};

    what.server = STR("holdfast");
    what.mode = AUDIT_REDACTED;
    exec_note(x->sv->audit, &what, &result);
}

bool profile_tool_is_seen(const struct exchange *x, const struct upstream *up, struct str tool)
{
    const struct builtin *b =
        upstream_config(up)->kind == SERVER_BUILTIN ? builtin_find(upstream_name(up)) : NULL;
    return principal_may_use_tool(&x->who, upstream_name(up), tool) &&
           exchange_profile_shows(x, upstream_name(up), tool) &&
           !(b && builtin_hides(b, &x->who, tool));
}

struct each {
    struct exchange *x;
    bool (*fn)(void *arg, const struct seen_tool *tool);
    void *arg;
    bool over;
};

static void each_of(struct each *e, struct upstream *up, struct catalog *c)
{
    const struct catalog_list *list = c ? &c->lists[CATALOG_TOOLS] : NULL;

    for (size_t i = 0; list && i < list->n && !e->over; i++)
        if (profile_tool_is_seen(e->x, up, list->items[i].name))
            e->over = !e->fn(e->arg, &(struct seen_tool){up, c, i});
}

static void each_known(void *arg, struct upstream *up)
{
    struct each *e = arg;

    if (exchange_sees_server(e->x, upstream_name(up)))
        each_of(e, up, upstream_known(up));
}

void profile_tools_each(struct exchange *x, bool (*fn)(void *arg, const struct seen_tool *tool),
                        void *arg)
{
    struct each e = {.x = x, .fn = fn, .arg = arg};

    if (!x->has_plan)
        upstreams_each(x->sv->upstreams, each_known, &e);
    for (size_t i = 0; x->has_plan && i < x->plan.n; i++)
        each_of(&e, x->plan.parts[i].up, exchange_listed_catalog(x, i));
}

struct naming {
    struct exchange *x;
    struct buf text;
};

static void add_name(void *arg, struct upstream *up)
{
    struct naming *n = arg;

    if (exchange_sees_server(n->x, upstream_name(up)) && n->text.n < 4096)
        buf_addf(&n->text, "%s%.*s", n->text.n ? ", " : "", STR_ARG(upstream_name(up)));
}

struct str profile_servers(struct exchange *x)
{
    struct naming n = {.x = x};

    buf_init(&n.text, 8192);
    upstreams_each(x->sv->upstreams, add_name, &n);
    struct str names = n.text.n ? arena_dup(x->mem, buf_str(&n.text)) : STR("none");
    buf_release(&n.text);
    return names;
}
