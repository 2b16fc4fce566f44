/* SPDX-License-Identifier: Apache-2.0 */
/* /servers: the state of servers with its reasons, their tools as last seen, how a tool differs
 * from its approved definition, and the approval.  Servers are not of one tenant: every admin sees
 * those that its scopes admit.  No operation adds a server or a command. */
#include "api/admin_bodies.h"
#include "api/job.h"
#include "api/page.h"

#include "identity/scopes.h"
#include "upstream/health_store.h"
#include "upstream/pins.h"
#include "upstream/pins_json.h"

#include <stdio.h>

#define MAX_BYTES (32u * 1024 * 1024)
#define NO_SUCH_SERVER "there is no such server; see GET /api/v1/servers"

/* The state of servers. */

struct servers_page {
    struct api_call *call;
    struct js_writer w;
    size_t first, limit; /* rows to skip, and to write */
    struct str only;     /* one server alone; absent: all */
    size_t seen, n;
};

/* Whether the server belongs on the page; counts it. */
static bool is_due(struct servers_page *p, struct str name)
{
    if ((p->only.p && !str_eq(p->only, name)) || !principal_may_use_server(&p->call->who, name))
        return false;
    size_t at = p->seen++;
    if (at < p->first || p->n >= p->limit)
        return false;
    p->n++;
    return true;
}

static void write_note(void *arg, const char *note)
{
    js_string(arg, str_of(note));
}

/* What the server offers, as the last probe found it. */
static void write_offer(struct js_writer *w, const struct catalog *known)
{
    js_kv_int(w, "tools", (int64_t)known->lists[CATALOG_TOOLS].n);
    js_kv_int(w, "prompts", (int64_t)known->lists[CATALOG_PROMPTS].n);
    js_kv_int(w, "resources", (int64_t)known->lists[CATALOG_RESOURCES].n);
    js_kv_string(w, "era", str_of(mcp_era(known->era)->name));
    if (known->version.p)
        js_kv_string(w, "protocol_version", known->version);
    js_kv_int(w, "probe_ms", known->took_ms);
}

static void write_upstream(void *arg, struct upstream *u)
{
    struct servers_page *p = arg;
    struct js_writer *w = &p->w;
    struct upstream_health h = upstream_health(u);
    struct catalog *known = upstream_known(u);

    if (!is_due(p, upstream_name(u)))
        return;
    js_object(w);
    js_kv_string(w, "name", upstream_name(u));
    health_write(w, &h);
    if (known)
        write_offer(w, known);
    js_key(w, STR("notes"));
    js_array(w);
    if (known)
        catalog_each_note(known, write_note, w);
    js_array_end(w);
    js_object_end(w);
}

/* No server runs in this process: it is a command. */
static void write_configured(struct servers_page *p, struct str name)
{
    if (!is_due(p, name))
        return;
    js_object(&p->w);
    js_kv_string(&p->w, "name", name);
    js_kv_string(&p->w, "state", STR("not running"));
    js_object_end(&p->w);
}

static void write_servers(struct servers_page *p)
{
    const struct config *config = p->call->config;

    if (p->call->sv->upstreams) {
        upstreams_each(p->call->sv->upstreams, write_upstream, p);
        return;
    }
    for (size_t i = 0; i < config->n_servers; i++)
        write_configured(p, config->servers[i].name);
    for (size_t i = 0; i < config->n_builtins; i++)
        write_configured(p, config->builtins[i].name);
}

void api_list_servers(struct api_call *c)
{
    struct page_place place = {.who = &c->who, .about = STR("servers")};
    struct api_job *j = api_job_new(sizeof(*j), MAX_BYTES, c);
    struct servers_page p = {.call = c};
    struct str after;
    uint64_t first = 0;
    int64_t limit;

    if (!api_page(c, place.about, &limit, &after)) {
        api_job_drop(j);
        return;
    }
    if (after.p && str_to_u64(after, SIZE_MAX / 2, &first))
        p.first = (size_t)first;
    p.limit = (size_t)limit;
    js_begin(&p.w, &j->out);
    js_object(&p.w);
    js_key(&p.w, STR("servers"));
    js_array(&p.w);
    write_servers(&p);
    js_array_end(&p.w);
    place.url = arena_printf(j->mem, "/api/v1/servers?limit=%lld", (long long)limit);
    struct str last =
        p.seen > p.first + p.n ? arena_printf(j->mem, "%zu", p.first + p.n) : STR_NONE;
    api_job_end(j, 200, page_end(&place, &p.w, p.n, last, j->mem));
}

