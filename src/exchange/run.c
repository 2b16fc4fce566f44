/* SPDX-License-Identifier: Apache-2.0 */
/* run: a call of the tool that it names.  The route step rewrites the request into the one that the
 * tool's own server would have got from this client.  `parameters` replaces `arguments`, the tool's
 * name replaces "run", and every other byte stays.  From there on it is an ordinary call, for the
 * audit and for the server, and its result is returned unchanged.
 *
 * The model's mistakes are answered here, as a result that it can read: an unknown name, parameters
 * that the tool's schema refuses.  A dry run is answered here too and changes nothing. */
#include "exchange/profile_tools.h"

#include "json/splice.h"
#include "json/write.h"
#include "pins/pins.h"
#include "schema/schema.h"

#define MEANT_MAX 3
#define MEANT_LOOKED_AT 5000 /* names compared for "did you mean" */
#define NAME_SHOWN 200
#define PREVIEW_MAX (64u * 1024)
/* A request's memory holds its body once.  The rewritten request needs as much again. */
#define RUN_MEMORY (64u << 20)

const char run_definition[] =
    "{\"name\":\"run\",\"title\":\"Run a tool\",\"description\":\"Runs a tool that find has named, "
    "and "
    "returns its result. parameters are checked against the tool's schema first.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"tool\":{\"type\":\"string\",\"description\":\"The tool as find names it: server:tool.\"},"
    "\"parameters\":{\"type\":\"object\",\"description\":\"Its parameters, as its schema "
    "describes them.\",\"default\":{}},"
    "\"dry_run\":{\"type\":\"boolean\",\"description\":\"Shows what would be sent, and sends "
    "nothing.\",\"default\":false}},\"required\":[\"tool\"]}}";

/* Splits "files:read" or "files__read". */
static bool split(struct str full, struct str *ret_server, struct str *ret_tool)
{
    size_t colon = str_find(full, ':');

    if (colon == full.n)
        return route_split(full, ret_server, ret_tool);
    *ret_server = str_n(full.p, colon);
    *ret_tool = str_n(full.p + colon + 1, full.n - colon - 1);
    return colon > 0 && ret_tool->n > 0;
}

/* "Did you mean". */

struct meant {
    struct str server, tool; /* server absent: any */
    struct {
        unsigned distance;
        struct seen_tool tool;
    } best[MEANT_MAX];
    size_t n, looked_at;
};

static bool is_between(char c)
{
    return c == '_' || c == '-' || c == '.' || c == ' ';
}

/* True when the name has every word of `said`, as "get_current_time" has those of "get_time". */
static bool has_words(struct str name, struct str said)
{
    for (size_t from = 0, to; from < said.n; from = to + 1) {
        bool found = false;
        for (to = from; to < said.n && !is_between(said.p[to]);)
            to++;
        for (size_t at = 0; to > from && at + (to - from) <= name.n && !found; at++)
            found = (at == 0 || is_between(name.p[at - 1])) &&
                    (at + (to - from) == name.n || is_between(name.p[at + (to - from)])) &&
                    str_ieq(str_n(name.p + at, to - from), str_n(said.p + from, to - from));
        if (to > from && !found)
            return false;
    }
    return true;
}

/* The distance of a tool from the given name.  The same tool of another server is near. */
static unsigned distance(const struct meant *m, struct str server, struct str tool)
{
    unsigned cap = m->tool.n < 4 ? 2 : m->tool.n < 8 ? 3 : 2 + (unsigned)m->tool.n / 4;
    unsigned d = str_distance(m->tool, tool, cap);

    if (d == cap && m->tool.n >= 4 &&
        (str_icontains(tool, m->tool) || str_icontains(m->tool, tool) || has_words(tool, m->tool)))
        d = cap - 1;
    if (d == cap)
        return UINT32_MAX;
    return 2 * d + (m->server.p && !str_ieq(m->server, server));
}

static bool look_at(void *arg, const struct seen_tool *t)
{
    struct meant *m = arg;
    struct str name = t->catalog->lists[CATALOG_TOOLS].items[t->item].name;
    unsigned d = distance(m, upstream_name(t->up), name);
    size_t at = m->n;

    if (d == UINT32_MAX)
        return ++m->looked_at < MEANT_LOOKED_AT;
    while (at > 0 && m->best[at - 1].distance > d)
        at--;
    if (m->n < MEANT_MAX)
        m->n++;
    for (size_t i = m->n - 1; i > at; i--)
        m->best[i] = m->best[i - 1];
    if (at < MEANT_MAX) {
        m->best[at].distance = d;
        m->best[at].tool = *t;
    }
    return ++m->looked_at < MEANT_LOOKED_AT;
}

