/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/view.h"

#include "base/buf.h"
#include "identity/scopes.h"
#include "upstream/builtin.h"

bool profile_sees_server(const struct profile_view *v, struct str server)
{
    return principal_may_use_server(v->who, server) && profile_has_server(v->profile, server);
}

bool profile_sees_tool(const struct profile_view *v, uint64_t toolsets, const struct upstream *up,
                       struct str tool)
{
    struct str server = upstream_name(up);
    const struct builtin *b =
        upstream_config(up)->kind == SERVER_BUILTIN ? builtin_find(server) : NULL;

    return profile_shows(v->profile, toolsets, server, tool) &&
           principal_may_use_tool(v->who, server, tool) && !(b && builtin_hides(b, v->who, tool));
}

struct each {
    const struct profile_view *v;
    bool (*fn)(void *arg, const struct seen_tool *tool);
    void *arg;
    bool over;
};

static void each_of(struct each *e, struct upstream *up, struct catalog *c)
{
    const struct catalog_list *list = c ? &c->lists[CATALOG_TOOLS] : NULL;

    for (size_t i = 0; list && i < list->n && !e->over; i++)
        if (profile_sees_tool(e->v, e->v->toolsets, up, list->items[i].name))
            e->over = !e->fn(e->arg, &(struct seen_tool){up, c, i});
}

static void each_known(void *arg, struct upstream *up)
{
    struct each *e = arg;

    if (profile_sees_server(e->v, upstream_name(up)))
        each_of(e, up, upstream_known(up));
}

void profile_each_tool(const struct profile_view *v,
                       bool (*fn)(void *arg, const struct seen_tool *tool), void *arg)
{
    struct each e = {.v = v, .fn = fn, .arg = arg};

    if (!v->plan)
        upstreams_each(v->upstreams, each_known, &e);
    for (size_t i = 0; i < profile_view_parts(v); i++)
        each_of(&e, v->plan->parts[i].up, v->listed(v->request, i));
}

struct naming {
    const struct profile_view *v;
    struct buf text;
};

static void add_name(void *arg, struct upstream *up)
{
    struct naming *n = arg;

    if (profile_sees_server(n->v, upstream_name(up)) && n->text.n < 4096)
        buf_addf(&n->text, "%s%.*s", n->text.n ? ", " : "", STR_ARG(upstream_name(up)));
}

struct str profile_servers(const struct profile_view *v)
{
    struct naming n = {.v = v};

    buf_init(&n.text, 8192);
    upstreams_each(v->upstreams, add_name, &n);
    struct str names = n.text.n ? arena_dup(v->mem, buf_str(&n.text)) : STR("none");
    buf_release(&n.text);
    return names;
}
