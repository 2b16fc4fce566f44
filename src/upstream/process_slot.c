/* SPDX-License-Identifier: Apache-2.0 */
/* Slots for processes.  The limits are LINK_PER_OWNER, LINK_PER_UPSTREAM and LINK_PER_NODE, and the
 * quotas of tenants and keys (struct process_quota).  If a call finds no free slot, it ends an idle
 * process whose client is not connected, least recently used first.  If there is none, the call
 * waits in a queue for LINK_WAIT_MS.  Then it is refused, and the text names the limit. */
#include "upstream/upstream_impl.h"

#define MAX_TRIES 256 /* per walk through a queue */

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

/* The link to end to make room, of this owner (NULL: of any owner). */
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

/* The least recently used idle link that holds a slot of the quota `exhausted`. */
static struct link *idle_link_in_quota(struct upstreams *s, const void *exhausted)
{
    struct link *oldest = NULL;

    list_each(&s->all, n)
    {
        list_each(&list_entry(n, struct upstream, node)->lru, k)
        {
            struct link *l = list_entry(k, struct link, lru);
            if (is_idle(l) && l->slot.held &&
                (l->slot.of[0] == exhausted || l->slot.of[1] == exhausted) &&
                (!oldest || l->last_used_ms < oldest->last_used_ms) && !link_is_attended(l, false))
                oldest = l;
        }
    }
    return oldest;
}

static bool take_process(struct upstream *u, const struct principal *who, struct process_slot *ret,
                         const void **ret_exhausted)
{
    const struct process_quota *quota = &u->set->quota;
    return !u->ops->has_process || !quota->take || !who ||
           quota->take(quota->arg, who, ret, ret_exhausted);
}

/* Takes a slot of the quotas, if need be after ending an idle link that holds one.  The quotas of
 * tenant and key may both be exhausted, so it tries more than once. */
static bool take_quota(struct upstream *u, const struct principal *who, struct process_slot *ret)
{
    static const struct error idle = {.code = ERR_NONE};
    const void *exhausted;

    for (unsigned i = 0; i < 3; i++) {
        if (take_process(u, who, ret, &exhausted))
            return true;
        struct link *victim = idle_link_in_quota(u->set, exhausted);
        if (!victim)
            return false;
        link_end(victim, &idle);
    }
    return false;
}

/* Finds a slot, if need be by ending the least recently used idle link. */
static bool find_slot(struct upstream *u, struct str owner)
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

static bool make_slot(struct upstream *u, const struct link_identity *who, struct process_slot *ret)
{
    *ret = (struct process_slot){0};
    if (!take_quota(u, who->principal, ret))
        return false;
    if (find_slot(u, who->owner))
        return true;
    if (ret->held)
        u->set->quota.release(u->set->quota.arg, ret);
    return false;
}

static void open_link(struct upstream *u, struct link_wait *w, const struct process_slot *slot)
{
    enum mcp_era client = w->who.initialize_params.p ? MCP_LEGACY : MCP_MODERN;
    enum mcp_era era = u->catalog ? upstream_era_for(u, u->catalog, client) : MCP_LEGACY;
    struct link *l = link_new(u, &w->who, era, false);
    l->slot = *slot;
    list_push(&l->waiters, &w->link);
    u->ops->open(l);
}

static void on_no_slot(struct deadline *d)
{
    struct link_wait *w = container_of(d, struct link_wait, deadline);
    const struct process_quota *quota = &w->up->set->quota;
    struct process_slot slot = {0};
    const void *exhausted;
    struct error err;

    list_remove(&w->link);
    error_set(&err, ERR_LIMIT,
              "every process of %.*s is busy or has a connected client (at most %d for one owner, "
              "%d for one server, %d in all); end a conversation that uses it, or try again "
              "shortly",
              STR_ARG(w->up->config->name), LINK_PER_OWNER, LINK_PER_UPSTREAM, LINK_PER_NODE);
    if (!take_process(w->up, w->who.principal, &slot, &exhausted))
        quota->refuse(quota->arg, w->who.principal, &err);
    else if (slot.held)
        quota->release(quota->arg, &slot);
    w->done(w, NULL, &err);
}

bool upstream_link(struct upstream *u, const struct link_identity *who, struct link_wait *w,
                   struct link **ret, struct error *err)
{
    struct link *l = map_get(&u->links, who->key);
    struct process_slot slot;

    if (l && l->state == LINK_OPEN) {
        *ret = l;
        return true;
    }
    w->up = u;
    w->who = *who;
    list_init(&w->link);
    deadline_init(&w->deadline, on_no_slot);
    if (l) {
        list_push(&l->waiters, &w->link);
    } else if (!upstream_may_start(u, err) || !crashes_allow(u, who, err)) {
        return false;
    } else if (make_slot(u, who, &slot)) {
        open_link(u, w, &slot);
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

/* False: the call goes on waiting. */
static bool serve_waiting(struct upstream *u, struct link_wait *w)
{
    struct link *l = map_get(&u->links, w->who.key);
    struct process_slot slot;

    if (!l && !make_slot(u, &w->who, &slot))
        return false;
    link_wait_cancel(w);
    if (!l)
        open_link(u, w, &slot);
    else if (l->state == LINK_OPENING)
        list_push(&l->waiters, &w->link);
    else
        w->done(w, l, NULL);
    return true;
}

/* A call that cannot have a slot yet does not block those behind it.  After each call that was
 * served, the walk begins again, because serving may have changed the queue. */
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

/* At the end of the turn: the caller may be walking the lists that serving changes. */
void upstream_slot_freed(struct upstreams *s)
{
    if (s->serve_queued)
        return;
    s->serve_queued = true;
    s->refs++;
    s->serve.fn = on_serve;
    loop_defer(s->loop, &s->serve);
}
