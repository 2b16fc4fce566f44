/* SPDX-License-Identifier: Apache-2.0 */
#include "front/caller.h"

void caller_init(struct caller *c, struct config *config)
{
    *c = (struct caller){.config = config_ref(config)};
}

void caller_take(struct caller *c, struct caller *from)
{
    *c = *from;
    from->config = NULL;
    from->is_limited = false;
    from->use = (struct quota_use){0};
}

void caller_spend(struct caller *c, size_t bytes)
{
    if (c->is_limited)
        quota_spend(&c->use, bytes);
}

void caller_release(struct caller *c)
{
    if (c->is_limited)
        quota_release(&c->use);
    c->is_limited = false;
    config_unref(c->config);
    c->config = NULL;
}

bool caller_is_local_admin(const struct caller *c)
{
    return c->is_known && c->is_unix && !c->who.credential.p;
}

bool caller_may(const struct caller *c, enum access access)
{
    enum role role = c->who.role;

    if (access == ACCESS_OPEN)
        return true;
    if (!c->is_known)
        return false;
    switch (access) {
    case ACCESS_ANY:
        return true;
    case ACCESS_WRITE:
        return role != ROLE_AUDITOR;
    case ACCESS_WATCH:
        return role == ROLE_ADMIN || role == ROLE_AUDITOR;
    case ACCESS_ADMIN:
        return role == ROLE_ADMIN;
    case ACCESS_LOCAL_ADMIN:
        return caller_is_local_admin(c);
    case ACCESS_UNSAID:
    case ACCESS_OPEN:
    case ACCESS_SPINE:
        break;
    }
    return false;
}
