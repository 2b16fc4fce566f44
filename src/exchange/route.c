/* SPDX-License-Identifier: Apache-2.0 */
/* The route step: finds the server of a request.  Under /mcp/{server} the path names it.  On /mcp a
 * name's prefix or a uri names it, and lists cover all servers. */
#include "exchange/exchange.h"

#include "exchange/profile_tools.h"
#include "identity/scopes.h"
#include "json/write.h"
#include "profile/profile.h"

static void on_catalog(struct catalog_want *w, struct catalog *c, const struct error *err)
{
    struct exchange *x = container_of(w, struct exchange, want);
    if (err)
        exchange_fail(x, err);
    else
        x->catalog = catalog_ref(c);
    exchange_resume(x);
}

enum step_result exchange_want_catalog(struct exchange *x, bool fresh)
{
    struct catalog *c = NULL;
    struct error err;

    x->want.done = on_catalog;
    if (!upstream_catalog(x->up, fresh, &x->want, &c, &err))
        return exchange_fail(x, &err);
    if (!c)
        return STEP_WAIT;
    x->catalog = catalog_ref(c);
    return STEP_NEXT;
}

/* A list wants a fresh catalog. */
static enum step_result want_catalog(struct exchange *x)
{
    return exchange_want_catalog(x, x->method->service == SERVE_LIST);
}

static bool needs_catalog(const struct mcp_method *m)
{
    return m->capability || m->service == SERVE_INITIALIZE || m->service == SERVE_DISCOVER ||
           m->service == SERVE_LISTEN;
}

bool exchange_sees_server(const struct exchange *x, struct str server)
{
    return principal_may_use_server(&x->caller.who, server) &&
           (!x->profile || profile_has_server(x->profile, server));
}

static struct upstream *find_server(struct exchange *x, struct str name)
{
    struct upstreams *all = x->sv->upstreams;
    struct upstream *own;

    if (!exchange_sees_server(x, name))
        return NULL;
    own = upstreams_find_private(all, name, &x->caller.who);
    return own ? own : upstreams_find(all, name);
}

static bool is_in_scope(void *arg, const struct upstream *up)
{
    return exchange_sees_server(arg, upstream_name(up)) &&
           exchange_rules_show_server(arg, upstream_name(up));
}

static enum step_result route_by_path(struct exchange *x)
{
    if (!x->up) {
        x->up = find_server(x, x->server);
        if (!x->up)
            return exchange_refuse(
                x, 404, -32000,
                "No server of this name is configured; see \"mcpServers\" in the configuration");
        upstream_ref(x->up);
    }
    return needs_catalog(x->method) ? want_catalog(x) : STEP_NEXT;
}

struct nearest {
    const struct exchange *x;
    struct str name, found;
    unsigned best;
};

static void offer(void *arg, struct upstream *up)
{
    struct nearest *n = arg;
    unsigned far = str_distance(n->name, upstream_name(up), n->best);

    if (far < n->best && exchange_sees_server(n->x, upstream_name(up))) {
        n->best = far;
        n->found = upstream_name(up);
    }
}

/* A name without a server, or with one that the caller does not see. */
static enum step_result unknown_name(struct exchange *x, struct str server, struct str name)
{
    bool is_tool = x->method->service == SERVE_CALL;
    struct nearest near = {.x = x, .name = server, .best = exchange_near(server) + 1};
    struct str meant = STR("");

    if (server.p)
        upstreams_each(x->sv->upstreams, offer, &near);
    if (near.found.p)
        meant = arena_printf(x->mem, "; did you mean \"%.*s" ROUTE_SEPARATOR "%.*s\"?",
                             STR_ARG(near.found), STR_ARG(str_cut(name, 128)));
    return exchange_refuse(x, 200, -32602,
                           "Unknown %s: names on this endpoint are server" ROUTE_SEPARATOR
                           "name, as its lists give them%.*s%s",
                           is_tool ? "tool" : "prompt", STR_ARG(meant),
                           is_tool && !near.found.p ? "; your key may not include its server" : "");
}

/* `node` holds "server__name". */
static enum step_result route_by_name(struct exchange *x, const struct js_node *node)
{
    struct str full = js_text(&x->msg.doc, node, x->mem), server = STR_NONE, name = STR_NONE;

    if (!x->up) {
        if (full.p && route_split(full, &server, &name))
            x->up = find_server(x, server);
        if (!x->up)
            return unknown_name(x, server, name);
        upstream_ref(x->up);
        x->tool = name;
        x->named = node;
    }
    return want_catalog(x);
}

static void on_plan(struct plan *p)
{
    exchange_resume(container_of(p, struct exchange, plan));
}

/* A handshake does not wait for servers: its reply holds also while servers are down, and names
 * those. */
