/* SPDX-License-Identifier: Apache-2.0 */
#include "feeds/visibility.h"

#include "identity/scopes.h"

#define DOCS_SERVER "docs"

struct visibility visibility_of_tenant(struct str tenant)
{
    return (struct visibility){.tenant = tenant};
}

static bool is_tenant_wide(enum role role)
{
    return role == ROLE_ADMIN || role == ROLE_AUDITOR;
}

static bool limits(const struct scopes *s)
{
    return s && (s->n_servers || s->n_tools || s->n_folders);
}

struct visibility visibility_of(const struct principal *who, bool is_local_admin)
{
    struct visibility v = {.limited = false};

    if (is_local_admin)
        return v;
    v.who = *who;
    v.tenant = v.who.tenant;
    v.owner = is_tenant_wide(who->role) ? STR_NONE : v.who.owner;
    v.limited = limits(who->scopes);
    return v;
}

struct visibility visibility_dup(const struct visibility *v, struct arena *mem)
{
    struct visibility copy = {.limited = v->limited};

    copy.tenant = arena_dup(mem, v->tenant);
    copy.owner = arena_dup(mem, v->owner);
    if (v->limited)
        copy.who = principal_dup(&v->who, mem);
    return copy;
}

static bool is_in_scopes(const struct visibility *v, const struct event_row *e)
{
    const struct principal *who = &v->who;
    bool is_own = str_eq(e->owner, who->owner);

    if (!e->server.n)
        return is_own;
    if (!is_own && who->scopes->n_folders && str_eq(e->server, STR(DOCS_SERVER)))
        return false;
    return e->tool.n ? principal_may_use_tool(who, e->server, e->tool)
                     : principal_may_use_server(who, e->server);
}

bool visibility_shows(const struct visibility *v, const struct event_row *e)
{
    return (!v->tenant.p || str_eq(v->tenant, e->tenant)) &&
           (!v->owner.p || str_eq(v->owner, e->owner)) && (!v->limited || is_in_scopes(v, e));
}

void visibility_narrow(const struct visibility *v, struct event_filter *filter)
{
    if (v->tenant.p)
        filter->tenant = v->tenant;
}
