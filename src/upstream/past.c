/* SPDX-License-Identifier: Apache-2.0 */
/* How the last link of a key ended, for the link that follows it: whether it may resume the same
 * remote session, and what the session is told about its lost state.  Bounded: the oldest entries
 * are dropped, and such a link counts as one that ended by itself. */
#include "upstream/upstream_impl.h"

#include <stdlib.h>

#define PAST_MAX 4096 /* entries per server */

struct past {
    struct list node; /* in its upstream, oldest first */
    enum link_past how;
    struct str key; /* stored behind this struct */
};

static void past_free(struct upstream *u, struct past *p)
{
    map_remove(&u->past, p->key);
    list_remove(&p->node);
    free(p);
}

void past_release(struct upstream *u)
{
    list_each(&u->pasts, n) past_free(u, list_entry(n, struct past, node));
    map_release(&u->past);
}

static enum link_past past_of(const struct error *why)
{
    switch (why->code) {
    case ERR_NONE:
        return PAST_RECYCLED;
    case ERR_SESSION_NOT_FOUND:
        return PAST_FORGOTTEN;
    case ERR_CANCELLED:
        return PAST_ENDED;
    default:
        return PAST_NONE;
    }
}

void past_note(const struct link *l, const struct error *why)
{
    struct upstream *u = l->up;
    enum link_past how = past_of(why);
    struct past *p;

    if (how == PAST_NONE || !link_is_stateful(l) || str_eq(l->key, STR(LINK_KEY_WATCH)))
        return;
    (void)past_take(u, l->key);
    if (u->past.n >= PAST_MAX)
        past_free(u, list_entry(list_first(&u->pasts), struct past, node));
    p = xcalloc(1, sizeof(*p) + l->key.n);
    p->how = how;
    p->key = str_n(memcpy(p + 1, l->key.p, l->key.n), l->key.n);
    list_push(&u->pasts, &p->node);
    map_put(&u->past, p->key, p);
}

enum link_past past_take(struct upstream *u, struct str key)
{
    struct past *p = map_get(&u->past, key);
    enum link_past how = p ? p->how : PAST_NONE;

    if (p)
        past_free(u, p);
    return how;
}
