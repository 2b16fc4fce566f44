/* SPDX-License-Identifier: Apache-2.0 */
/* Places for processes: LINK_PER_OWNER, LINK_PER_UPSTREAM and LINK_PER_NODE, and what the gate says
 * for others who count (upstream.h).  A call that finds none ends an idle process whose client is
 * not connected, least recently used first, or waits in line for LINK_WAIT_MS, and is then refused
 * by name. */
#include "upstream/upstream_impl.h"

#define MAX_TRIES 256 /* in one walk along a line */

static unsigned link_owner_count(struct upstream *u, struct str owner)
{
    unsigned count = 0;
    list_each(&u->lru, n) count += str_eq(list_entry(n, struct link, lru)->owner, owner);
    return count;
}

static bool is_idle(const struct link *l)
{
    return l->state == LINK_OPEN && l->in_flight == 0 && list_empty(&l->waiters);
}

/* The one to end for another, of this owner (NULL: of anybody). */
static struct link *idle_link(struct upstream *u, const struct str *owner)
{
    struct link *attended = NULL;

    list_each(&u->lru, n)
    {
        struct link *l = list_entry(n, struct link, lru);
        if (!is_idle(l) || (owner && !str_eq(l->owner, *owner)))
            continue;
        if (!link_is_attended(l, false))
            return l;
        attended = attended ? attended : l;
    }
    return u->ops->has_process ? NULL : attended;
}

static struct link *idle_link_anywhere(struct upstreams *s)
{
    struct link *oldest = NULL;
    list_each(&s->all, n)
    {
        struct upstream *u = list_entry(n, struct upstream, node);
        struct link *l = u->ops->has_process ? idle_link(u, NULL) : NULL;
        if (l && (!oldest || l->last_used_ms < oldest->last_used_ms))
            oldest = l;
    }
    return oldest;
}

/* An idle link that holds one of the places of `full`. */
static struct link *idle_link_at_gate(struct upstreams *s, const void *full)
{
    struct link *oldest = NULL;

    list_each(&s->all, n)
    {
        list_each(&list_entry(n, struct upstream, node)->lru, k)
        {
            struct link *l = list_entry(k, struct link, lru);
            if (is_idle(l) && l->place.held && (l->place.of[0] == full || l->place.of[1] == full) &&
                (!oldest || l->last_used_ms < oldest->last_used_ms) && !link_is_attended(l, false))
                oldest = l;
        }
    }
    return oldest;
}

static bool enter(struct upstream *u, const struct principal *who, struct link_place *ret,
                  const void **ret_full)
{
    const struct link_gate *gate = &u->set->gate;
    return !u->ops->has_process || !gate->enter || !who ||
           gate->enter(gate->arg, who, ret, ret_full);
}

/* Past the gate, if need be by ending an idle link of the same.  Tenant and key may both be full,
 * so it is asked more than once. */
static bool pass_gate(struct upstream *u, const struct principal *who, struct link_place *ret)
{
    static const struct error idle = {.code = ERR_NONE};
    const void *full;

    for (unsigned i = 0; i < 3; i++) {
        if (enter(u, who, ret, &full))
            return true;
        struct link *victim = idle_link_at_gate(u->set, full);
        if (!victim)
            return false;
        link_end(victim, &idle);
    }
    return false;
}

/* True when there is a place now, if need be by ending the least recently used idle link. */
static bool find_place(struct upstream *u, struct str owner)
{
    static const struct error idle = {.code = ERR_NONE};
    struct link *victim = NULL;

    if (!u->ops->has_process) {
        if (u->links.n < LINK_LIGHT_MAX)
            return true;
        victim = idle_link(u, NULL);
    } else if (link_owner_count(u, owner) >= LINK_PER_OWNER)
        victim = idle_link(u, &owner);
    else if (u->processes >= LINK_PER_UPSTREAM)
        victim = idle_link(u, NULL);
    else if (u->set->processes >= LINK_PER_NODE)
        victim = idle_link_anywhere(u->set);
    else
        return true;
    if (!victim)
        return false;
    link_end(victim, &idle);
    return true;
}

