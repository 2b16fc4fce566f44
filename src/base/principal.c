/* SPDX-License-Identifier: Apache-2.0 */
/* The names of roles, as stored, configured and shown; and deep copies of principals. */
#include "base/principal.h"

#include "base/arena.h"

static const char *const role_names[] = {
    [ROLE_ADMIN] = "admin",
    [ROLE_MEMBER] = "member",
    [ROLE_AUDITOR] = "auditor",
    [ROLE_SERVICE] = "service",
};

const char *role_name(enum role role)
{
    return role_names[role];
}

bool role_parse(struct str name, enum role *ret)
{
    for (size_t i = 0; i < countof(role_names); i++)
        if (str_eq(name, str_of(role_names[i]))) {
            *ret = (enum role)i;
            return true;
        }
    return false;
}

static const struct str *dup_list(const struct str *items, size_t n, struct arena *mem)
{
    struct str *copy = n ? arena_alloc(mem, n * sizeof(*copy)) : NULL;

    for (size_t i = 0; i < n; i++)
        copy[i] = arena_dup(mem, items[i]);
    return copy;
}

static const struct scopes *dup_scopes(const struct scopes *s, struct arena *mem)
{
    struct scopes *copy = arena_new_of(mem, struct scopes);

    *copy = *s;
    copy->servers = dup_list(s->servers, s->n_servers, mem);
    copy->tools = dup_list(s->tools, s->n_tools, mem);
    copy->folders = dup_list(s->folders, s->n_folders, mem);
    if (s->limits) {
        struct limits *limits = arena_new_of(mem, struct limits);
        *limits = *s->limits;
        copy->limits = limits;
    }
    return copy;
}

struct principal principal_dup(const struct principal *who, struct arena *mem)
{
    struct principal copy = *who;

    copy.tenant = arena_dup(mem, who->tenant);
    copy.owner = arena_dup(mem, who->owner);
    copy.user_id = arena_dup(mem, who->user_id);
    copy.credential = arena_dup(mem, who->credential);
    copy.scopes = who->scopes ? dup_scopes(who->scopes, mem) : NULL;
    return copy;
}