static enum step_result refuse_tool(struct exchange *x, struct str full, struct str server,
                                    struct str tool)
{
    struct meant m = {.server = server, .tool = tool};
    enum step_result result;
    struct buf text;

    if (tool.n <= EXCHANGE_NAME_MAX) /* no tool has a longer name */
        profile_tools_each(x, look_at, &m);
    buf_init(&text, 64u * 1024);
    buf_addf(&text, "Tool '%.*s' not found.", STR_ARG(str_cut(full, NAME_SHOWN)));
    for (size_t i = 0; i < m.n; i++) {
        const struct seen_tool *t = &m.best[i].tool;
        struct str name = t->catalog->lists[CATALOG_TOOLS].items[t->item].name;
        buf_addf(&text, "%s%.*s:%.*s", i ? ", " : " Did you mean: ", STR_ARG(upstream_name(t->up)),
                 STR_ARG(str_cut(name, NAME_SHOWN)));
    }
    buf_addz(&text, m.n ? "?" : " Call find to see what there is.");
    result = profile_tool_refuse(x, buf_str(&text));
    buf_release(&text);
    return result;
}

static enum step_result refuse_server(struct exchange *x, struct str server)
{
    return profile_tool_refuse(x, arena_printf(x->mem, "MCP '%.*s' not found. Available MCPs: %.*s",
                                               STR_ARG(str_cut(server, NAME_SHOWN)),
                                               STR_ARG(profile_servers(x))));
}

/* Rewriting the request. */

static struct str quoted(struct arena *mem, struct str text)
{
    struct buf raw;

    buf_init(&raw, 6 * text.n + 3);
    js_quote(&raw, text);
    struct str result = arena_dup(mem, buf_str(&raw));
    buf_release(&raw);
    return result;
}

/* The request as the tool's own endpoint would have got it, in mem. */
static struct str translated(const struct exchange *x, struct str tool, struct arena *mem)
{
    const struct js_doc *doc = &x->msg.doc;
    const struct js_node *parameters = profile_tool_argument(x, "parameters");
    struct js_splice s;
    struct buf text;

    js_splice_init(&s, doc);
    js_splice_replace(&s, mcp_param(&x->msg, STR("name")), quoted(x->mem, tool));
    js_splice_replace(&s, mcp_param(&x->msg, STR("arguments")),
                      parameters ? js_raw(doc, parameters) : STR("{}"));
    buf_init(&text, doc->text.n + 6 * tool.n + 64);
    js_splice_write(&s, js_root(doc), &text);
    struct str result = arena_dup(mem, buf_str(&text));
    buf_release(&text);
    return result;
}

static void free_arena(void *arg)
{
    arena_free(arg);
}

static bool translate(struct exchange *x, struct str tool)
{
    struct arena *mem = arena_new(RUN_MEMORY);
    struct mcp_message m;
    struct error err;
    struct str id;
    bool is_batch;

    arena_on_free(x->mem, free_arena, mem);
    if (!mcp_parse_request(translated(x, tool, mem), mem, &m, &id, &is_batch, &err)) {
        exchange_refuse(x, 400, error_info(err.code)->jsonrpc, "%s", err.text);
        return false;
    }
    x->msg = m;
    x->tool = arena_dup(x->mem, tool);
    x->named = NULL;
    x->profile_tool = NULL;
    x->is_run = true;
    return true;
}

/* Checking parameters against the schema. */

static bool is_handle(void *arg unused_arg, struct str raw_key)
{
    return str_eq(raw_key, STR("\"session_id\""));
}

/* The parameters as the tool will get them, without a session_id that Holdfast added. */
static bool read_parameters(struct exchange *x, const struct upstream *up, const struct catalog *c,
                            const struct catalog_item *item, struct arena *mem, struct js_doc *ret)
{
    const struct js_node *parameters = profile_tool_argument(x, "parameters");
    struct js_splice s;
    struct buf text;
    bool ok;

    if (!parameters)
        return js_parse(STR("{}"), &js_limits_request, mem, ret, NULL);
    js_splice_init(&s, &x->msg.doc);
    if (!item->owns_session_id && exchange_injects_handles(x, up, c))
        js_splice_remove(&s, parameters, is_handle, NULL);
    buf_init(&text, x->msg.doc.text.n + 16);
    js_splice_write(&s, parameters, &text);
    ok = js_parse(arena_dup(mem, buf_str(&text)), &js_limits_request, mem, ret, NULL);
    buf_release(&text);
    return ok;
}

