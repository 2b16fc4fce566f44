/* SPDX-License-Identifier: Apache-2.0 */
/* Watches by credential: each is notified once, when the credential is revoked or expires.  A
 * revocation is remembered for a while, for a request that was identified before it and watches
 * after it. */
#include "identity/identity_impl.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

#define LOOK_EVERY_MS 5000

struct watched {
    struct identity *id;
    struct str credential; /* stored after this struct */
    struct str user_id;    /* stored after `credential`; absent: the credential has no user */
    struct list watches;
    int64_t expires_ms;
    struct loop_timer *end; /* NULL: the credential does not expire */
    bool is_due;            /* to be notified at the end of this turn, then freed */
    struct loop_task later;
};

struct revoked {
    struct list node;
    struct str credential; /* stored after this struct */
    int64_t until_ms;
};

static void watched_free(struct watched *g)
{
    map_remove(&g->id->watched, g->credential);
    loop_timer_free(g->end);
    free(g);
}

static void notify(struct watched *g)
{
    unsigned n = 0;

    while (!list_empty(&g->watches)) {
        struct identity_watch *w = list_entry(list_pop(&g->watches), struct identity_watch, node);
        w->watched = NULL;
        n++;
        w->on_revoked(w);
    }
    if (n)
        log_info("a credential ended: its open streams are closed", LS("credential", g->credential),
                 LI("closed", n));
}

static void on_later(struct loop_task *task)
{
    struct watched *g = container_of(task, struct watched, later);

    notify(g);
    watched_free(g);
}

static void notify_soon(struct watched *g)
{
    if (g->is_due || g->id->stopping)
        return;
    g->is_due = true;
    loop_defer(g->id->config.loop, &g->later);
}

/* Compares the end with the life clock.  That clock goes on while the machine sleeps, and the
 * loop's timers do not, so a far end is looked at every few seconds. */
static void on_end(void *arg)
{
    struct watched *g = arg;
    int64_t left = g->expires_ms - clock_life_ms();

    if (left > 0)
        loop_timer_start(g->end, left < 20 ? 20 : left < LOOK_EVERY_MS ? left : LOOK_EVERY_MS, 0);
    else
        notify_soon(g);
}

static struct watched *watched_of(struct identity *id, const struct principal *who)
{
    struct watched *g = map_get(&id->watched, who->credential);

    if (g) { /* a newer token of the same sign-in expires later */
        if (g->expires_ms && who->expires_ms > g->expires_ms)
            g->expires_ms = who->expires_ms;
        return g;
    }
    g = xcalloc(1, sizeof(*g) + who->credential.n + who->user_id.n);
    g->id = id;
    g->later.fn = on_later;
    list_init(&g->watches);
    memcpy(g + 1, who->credential.p, who->credential.n);
    g->credential = str_n((const char *)(g + 1), who->credential.n);
    if (who->user_id.n) {
        memcpy((char *)(g + 1) + who->credential.n, who->user_id.p, who->user_id.n);
        g->user_id = str_n((const char *)(g + 1) + who->credential.n, who->user_id.n);
    }
    g->expires_ms = who->expires_ms;
    map_put(&id->watched, g->credential, g);
    if (g->expires_ms) {
        g->end = loop_timer_new(id->config.loop, on_end, g);
        on_end(g);
    }
    return g;
}

void identity_watch(struct identity *id, struct identity_watch *w, const struct principal *who)
{
    struct revoked *gone;

    identity_unwatch(w);
    if (!who->credential.p || id->stopping)
        return;
    struct watched *g = watched_of(id, who);
    w->watched = g;
    list_push(&g->watches, &w->node);
    gone = map_get(&id->revoked_by_name, who->credential);
    if (gone && gone->until_ms > clock_mono_ms())
        notify_soon(g);
}

void identity_unwatch(struct identity_watch *w)
{
    struct watched *g = w->watched;

    if (!g)
        return;
    list_remove(&w->node);
    w->watched = NULL;
    if (list_empty(&g->watches) && !g->is_due)
        watched_free(g);
}

static void forget_oldest(struct identity *id)
{
    struct revoked *r = list_entry(list_pop(&id->revoked), struct revoked, node);
    map_remove(&id->revoked_by_name, r->credential);
    free(r);
}

void identity_remember(struct identity *id, struct str credential)
{
    struct revoked *r = map_get(&id->revoked_by_name, credential);

    while (
        !list_empty(&id->revoked) &&
        (id->revoked_by_name.n >= IDENTITY_MAX_REVOKED ||
         list_entry(list_first(&id->revoked), struct revoked, node)->until_ms <= clock_mono_ms())) {
        if (list_entry(list_first(&id->revoked), struct revoked, node) == r)
            r = NULL;
        forget_oldest(id);
    }
    if (!r) {
        r = xcalloc(1, sizeof(*r) + credential.n);
        memcpy(r + 1, credential.p, credential.n);
        r->credential = str_n((const char *)(r + 1), credential.n);
        map_put(&id->revoked_by_name, r->credential, r);
    } else {
        list_remove(&r->node);
    }
    r->until_ms = clock_mono_ms() + IDENTITY_REVOKED_MS;
    list_push(&id->revoked, &r->node);
}

void identity_revoked(struct identity *id, struct str credential)
{
    struct watched *g = map_get(&id->watched, credential);

    identity_forget(id, credential);
    identity_remember(id, credential);
    if (g)
        notify_soon(g);
}

void identity_user_changed(struct identity *id, struct str user_id)
{
    struct str name;
    void *value;
    size_t at = 0;

    identity_forget_user(id, user_id);
    while (map_next(&id->watched, &at, &name, &value)) {
        struct watched *g = value;
        if (g->user_id.p && str_eq(g->user_id, user_id))
            notify_soon(g);
    }
}

void identity_end_tokens(struct identity *id)
{
    struct str name;
    void *value;
    size_t at = 0;

    while (map_next(&id->watched, &at, &name, &value))
        if (str_starts(name, STR("jwt:")))
            notify_soon(value);
}

void identity_watches_release(struct identity *id)
{
    struct str name;
    void *value;
    size_t at = 0;

    while (map_next(&id->watched, &at, &name, &value)) {
        struct watched *g = value;
        list_each(&g->watches, it)
        {
            list_entry(it, struct identity_watch, node)->watched = NULL;
            list_remove(it);
        }
        watched_free(g);
        at = 0;
    }
    while (!list_empty(&id->revoked))
        forget_oldest(id);
    map_release(&id->watched);
    map_release(&id->revoked_by_name);
}
