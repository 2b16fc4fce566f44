/* SPDX-License-Identifier: Apache-2.0 */
/* Servers of one owner, which no configuration has.  They are in a list of their own, so that nothing
 * that goes through the configured servers meets them; their health is counted, but not stored. */
#include "upstream/upstream_impl.h"

#include <stdlib.h>

struct upstream *upstreams_add_private(struct upstreams *s, const struct upstream_private *p)
{
    struct upstream *u = upstream_new(s, p->config, p->server);
    struct arena *mem = arena_new(SIZE_MAX / 4);

    u->own = arena_new_of(mem, struct private_server);
    *u->own = (struct private_server){
        .tenant = arena_dup(mem, p->owner->tenant),
        .owner = arena_dup(mem, p->owner->owner),
        .tally = xcalloc(1, sizeof(*u->own->tally) + 1),
        .on_freed = p->on_freed,
        .arg = p->arg,
        .mem = mem,
    };
    list_remove(&u->node);
    list_push(&s->privates, &u->node);
    u->tally = u->own->tally;
    return u;
}

struct upstream *upstreams_find_private(struct upstreams *s, struct str name,
                                        const struct principal *who)
{
    list_each(&s->privates, n)
    {
        struct upstream *u = list_entry(n, struct upstream, node);
        if (str_eq(u->config->name, name) && str_eq(u->own->tenant, who->tenant) &&
            str_eq(u->own->owner, who->owner))
            return u;
    }
    return NULL;
}

void upstream_end_private(struct upstream *u)
{
    upstream_retire(u);
    upstream_finish_retired(u, true);
}

void private_release(struct private_server *p)
{
    if (!p)
        return;
    p->on_freed(p->arg);
    free(p->tally);
    arena_free(p->mem);
}