/* Refuses parameters that do not fit.  *ret_unsure: why it is not known whether they fit; absent
 * when they do. */
static enum step_result check_parameters_in(struct exchange *x, const struct upstream *up,
                                            const struct catalog *c,
                                            const struct catalog_item *item, struct arena *mem,
                                            struct str *ret_unsure)
{
    struct schema_report *report = arena_new_of(mem, struct schema_report);
    struct js_doc tool, parameters;
    struct schema *schema;
    struct error err;
    struct buf text;

    *ret_unsure = STR("it cannot be read");
    if (!js_parse(catalog_shown(item), &js_limits_upstream, mem, &tool, NULL) ||
        !read_parameters(x, up, c, item, mem, &parameters))
        return STEP_NEXT;
    const struct js_node *input = js_get(&tool, js_root(&tool), STR("inputSchema"));
    *ret_unsure = STR("it has none");
    if (!input)
        return STEP_NEXT;
    if (!schema_compile(&tool, input, mem, &schema, &err)) {
        *ret_unsure = arena_dup(x->mem, str_of(err.text));
        return STEP_NEXT;
    }
    switch (schema_check(schema, &parameters, js_root(&parameters), mem, report)) {
    case SCHEMA_VALID:
        *ret_unsure = STR_NONE;
        return STEP_NEXT;
    case SCHEMA_UNSURE:
        *ret_unsure =
            arena_printf(x->mem, "\"%s\": %s", report->unsure_keyword, report->unsure_reason);
        return STEP_NEXT;
    case SCHEMA_INVALID:
        break;
    }
    buf_init(&text, 1u << 20);
    schema_report_write(report, &parameters, js_root(&parameters), &text);
    enum step_result result = profile_tool_refuse(x, buf_str(&text));
    buf_release(&text);
    return result;
}

static enum step_result check_parameters(struct exchange *x, const struct upstream *up,
                                         const struct catalog *c, const struct catalog_item *item,
                                         struct str *ret_unsure)
{
    struct arena *mem = arena_new(RUN_MEMORY);
    enum step_result result = check_parameters_in(x, up, c, item, mem, ret_unsure);

    arena_free(mem);
    return result;
}

/* Replies with the request that would be sent. */
static enum step_result preview(struct exchange *x, struct str server, struct str tool,
                                struct str unsure)
{
    const struct js_node *parameters = profile_tool_argument(x, "parameters");
    struct str raw = parameters ? js_raw(&x->msg.doc, parameters) : STR("{}");
    bool whole = raw.n <= PREVIEW_MAX;
    struct str fit = unsure.p ? arena_printf(x->mem,
                                             "Whether the parameters fit its schema cannot be told "
                                             "(%.*s); the server decides.",
                                             STR_ARG(unsure))
                              : STR("The parameters fit its schema.");
    struct buf text, structured;

    buf_init(&text, 4 * PREVIEW_MAX);
    buf_init(&structured, 8 * PREVIEW_MAX);
    buf_addf(&text,
             "🔍 DRY RUN PREVIEW:\n\nTool: %.*s\nMCP: %.*s\nParameters: %.*s%s\n\n%.*s "
             "Nothing was sent; call run again without dry_run to do it.",
             STR_ARG(str_cut(tool, NAME_SHOWN)), STR_ARG(server),
             STR_ARG(str_cut(raw, PREVIEW_MAX)), whole ? "" : " … (cut)", STR_ARG(fit));
    buf_addz(&structured, "{\"dry_run\":true,\"mcp\":");
    js_quote(&structured, server);
    buf_addz(&structured, ",\"tool\":");
    js_quote(&structured, str_cut(tool, NAME_SHOWN));
    buf_addf(&structured, ",\"parameters\":%.*s", STR_ARG(whole ? raw : STR("null")));
    if (unsure.p) {
        buf_addz(&structured, ",\"unchecked\":");
        js_quote(&structured, unsure);
    }
    buf_addc(&structured, '}');
    enum step_result result = profile_tool_reply(x, buf_str(&text), buf_str(&structured));
    buf_release(&text);
    buf_release(&structured);
    return result;
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

/* Says why the server's catalog is not known, and what to do. */
static enum step_result refuse_unasked(struct exchange *x, const struct upstream *up)
{
    struct upstream_health health = upstream_health(up);
    struct str server = upstream_name(up);

