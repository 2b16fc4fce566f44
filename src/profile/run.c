/* SPDX-License-Identifier: Apache-2.0 */
/* run: a call of the tool that it names.  The request is rewritten into the one that the tool's own
 * server would have got from this client.  `parameters` replaces `arguments`, the tool's
 * name replaces "run", and every other byte stays.  From there on it is an ordinary call, for the
 * audit and for the server, and its result is returned unchanged.
 *
 * The model's mistakes are answered here, as a result that it can read: an unknown name, parameters
 * that the tool's schema refuses.  A dry run is answered here too and changes nothing. */
#include "profile/run.h"

#include "base/unicode.h"
#include "json/splice.h"
#include "json/write.h"
#include "schema/schema.h"

#define MEANT_MAX 3
#define MEANT_LOOKED_AT 5000 /* names compared for "did you mean" */
#define NAME_SHOWN 200
#define PREVIEW_MAX (64u * 1024)

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
    unsigned d = unicode_same_name(m->tool, tool) ? 0 : str_distance(m->tool, tool, cap);

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
    unsigned d = distance(m, upstream_name(t->up), seen_tool_name(t));
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

struct str run_unknown_tool(const struct profile_view *v, const struct run_request *r)
{
    struct meant m = {.server = r->server, .tool = r->tool};
    struct buf text;

    if (r->tool.n <= RUN_NAME_MAX)
        profile_each_tool(v, look_at, &m);
    buf_init(&text, 64u * 1024);
    buf_addf(&text, "Tool '%.*s' not found.", STR_ARG(str_cut(r->full, NAME_SHOWN)));
    for (size_t i = 0; i < m.n; i++) {
        const struct seen_tool *t = &m.best[i].tool;
        buf_addf(&text, "%s%.*s:%.*s", i ? ", " : " Did you mean: ", STR_ARG(upstream_name(t->up)),
                 STR_ARG(str_cut(seen_tool_name(t), NAME_SHOWN)));
    }
    buf_addz(&text, m.n ? "?" : " Call find to see what there is.");
    struct str result = arena_dup(v->mem, buf_str(&text));
    buf_release(&text);
    return result;
}

struct str run_unknown_server(const struct profile_view *v, struct str server)
{
    return arena_printf(v->mem, "MCP '%.*s' not found. Available MCPs: %.*s",
                        STR_ARG(str_cut(server, NAME_SHOWN)), STR_ARG(profile_servers(v)));
}

struct str run_unknown_catalog(const struct upstream *up, struct arena *mem)
{
    struct upstream_health health = upstream_health(up);
    struct str server = upstream_name(up);

    if (upstream_probing_ms(up) > 0)
        return arena_printf(mem,
                            "Holdfast is still reading the tools of '%.*s'; try again in a moment.",
                            STR_ARG(server));
    if (health.state == HEALTH_DOWN)
        return arena_printf(mem,
                            "'%.*s' is unavailable, and its tools are not known: %s. Try again "
                            "when find no longer calls it unavailable.",
                            STR_ARG(server), health.reason);
    return arena_printf(mem,
                        "The tools of '%.*s' have not been read yet, and a dry run does not read "
                        "them. Call find first, then try again.",
                        STR_ARG(server));
}

/* Reading and rewriting the request. */

const char *run_request_read(const struct profile_arguments *a, struct arena *mem,
                             struct run_request *ret)
{
    const struct js_node *dry = profile_argument(a, "dry_run");

    *ret = (struct run_request){.full = js_text(a->doc, profile_argument(a, "tool"), mem),
                                .doc = a->doc,
                                .parameters = profile_argument(a, "parameters"),
                                .is_dry = js_type_is(dry, JS_TRUE)};
    if (!ret->full.n)
        return "run needs \"tool\", a name as find gives it: server:tool.";
    if (ret->parameters && ret->parameters->type != JS_OBJECT)
        return "\"parameters\" must be an object of the tool's parameters.";
    if (dry && dry->type != JS_TRUE && dry->type != JS_FALSE)
        return "\"dry_run\" must be true or false.";
    if (!split(ret->full, &ret->server, &ret->tool)) {
        ret->server = STR_NONE;
        ret->tool = ret->full;
    }
    return NULL;
}

static struct str quoted(struct arena *mem, struct str text)
{
    struct buf raw;

    buf_init(&raw, 6 * text.n + 3);
    js_quote(&raw, text);
    struct str result = arena_dup(mem, buf_str(&raw));
    buf_release(&raw);
    return result;
}

struct str run_rewritten(const struct run_request *r, const struct mcp_message *m,
                         struct arena *mem)
{
    const struct js_doc *doc = &m->doc;
    struct js_splice s;
    struct buf text;

    js_splice_init(&s, doc);
    js_splice_replace(&s, mcp_param(m, STR("name")), quoted(mem, r->tool));
    js_splice_replace(&s, mcp_param(m, STR("arguments")),
                      r->parameters ? js_raw(doc, r->parameters) : STR("{}"));
    buf_init(&text, doc->text.n + 6 * r->tool.n + 64);
    js_splice_write(&s, js_root(doc), &text);
    struct str result = arena_dup(mem, buf_str(&text));
    buf_release(&text);
    return result;
}

