/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile offers: pure questions to the configuration. */
#include "route/profile.h"

#include "identity/scopes.h"

static bool toolset_reaches(const struct toolset_config *t, struct str server)
{
    for (size_t i = 0; i < t->n_tools; i++)
        if (scope_reaches(t->tools[i], server))
            return true;
    return false;
}

static bool toolset_has(const struct toolset_config *t, struct str full)
{
    for (size_t i = 0; i < t->n_tools; i++)
        if (scope_matches(t->tools[i], full))
            return true;
    return false;
}

bool profile_has_server(const struct profile_config *p, struct str server)
{
    bool found = p->n_servers == 0;

    for (size_t i = 0; i < p->n_servers && !found; i++)
        found = str_eq(p->servers[i], server);
    if (!found || p->n_toolset_keys == 0)
        return found;
    for (size_t i = 0; i < p->n_toolset_keys; i++)
        if (toolset_reaches(p->toolsets[i], server))
            return true;
    return false;
}

bool profile_shows(const struct profile_config *p, uint64_t toolsets, struct str server,
                   struct str tool)
{
    char name[2 * SCOPES_MAX_NAME];
    size_t n = server.n + 2 + tool.n;

    if (!profile_has_server(p, server))
        return false;
    if (p->n_toolset_keys == 0)
        return true;
    if (n > sizeof(name))
        return false; /* longer than any pattern was meant for */
    memcpy(name, server.p, server.n);
    memcpy(name + server.n, "__", 2);
    if (tool.n)
        memcpy(name + server.n + 2, tool.p, tool.n);
    for (size_t i = 0; i < p->n_toolset_keys; i++)
        if ((toolsets >> i & 1) && toolset_has(p->toolsets[i], str_n(name, n)))
            return true;
    return false;
}