void api_get_server(struct api_call *c)
{
    struct api_job *j = api_job_new(sizeof(*j), MAX_BYTES, c);
    struct servers_page p = {.call = c, .limit = 1, .only = c->match.params[0]};
    struct error err;

    js_begin(&p.w, &j->out);
    write_servers(&p);
    if (p.n) {
        api_job_end(j, 200, STR_NONE);
        return;
    }
    error_set(&err, ERR_NOT_FOUND, NO_SUCH_SERVER);
    api_job_refuse(j, &err);
}

/* Tools. */

struct tools_job {
    struct api_job j;
    struct read_job read;
    struct tool_filter filter;
    struct page_place place;
    int64_t limit;
    struct str link;
    struct tool_row *shown; /* the tool of a diff; NULL: this is a list */
    struct pins_approval approval;
};

/* Where the next page begins: the server and the name of the last tool.  A name that is too long for
 * a cursor is cut, and the next page begins after all names with that beginning. */
static struct str tool_place(const struct tool_row *row, struct arena *mem)
{
    struct str name = str_cut(row->name, 800);

    return arena_printf(mem, "%.*s/%.*s%s", STR_ARG(row->server), STR_ARG(name),
                        name.n < row->name.n ? "\xf4\x8f\xbf\xbf" : "");
}

static void write_tools(struct tools_job *t, const struct tool_row *rows, size_t n)
{
    bool more = n > (size_t)t->limit || (n == (size_t)t->limit && n == STORE_PAGE_MAX);
    const struct principal *who = &t->j.call->who;
    struct js_writer w;
    size_t shown = 0;

    n = n < (size_t)t->limit ? n : (size_t)t->limit;
    js_begin(&w, &t->j.out);
    js_object(&w);
    js_key(&w, STR("tools"));
    js_array(&w);
    for (size_t i = 0; i < n; i++) {
        if (!principal_may_use_server(who, rows[i].server))
            continue;
        tool_write(&w, &rows[i]);
        shown++;
    }
    js_array_end(&w);
    t->link = page_end(&t->place, &w, shown, more ? tool_place(&rows[n - 1], t->j.mem) : STR_NONE,
                       t->j.mem);
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct tools_job *t = container_of(job, struct tools_job, read);
    unsigned limit = (unsigned)t->limit + (t->limit < STORE_PAGE_MAX);
    struct tool_row *rows = NULL;
    size_t n = 0;

    if (!store_tools_page(store, &t->filter, limit, t->j.mem, &rows, &n, &job->err))
        return false;
    write_tools(t, rows, n);
    return true;
}

static void on_listed(struct read_job *job)
{
    struct tools_job *t = container_of(job, struct tools_job, read);

    if (job->ok)
        api_job_end(&t->j, 200, t->link);
    else
        api_job_refuse(&t->j, &job->err);
}

/* Server names have no slash. */
static void read_place(struct tools_job *t, struct str after)
{
    t->filter.after_server = str_split(&after, '/');
    t->filter.after = after;
}

static void list_tools(struct api_call *c, struct str server, bool definitions, const char *path)
{
    struct tools_job *t = api_job_new(sizeof(*t), MAX_BYTES, c);
    struct str after, about = arena_printf(c->mem, "tools of %.*s", STR_ARG(server));

    if (!api_page(c, about, &t->limit, &after)) {
        api_job_drop(&t->j);
        return;
    }
    t->place = (struct page_place){.who = &c->who, .about = about};
    t->place.url = arena_printf(t->j.mem, "%s?%slimit=%lld", path,
                                definitions ? "definitions=1&" : "", (long long)t->limit);
    t->filter.server = server;
    t->filter.with_definitions = definitions;
    if (after.p)
        read_place(t, after);
    t->read = (struct read_job){.run = run_list, .done = on_listed, .ok = true};
    if (!c->sv->lanes) { /* there is no database yet */
        write_tools(t, NULL, 0);
        on_listed(&t->read);
    } else if (!lane_query(c->sv->lanes, &t->read)) {
        api_job_busy(&t->j);
    }
}

