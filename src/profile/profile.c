/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a profile: pure functions over the configuration. */
#include "profile/profile.h"

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

bool profile_reaches(const struct profile_config *p, uint64_t toolsets, struct str server)
{
    bool found = p->n_servers == 0;

    for (size_t i = 0; i < p->n_servers && !found; i++)
        found = str_eq(p->servers[i], server);
    if (!found || p->n_toolset_keys == 0)
        return found;
    for (size_t i = 0; i < p->n_toolset_keys; i++)
        if ((toolsets >> i & 1) && toolset_reaches(p->toolsets[i], server))
            return true;
    return false;
}

bool profile_has_server(const struct profile_config *p, struct str server)
{
    return profile_reaches(p, PROFILE_ALL_TOOLSETS, server);
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
        return false; /* longer than the names that patterns are meant for */
    memcpy(name, server.p, server.n);
    memcpy(name + server.n, "__", 2);
    if (tool.n)
        memcpy(name + server.n + 2, tool.p, tool.n);
    for (size_t i = 0; i < p->n_toolset_keys; i++)
        if ((toolsets >> i & 1) && toolset_has(p->toolsets[i], str_n(name, n)))
            return true;
    return false;
}

static bool is_among(const struct str *keys, size_t n, struct str key)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(keys[i], key))
            return true;
    return false;
}

bool profile_allows(const struct profile_config *p, struct str key)
{
    return p->n_allow == 0 || is_among(p->allow, p->n_allow, key);
}

bool profile_denies(const struct profile_config *p, struct str key)
{
    return is_among(p->deny, p->n_deny, key);
}

/* The row of the client, or the row "*" for all others; NULL: no restriction. */
static const struct client_config *client_of(const struct profile_config *p, struct str client)
{
    const struct client_config *others = NULL;

    for (size_t i = 0; i < p->n_clients; i++) {
        if (client.p && str_eq(p->clients[i].id, client))
            return &p->clients[i];
        if (str_eq(p->clients[i].id, STR("*")))
            others = &p->clients[i];
    }
    return others;
}

uint64_t profile_permitted(const struct profile_config *p, struct str client)
{
    const struct client_config *c = p->n_clients ? client_of(p, client) : NULL;
    uint64_t permitted = 0;

    if (!c && !p->n_allow && !p->n_deny)
        return PROFILE_ALL_TOOLSETS;
    for (size_t i = 0; i < p->n_toolset_keys; i++) {
        struct str key = p->toolset_keys[i];
        if (profile_allows(p, key) && !profile_denies(p, key) &&
            (!c || is_among(c->toolsets, c->n_toolsets, key)))
            permitted |= UINT64_C(1) << i;
    }
    return permitted;
}

struct str profile_toolset_with(const struct profile_config *p, uint64_t toolsets,
                                struct str server, struct str tool)
{
    for (size_t i = 0; i < p->n_toolset_keys; i++)
        if ((toolsets >> i & 1) && profile_shows(p, UINT64_C(1) << i, server, tool))
            return p->toolset_keys[i];
    return STR_NONE;
}

int profile_toolset(const struct profile_config *p, struct str key)
{
    for (size_t i = 0; i < p->n_toolset_keys; i++)
        if (str_eq(p->toolset_keys[i], key))
            return (int)i;
    return -1;
}

uint64_t profile_enabled(const struct profile_config *p, struct str keys)
{
    uint64_t enabled = 0;

    while (keys.p) {
        int at = profile_toolset(p, str_trim(str_split(&keys, ',')));
        if (at >= 0)
            enabled |= UINT64_C(1) << at;
    }
    return enabled;
}

struct str toolset_keys_without(struct str keys, struct str key, struct arena *mem)
{
    struct str left = STR_NONE;

    while (keys.p) {
        struct str one = str_split(&keys, ',');
        if (!str_eq(one, key))
            left = left.p ? arena_printf(mem, "%.*s,%.*s", STR_ARG(left), STR_ARG(one)) : one;
    }
    return left;
}

struct str toolset_keys_with(struct str keys, struct str key, struct arena *mem)
{
    struct str others = toolset_keys_without(keys, key, mem);

    return others.p ? arena_printf(mem, "%.*s,%.*s", STR_ARG(others), STR_ARG(key)) : key;
}