/* Checking parameters against the schema. */

static bool is_handle(void *arg unused_arg, struct str raw_key)
{
    return str_eq(raw_key, STR("\"session_id\""));
}

/* The parameters as the tool will get them, without a session_id that Holdfast added. */
static bool read_parameters(const struct profile_view *v, const struct run_request *r,
                            const struct run_target *t, struct arena *mem, struct js_doc *ret)
{
    struct js_splice s;
    struct buf text;
    bool ok;

    if (!r->parameters)
        return js_parse(STR("{}"), &js_limits_request, mem, ret, NULL);
    js_splice_init(&s, r->doc);
    if (!t->item->owns_session_id && v->adds_session_id(v->request, t->up, t->catalog))
        js_splice_remove(&s, r->parameters, is_handle, NULL);
    buf_init(&text, r->doc->text.n + 16);
    js_splice_write(&s, r->parameters, &text);
    ok = js_parse(arena_dup(mem, buf_str(&text)), &js_limits_request, mem, ret, NULL);
    buf_release(&text);
    return ok;
}

static bool check_parameters(const struct profile_view *v, const struct run_request *r,
                             const struct run_target *t, struct arena *mem, struct str *ret_unsure,
                             struct profile_answer *ret_refusal)
{
    struct schema_report *report = arena_new_of(mem, struct schema_report);
    struct js_doc tool, parameters;
    struct schema *schema;
    struct error err;

    *ret_unsure = STR("it cannot be read");
    if (!js_parse(catalog_shown(t->item), &js_limits_upstream, mem, &tool, NULL) ||
        !read_parameters(v, r, t, mem, &parameters))
        return true;
    const struct js_node *input = js_get(&tool, js_root(&tool), STR("inputSchema"));
    *ret_unsure = STR("it has none");
    if (!input)
        return true;
    if (!schema_compile(&tool, input, mem, &schema, &err)) {
        *ret_unsure = arena_dup(v->mem, str_of(err.text));
        return true;
    }
    switch (schema_check(schema, &parameters, js_root(&parameters), mem, report)) {
    case SCHEMA_VALID:
        *ret_unsure = STR_NONE;
        return true;
    case SCHEMA_UNSURE:
        *ret_unsure =
            arena_printf(v->mem, "\"%s\": %s", report->unsure_keyword, report->unsure_reason);
        return true;
    case SCHEMA_INVALID:
        break;
    }
    *ret_refusal = (struct profile_answer){.is_error = true};
    buf_init(&ret_refusal->text, 1u << 20);
    schema_report_write(report, &parameters, js_root(&parameters), &ret_refusal->text);
    return false;
}

bool run_check(const struct profile_view *v, const struct run_request *r,
               const struct run_target *t, struct str *ret_unsure,
               struct profile_answer *ret_refusal)
{
    struct arena *mem = arena_new(RUN_MEMORY);
    bool fits = check_parameters(v, r, t, mem, ret_unsure, ret_refusal);

    arena_free(mem);
    return fits;
}

void run_preview(const struct run_request *r, struct str unsure, struct arena *mem,
                 struct profile_answer *ret)
{
    struct str raw = r->parameters ? js_raw(r->doc, r->parameters) : STR("{}");
    bool whole = raw.n <= PREVIEW_MAX;
    struct str fit = unsure.p ? arena_printf(mem,
                                             "Holdfast could not check the parameters against the "
                                             "schema (%.*s); the server decides.",
                                             STR_ARG(unsure))
                              : STR("The parameters fit its schema.");

    *ret = (struct profile_answer){.is_error = false};
    buf_init(&ret->text, 4 * PREVIEW_MAX);
    buf_init(&ret->structured, 8 * PREVIEW_MAX);
    buf_addf(&ret->text,
             "🔍 DRY RUN PREVIEW:\n\nTool: %.*s\nMCP: %.*s\nParameters: %.*s%s\n\n%.*s "
             "Nothing was sent; call run again without dry_run to do it.",
             STR_ARG(str_cut(r->tool, NAME_SHOWN)), STR_ARG(r->server),
             STR_ARG(str_cut(raw, PREVIEW_MAX)), whole ? "" : " … (cut)", STR_ARG(fit));
    buf_addz(&ret->structured, "{\"dry_run\":true,\"mcp\":");
    js_quote(&ret->structured, r->server);
    buf_addz(&ret->structured, ",\"tool\":");
    js_quote(&ret->structured, str_cut(r->tool, NAME_SHOWN));
    buf_addf(&ret->structured, ",\"parameters\":%.*s", STR_ARG(whole ? raw : STR("null")));
    if (unsure.p) {
        buf_addz(&ret->structured, ",\"unchecked\":");
        js_quote(&ret->structured, unsure);
    }
    buf_addc(&ret->structured, '}');
}