    if (upstream_probing_ms(up) > 0)
        return profile_tool_refuse(
            x, arena_printf(x->mem,
                            "'%.*s' is still being asked what it offers; try again in a moment.",
                            STR_ARG(server)));
    if (health.state == HEALTH_DOWN)
        return profile_tool_refuse(
            x, arena_printf(x->mem,
                            "'%.*s' is unavailable, and has never told what it offers: %s. Try "
                            "again when find no longer calls it unavailable.",
                            STR_ARG(server), health.reason));
    return profile_tool_refuse(
        x, arena_printf(x->mem,
                        "Nobody has asked '%.*s' yet what it offers, and a dry run does not. Call "
                        "find first, then try again.",
                        STR_ARG(server)));
}

/* Uses only the known catalog; never asks the server. */
static enum step_result dry_run(struct exchange *x, struct upstream *up, struct str full,
                                struct str tool)
{
    struct catalog *c = upstream_known(up);
    const struct catalog_item *item = c ? catalog_tool(c, tool) : NULL;
    struct str unsure;

    if (!c)
        return refuse_unasked(x, up);
    if ((!item && !c->tools_fault.p) || !profile_tool_is_seen(x, up, tool))
        return refuse_tool(x, full, upstream_name(up), tool);
    if (check_pin(x, up, tool) != STEP_NEXT)
        return STEP_REPLY;
    if (!item) {
        profile_tool_note(x, "ok");
        return preview(
            x, upstream_name(up), tool,
            arena_printf(x->mem, "its tools could not be listed: %.*s", STR_ARG(c->tools_fault)));
    }
    if (check_parameters(x, up, c, item, &unsure) != STEP_NEXT)
        return STEP_REPLY;
    profile_tool_note(x, "ok");
    return preview(x, upstream_name(up), tool, unsure);
}

/* The catalog lacks tools that only this session was told of, and all tools if the server could not
 * list them.  Then the server decides, as it does for a direct call. */
static bool may_be_there(struct exchange *x, struct str tool)
{
    struct link *l = exchange_session_catalog_link(x, x->up, CATALOG_TOOLS);
    return x->catalog->tools_fault.p || (l && link_session_catalog_has(l, CATALOG_TOOLS, tool));
}

/* Continues once x->catalog is set. */
static enum step_result go(struct exchange *x, struct str full, struct str tool)
{
    const struct catalog_item *item = catalog_tool(x->catalog, tool);
    struct str unsure; /* present: the server decides */

    if (profile_tool_is_seen(x, x->up, tool) && catalog_needs_task(x->catalog, tool))
        return profile_tool_refuse(x, exchange_task_text(x, x->up, tool));
    if (!profile_tool_is_seen(x, x->up, tool) || (!item && !may_be_there(x, tool)))
        return refuse_tool(x, full, upstream_name(x->up), tool);
    if (item && check_parameters(x, x->up, x->catalog, item, &unsure) != STEP_NEXT)
        return STEP_REPLY;
    return translate(x, tool) ? STEP_NEXT : STEP_REPLY;
}

enum step_result exchange_route_run(struct exchange *x)
{
    struct str full = js_text(&x->msg.doc, profile_tool_argument(x, "tool"), x->mem), server, tool;
    const struct js_node *parameters = profile_tool_argument(x, "parameters"),
                         *dry = profile_tool_argument(x, "dry_run");
    struct upstream *up;

    if (profile_tool_check_names(x) != STEP_NEXT)
        return STEP_REPLY;
    if (!full.n)
        return profile_tool_refuse(x, STR("run needs \"tool\", a name as find gives it: "
                                          "server:tool."));
    if (parameters && parameters->type != JS_OBJECT)
        return profile_tool_refuse(x, STR("\"parameters\" must be an object of the tool's "
                                          "parameters."));
    if (dry && dry->type != JS_TRUE && dry->type != JS_FALSE)
        return profile_tool_refuse(x, STR("\"dry_run\" must be true or false."));
    if (!split(full, &server, &tool))
        return refuse_tool(x, full, STR_NONE, full);
    if (x->catalog)
        return go(x, full, tool);
    up = exchange_sees_server(x, server) ? upstreams_find(x->sv->upstreams, server) : NULL;
    if (!up)
        return refuse_server(x, server);
    if (js_type_is(dry, JS_TRUE))
        return dry_run(x, up, full, tool);
    if (!x->up) {
        x->up = up;
        upstream_ref(up);
    }
    enum step_result result = exchange_want_catalog(x, true);
    return result == STEP_NEXT ? go(x, full, tool) : result;
}