static enum plan_need need_of(const struct mcp_method *m)
{
    if (m->service == SERVE_INITIALIZE || m->service == SERVE_DISCOVER)
        return PLAN_KNOWN;
    return m->service == SERVE_LIST ? PLAN_FRESH : PLAN_ANY;
}

enum step_result exchange_gather(struct exchange *x)
{
    if (x->has_plan)
        return STEP_NEXT;
    plan_init(&x->plan, x->sv->loop, x->sv->upstreams, x->mem, is_in_scope, x);
    x->has_plan = true;
    return plan_gather(&x->plan, need_of(x->method), on_plan) ? STEP_NEXT : STEP_WAIT;
}

static enum step_result refuse_uri(struct exchange *x, struct str uri)
{
    enum step_result result;
    struct buf data;

    buf_init(&data, 64u * 1024 * 1024);
    buf_addz(&data, "{\"uri\":");
    js_quote(&data, uri);
    buf_addc(&data, '}');
    result = exchange_refuse_data(x, 200, mcp_era(x->era)->no_resource_code, buf_str(&data),
                                  "Resource not found: no server here lists this uri or has a "
                                  "template for it");
    buf_release(&data);
    return result;
}

/* The server of a resource that only this session has (upstream/session_catalog.c): the server that
 * listed it to the session.  With `guess`: the only server that has such resources. */
static struct plan_part *find_own(struct exchange *x, struct str uri, bool guess)
{
    struct plan_part *found = NULL;
    unsigned n = 0;

    for (size_t i = 0; i < x->plan.n; i++) {
        struct link *l = exchange_session_catalog_link(x, x->plan.parts[i].up, CATALOG_RESOURCES);
        if (l && x->plan.parts[i].catalog &&
            (guess || link_session_catalog_has(l, CATALOG_RESOURCES, uri))) {
            found = &x->plan.parts[i];
            n++;
        }
    }
    return n == 1 || !guess ? found : NULL;
}

static enum step_result route_by_uri(struct exchange *x, struct str uri)
{
    struct plan_part *part;

    if (exchange_gather(x) == STEP_WAIT)
        return STEP_WAIT;
    part = find_own(x, uri, false);
    if (!part)
        part = plan_find_uri(&x->plan, uri);
    if (!part)
        part = find_own(x, uri, true);
    if (!part)
        return refuse_uri(x, uri);
    x->up = part->up;
    upstream_ref(x->up);
    x->catalog = catalog_ref(part->catalog);
    return STEP_NEXT;
}

static enum step_result route_by_ref(struct exchange *x)
{
    const struct js_node *ref = mcp_param(&x->msg, STR("ref"));
    const struct js_node *uri = js_get(&x->msg.doc, ref, STR("uri"));
    const struct js_node *name = js_get(&x->msg.doc, ref, STR("name"));
    struct str text = js_text(&x->msg.doc, uri, x->mem);

    if (js_type_is(name, JS_STRING))
        return route_by_name(x, name);
    if (!text.p)
        return exchange_refuse(x, 200, -32602, "completion/complete needs params.ref");
    if (exchange_gather(x) == STEP_WAIT)
        return STEP_WAIT;
    for (size_t i = 0; i < x->plan.n && !x->up; i++) {
        struct plan_part *part = &x->plan.parts[i];
        if (part->catalog && catalog_find(part->catalog, CATALOG_TEMPLATES, text)) {
            x->up = part->up;
            upstream_ref(x->up);
            x->catalog = catalog_ref(part->catalog);
        }
    }
    return x->up ? STEP_NEXT : route_by_uri(x, text);
}

/* True when the profile itself handles the request. */
static bool is_of_profile(struct exchange *x)
{
    const struct mcp_method *m = x->method;

    if (!x->profile || x->profile->mode == PROFILE_ALL)
        return false;
    if (m->service == SERVE_CALL && !x->is_run && !x->up)
        x->profile_tool = profile_tool_find(x->profile, x->tool);
    return x->profile_tool || (x->profile->mode == PROFILE_SEARCH && m->service == SERVE_LIST &&
                               str_eq(m->name, catalog_kinds[CATALOG_TOOLS].method));
}

enum step_result exchange_route(struct exchange *x)
{
    const struct mcp_method *m = x->method;

    if (x->status)
        return STEP_REPLY;
    if (unlikely(x->profile != NULL) && is_of_profile(x))
        return x->profile_tool ? exchange_route_profile_tool(x) : STEP_NEXT;
    if (x->catalog)
        return STEP_NEXT;
    if (x->server.p)
        return route_by_path(x);
    switch (m->target) {
    case TARGET_NAME:
        return route_by_name(x, mcp_param(&x->msg, STR("name")));
    case TARGET_URI:
        return route_by_uri(x, x->tool);
    case TARGET_REF:
        return route_by_ref(x);
    case TARGET_ALL:
        break;
    }
    return needs_catalog(m) && m->service != SERVE_SET_LEVEL ? exchange_gather(x) : STEP_NEXT;
}
