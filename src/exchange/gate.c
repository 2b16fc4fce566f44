/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of a profile: the tools that a caller sees and may call.
 *
 * A dynamic profile shows the toolsets that its session has enabled.  A 2026-07-28 client cannot be
 * told that its list changed, so its list shows every tool that it may enable; its calls are
 * checked against the enabled toolsets of the session. */
#include "exchange/exchange.h"

#include "identity/scopes.h"
#include "profile/profile.h"

#define NEAREST_OF 2000 /* tools that are compared with an unknown name */

uint64_t exchange_permitted_toolsets(const struct exchange *x)
{
    const struct profile_config *p = x->profile;
    struct listener_scope a;

    if (!p->n_clients && !p->proxy_permits) /* the fast path: this runs for every tool of a list */
        return profile_permitted(p, STR_NONE);
    a = exchange_listener_scope(x);
    return listener_scope_toolsets(&a, p);
}

uint64_t exchange_toolsets(const struct exchange *x)
{
    const struct session *s = x->session ? x->session : x->transport ? x->transport->session : NULL;
    uint64_t permitted = exchange_permitted_toolsets(x);

    if (x->profile->mode != PROFILE_DYNAMIC)
        return permitted;
    return s ? permitted & profile_enabled(x->profile, s->toolsets) : 0;
}

bool exchange_profile_shows(const struct exchange *x, struct str server, struct str tool)
{
    bool lists_all = !mcp_era(x->era)->is_stateful && x->method->service == SERVE_LIST;

    return profile_shows(x->profile,
                         lists_all ? exchange_permitted_toolsets(x) : exchange_toolsets(x), server,
                         tool);
}

/* What to do after enabling the toolset.  A call that names no session gets another session than
 * the call that enabled the toolset.  An argument can name the session if Holdfast added it or if a
 * built-in's tool has it. */
static const char *advice(const struct exchange *x)
{
    bool is_named = x->transport || x->session_named == NAMED_FOUND ||
                    (x->carrier.name.p && !str_eq(x->carrier.label, STR("derived")));

    if (is_named)
        return ", then call this tool again";
    if (x->injects || (x->builtin && x->item->owns_session_id))
        return ", then call this tool again with the session_id that it returns";
    return ", naming a session in _meta.session_id or by the header mcp-client-id, then call this "
           "tool again with the same; this tool cannot be given a handle";
}

/* Whether lists show this tool of x->up to the caller. */
static bool is_visible(const struct exchange *x, struct str tool)
{
    const struct server_config *server = upstream_config(x->up);

    return principal_may_use_tool(&x->caller.who, upstream_name(x->up), tool) &&
           (!config_limits_tools(server) || config_shows_tool(server, tool)) &&
           (!x->profile || exchange_profile_shows(x, upstream_name(x->up), tool)) &&
           exchange_rules_show_tool(x, upstream_name(x->up), tool);
}

/* The visible tool with the most similar name; absent: none is similar. */
static struct str nearest_tool(const struct exchange *x)
{
    const struct catalog_list *tools = x->catalog ? &x->catalog->lists[CATALOG_TOOLS] : NULL;
    unsigned best = exchange_near(x->tool) + 1;
    struct str found = STR_NONE;

    for (size_t i = 0; tools && i < tools->n && i < NEAREST_OF; i++) {
        unsigned far = str_distance(x->tool, tools->items[i].name, best);
        if (far >= best || !is_visible(x, tools->items[i].name))
            continue;
        best = far;
        found = tools->items[i].name;
    }
    return found;
}

/* The same words whether the tool does not exist or the caller may not use it.  A similar name is one
 * that the caller's lists have. */
enum step_result exchange_unknown_tool(struct exchange *x)
{
    struct str near = nearest_tool(x);
    struct str server = x->named ? upstream_name(x->up) : STR(""); /* as the client wrote it */
    struct str did_you_mean =
        near.p ? arena_printf(x->mem, " Did you mean \"%.*s%s%.*s\"?", STR_ARG(server),
                              x->named ? ROUTE_SEPARATOR : "", STR_ARG(str_cut(near, 128)))
               : STR("");

    return exchange_refuse(
        x, 200, -32602,
        "Unknown tool: there is none of this name; tools/list names them. If you "
        "expect it, your key may not include it: ask an administrator%s%.*s",
        near.p ? "." : "", STR_ARG(did_you_mean));
}

enum step_result exchange_refuse_tool(struct exchange *x)
{
    struct str key = STR_NONE;

    if (x->profile && x->profile->mode == PROFILE_DYNAMIC)
        key = profile_toolset_with(x->profile, exchange_permitted_toolsets(x), upstream_name(x->up),
                                   x->tool);
    if (!key.p || !x->item)
        return exchange_unknown_tool(x);
    return exchange_tool_error(
        x, arena_printf(x->mem,
                        "Toolset '%.*s' is not enabled in this session; call enable_toolset with "
                        "{\"name\":\"%.*s\"} first%s.",
                        STR_ARG(key), STR_ARG(key), advice(x))
               .p);
}
