/* SPDX-License-Identifier: Apache-2.0 */
/* The scope of a listener, and the changes that it may see: those of lists that it would be shown
 * if it asked now.  The decision is made at each change, for streams that were opened long ago.  It
 * uses the current configuration and the values of the opening request (delivery/hub.h). */
#include "exchange/exchange.h"

#include "identity/scopes.h"
#include "profile/profile.h"

#define PERMISSIONS "mcp-toolset-permissions"

/* The permissions header counts only from a proxy that the configuration trusts.  Two such headers
 * count as no header. */
struct listener_scope exchange_listener_scope(const struct exchange *x)
{
    bool has_profile = x->profile || exchange_rules_profile(x).p;
    bool is_permitted =
        has_profile && x->by_proxy && http_header_count(x->head, STR(PERMISSIONS)) == 1;

    return (struct listener_scope){
        .endpoint = x->endpoint,
        .who = x->caller.who,
        .client = has_profile ? str_trim(http_header_get(x->head, STR("mcp-client-id"))) : STR_NONE,
        .permissions = is_permitted ? http_header_get(x->head, STR(PERMISSIONS)) : STR_NONE,
        .lists_all_toolsets = !mcp_era(x->era)->is_stateful,
    };
}

uint64_t listener_scope_toolsets(const struct listener_scope *a, const struct profile_config *p)
{
    return profile_permitted(p, a->client) &
           (p->proxy_permits ? profile_enabled(p, a->permissions) : PROFILE_ALL_TOOLSETS);
}

/* The scopes of a key may include a server but none of its tools. */
static bool may_use_tools(const struct principal *who, struct str server)
{
    const struct scopes *s = who->scopes;

    for (size_t i = 0; s && i < s->n_tools; i++)
        if (scope_reaches(s->tools[i], server))
            return true;
    return !s || !s->n_tools;
}

/* On a dynamic profile, a client of 2026-07-28 lists all tools that it may enable. */
static bool lists_tools(const struct listener_scope *a, const struct session *s,
                        const struct profile_config *p, struct str server)
{
    uint64_t toolsets = listener_scope_toolsets(a, p);

    if (p->mode == PROFILE_SEARCH)
        return false;
    if (p->mode == PROFILE_DYNAMIC && !a->lists_all_toolsets)
        toolsets &= s ? profile_enabled(p, s->toolsets) : 0;
    return profile_reaches(p, toolsets, server);
}

bool listener_may_see(void *services, const struct listener_scope *a, const struct session *s,
                      const struct upstream *u, enum catalog_kind kind)
{
    static const struct str prefix = {"/mcp/p/", 7};
    const struct services *sv = services;
    const struct profile_config *p = NULL;
    bool is_profile = str_starts(a->endpoint, prefix);

    if (is_profile)
        p = config_profile(sv->front->config,
                           str_n(a->endpoint.p + prefix.n, a->endpoint.n - prefix.n));
    if (!u)
        return p && p->mode == PROFILE_DYNAMIC;
    if (!principal_may_use_server(&a->who, upstream_name(u)) ||
        (kind == CATALOG_TOOLS && !may_use_tools(&a->who, upstream_name(u))))
        return false;
    if (!is_profile)
        return true;
    return p && (kind == CATALOG_TOOLS ? lists_tools(a, s, p, upstream_name(u))
                                       : profile_has_server(p, upstream_name(u)));
}