static bool make_place(struct upstream *u, const struct link_identity *who, struct link_place *ret)
{
    *ret = (struct link_place){0};
    if (!pass_gate(u, who->principal, ret))
        return false;
    if (find_place(u, who->owner))
        return true;
    if (ret->held)
        u->set->gate.leave(u->set->gate.arg, ret);
    return false;
}

static void open_link(struct upstream *u, struct link_wait *w, const struct link_place *place)
{
    enum mcp_era client = w->who.initialize_params.p ? MCP_LEGACY : MCP_MODERN;
    enum mcp_era era = u->catalog ? upstream_era_for(u, u->catalog, client) : MCP_LEGACY;
    struct link *l = link_new(u, &w->who, era, false);
    l->place = *place;
    list_push(&l->waiters, &w->link);
    u->ops->open(l);
}

static void on_no_place(struct deadline *d)
{
    struct link_wait *w = container_of(d, struct link_wait, deadline);
    const struct link_gate *gate = &w->up->set->gate;
    struct link_place place = {0};
    const void *full;
    struct error err;

    list_remove(&w->link);
    error_set(&err, ERR_LIMIT,
              "every process of %.*s is busy or has a connected client (at most %d for one owner, "
              "%d for one server, %d in all); end a conversation that uses it, or try again "
              "shortly",
              STR_ARG(w->up->config->name), LINK_PER_OWNER, LINK_PER_UPSTREAM, LINK_PER_NODE);
    if (!enter(w->up, w->who.principal, &place, &full))
        gate->refuse(gate->arg, w->who.principal, &err);
    else if (place.held)
        gate->leave(gate->arg, &place);
    w->done(w, NULL, &err);
}

bool upstream_link(struct upstream *u, const struct link_identity *who, struct link_wait *w,
                   struct link **ret, struct error *err)
{
    struct link *l = map_get(&u->links, who->key);
    struct link_place place;

    if (l && l->state == LINK_OPEN) {
        *ret = l;
        return true;
    }
    w->up = u;
    w->who = *who;
    list_init(&w->link);
    deadline_init(&w->deadline, on_no_place);
    if (l) {
        list_push(&l->waiters, &w->link);
    } else if (!upstream_may_start(u, err) || !crashes_allow(u, who, err)) {
        return false;
    } else if (make_place(u, who, &place)) {
        open_link(u, w, &place);
    } else {
        list_push(&u->queue, &w->link);
        deadline_set(&u->set->wait_deadlines, &w->deadline);
    }
    *ret = NULL;
    return true;
}

void link_wait_cancel(struct link_wait *w)
{
    list_remove(&w->link);
    deadline_clear(&w->deadline);
}

/* False: it waits on. */
static bool serve_waiting(struct upstream *u, struct link_wait *w)
{
    struct link *l = map_get(&u->links, w->who.key);
    struct link_place place;

    if (!l && !make_place(u, &w->who, &place))
        return false;
    link_wait_cancel(w);
    if (!l)
        open_link(u, w, &place);
    else if (l->state == LINK_OPENING)
        list_push(&l->waiters, &w->link);
    else
        w->done(w, l, NULL);
    return true;
}

/* Whoever cannot have a place yet does not stand in the way of those behind.  After each that is
 * served it begins anew, for that may have changed the line. */
static void serve_queue(struct upstream *u)
{
    unsigned tries = MAX_TRIES;
    struct list *n = u->queue.next;

    while (n != &u->queue && tries-- > 0) {
        struct link_wait *w = list_entry(n, struct link_wait, link);
        n = n->next;
        if (serve_waiting(u, w))
            n = u->queue.next;
    }
}

void upstreams_serve(struct upstreams *s)
{
    list_each(&s->all, n)
    {
        serve_queue(list_entry(n, struct upstream, node));
    }
}

static void on_serve(struct loop_task *task)
{
    struct upstreams *s = container_of(task, struct upstreams, serve);
    s->serve_queued = false;
    upstreams_serve(s);
    upstreams_unref(s);
}

/* At the end of the turn: who ends a link may be walking the lists that serving changes. */
void upstream_place_freed(struct upstreams *s)
{
    if (s->serve_queued)
        return;
    s->serve_queued = true;
    s->refs++;
    s->serve.fn = on_serve;
    loop_defer(s->loop, &s->serve);
}
