/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that start well and then crash again and again.  After CRASHES_MAX crashes within
 * CRASHES_MS no further process is started until the oldest of them is that old.
 *
 * Crashes are counted per owner, or per link key if the link is shared or has values of its
 * session.  So an owner whose calls crash a server does not block other owners, and a session whose
 * own values crash it does not block other sessions. */
#include "upstream/upstream_impl.h"

#include <stdlib.h>

#define CRASHES_MAX 5
#define CRASHES_MS (60 * 1000)
#define CRASHES_KEPT 1024 /* counters per server */

struct crashes {
    struct list node; /* in its upstream, ordered by the last crash, oldest first */
    int64_t at_ms[CRASHES_MAX];
    unsigned n;       /* the next crash goes to at_ms[n % CRASHES_MAX] */
    struct str whose; /* stored behind this struct */
};

static void crashes_free(struct upstream *u, struct crashes *c)
{
    map_remove(&u->crashes_of, c->whose);
    list_remove(&c->node);
    free(c);
}

void crashes_release(struct upstream *u)
{
    list_each(&u->crashes, n) crashes_free(u, list_entry(n, struct crashes, node));
    map_release(&u->crashes_of);
}

static struct str whose(struct str key, struct str owner, bool has_own_values)
{
    return has_own_values || str_eq(key, STR("all")) ? key : owner;
}

/* The time of the crash that must be old enough before the next start; 0: none. */
static int64_t oldest_ms(const struct crashes *c)
{
    return c->n < CRASHES_MAX ? 0 : c->at_ms[c->n % CRASHES_MAX];
}

void crashes_note(const struct link *l, const struct error *why)
{
    struct upstream *u = l->up;
    struct str name = whose(l->key, l->owner, l->has_context_values || l->credential.value.p);
    struct crashes *c = map_get(&u->crashes_of, name);

    if (!c) {
        if (u->crashes_of.n >= CRASHES_KEPT)
            crashes_free(u, list_entry(list_first(&u->crashes), struct crashes, node));
        c = xcalloc(1, sizeof(*c) + name.n);
        c->whose = str_n(memcpy(c + 1, name.p, name.n), name.n);
        map_put(&u->crashes_of, c->whose, c);
    } else {
        list_remove(&c->node);
    }
    list_push(&u->crashes, &c->node);
    c->at_ms[c->n++ % CRASHES_MAX] = loop_now_ms(u->set->loop);
    if (oldest_ms(c) && oldest_ms(c) + CRASHES_MS > u->crashing_until_ms)
        u->crashing_until_ms = oldest_ms(c) + CRASHES_MS;
    /* Otherwise the error text belongs to that session alone. */
    if (!l->has_context_values && !l->credential.value.p)
        u->last_crash = *why;
}

bool crashes_allow(const struct upstream *u, const struct link_identity *who, struct error *err)
{
    bool has_own_values = who->n_context_values > 0 || who->credential.value.p;
    const struct crashes *c = map_get(&u->crashes_of, whose(who->key, who->owner, has_own_values));
    int64_t left = c && oldest_ms(c) ? oldest_ms(c) + CRASHES_MS - loop_now_ms(u->set->loop) : 0;

    if (left <= 0)
        return true;
    error_set(
        err, ERR_UNREACHABLE,
        "%.*s ended %d times within %d s and is not started again for %lld s; look at its log, "
        "or call it otherwise%s%s",
        STR_ARG(u->config->name), CRASHES_MAX, CRASHES_MS / 1000, (long long)(left + 999) / 1000,
        has_own_values || !u->last_crash.code ? "" : ": ",
        has_own_values || !u->last_crash.code ? "" : u->last_crash.text);
    return false;
}