void api_list_tools(struct api_call *c)
{
    list_tools(c, STR_NONE, false, "/api/v1/tools");
}

/* false: the caller may not use the server, and the refusal was sent. */
static bool may_use(struct api_call *c)
{
    if (principal_may_use_server(&c->who, c->match.params[0]))
        return true;
    api_refuse(c, ERR_NOT_FOUND, NO_SUCH_SERVER);
    return false;
}

void api_list_server_tools(struct api_call *c)
{
    struct str name = c->match.params[0], definitions;

    if (may_use(c) && api_query(c, "definitions", &definitions))
        list_tools(
            c, name, str_eq(definitions, STR("1")),
            arena_printf(c->mem, "/api/v1/servers/%.*s/tools", STR_ARG(api_in_path(c, name))).p);
}

/* The diff of a tool.  A person has seen it then, and approves what was shown. */

static bool run_diff(struct read_job *job, struct store *store)
{
    struct tools_job *t = container_of(job, struct tools_job, read);
    struct tool_row *rows = NULL;
    size_t n = 0;

    if (store && !store_tools_page(store, &t->filter, 1, t->j.mem, &rows, &n, &job->err))
        return false;
    if (!n)
        return error_set(&job->err, ERR_NOT_FOUND,
                         "no such tool is known; see `holdfast servers show NAME`");
    tool_diff_write(&t->j.out, rows);
    t->shown = rows;
    return true;
}

static void on_diff(struct read_job *job)
{
    struct tools_job *t = container_of(job, struct tools_job, read);
    struct pins *pins = t->j.call->sv->pins;

    if (!job->ok) {
        api_job_refuse(&t->j, &job->err);
        return;
    }
    if (pins && t->j.call->who.role == ROLE_ADMIN)
        pins_shown(pins, t->shown);
    api_job_end(&t->j, 200, STR_NONE);
}

void api_diff_tool(struct api_call *c)
{
    struct str tool;

    if (!may_use(c) || !api_query(c, "tool", &tool))
        return;
    if (!tool.n) {
        api_refuse(c, ERR_BAD_INPUT, "name the tool with ?tool=");
        return;
    }
    struct tools_job *t = api_job_new(sizeof(*t), MAX_BYTES, c);
    t->filter =
        (struct tool_filter){.server = c->match.params[0], .name = tool, .with_definitions = true};
    t->read = (struct read_job){.run = run_diff, .done = on_diff};
    if (!c->sv->lanes) { /* there is no database yet */
        t->read.ok = run_diff(&t->read, NULL);
        on_diff(&t->read);
    } else if (!lane_query(c->sv->lanes, &t->read)) {
        api_job_busy(&t->j);
    }
}

/* Approval. */

static void on_approved(struct pins_approval *a, const struct error *err)
{
    struct tools_job *t = container_of(a, struct tools_job, approval);
    struct js_writer w;

    if (err) {
        api_job_refuse(&t->j, err);
        return;
    }
    js_begin(&w, &t->j.out);
    js_object(&w);
    js_kv_string(&w, "server", a->server);
    js_kv_int(&w, "approved", a->approved);
    js_kv_int(&w, "left", a->left);
    js_kv_int(&w, "unseen", a->unseen);
    js_object_end(&w);
    api_job_end(&t->j, 200, STR_NONE);
}

/* Without "tool": all tools of the server that differ from their approved definitions. */
void api_approve_tools(struct api_call *c)
{
    struct approve_body b = {0};
    struct error err;

    if (!may_use(c) || (c->doc.n && !api_bind(c, js_root(&c->doc), &body_approve, &b, NULL, NULL)))
        return;
    if (!c->sv->pins) { /* inside a command: no process remembers which diffs a person was shown */
        api_refuse(c, ERR_UNREACHABLE, "start Holdfast first (`holdfast up`)");
        return;
    }
    struct tools_job *t = api_job_new(sizeof(*t), MAX_BYTES, c);
    t->approval = (struct pins_approval){
        .server = c->match.params[0],
        .tool = b.tool,
        .digest = b.digest,
        .by = c->who.owner,
        .done = on_approved,
    };
    if (!pins_approve(c->sv->pins, &t->approval, &err))
        api_job_refuse(&t->j, &err);
}
