/* SPDX-License-Identifier: Apache-2.0 */
#include "feeds/api/watchers.h"

#include "base/metric.h"
#include "config/config.h"

#include <stdlib.h>

struct watchers {
    struct watchers_config config;
    struct list open;
    unsigned n;
    bool is_stopping;
    struct buf scratch, text;
};

static struct metric_cell *open_cell(enum watcher_kind kind)
{
    static struct metric_cell *cells[2];
    static const char *const names[] = {[WATCHER_SSE] = "sse", [WATCHER_WEBSOCKET] = "websocket"};
    struct metric *m = metric_register(METRIC_GAUGE, "holdfast_event_streams",
                                       "Open streams of live events.", "transport", 2);
    struct str name = str_of(names[kind]);

    if (!cells[kind])
        cells[kind] = metric_cell(m, &name, 1);
    return cells[kind];
}

static struct metric *refused_metric(void)
{
    return metric_register(METRIC_COUNTER, "holdfast_event_streams_refused_total",
                           "Streams of live events that a limit refused.", "limit", 3);
}

static void count_refused(const char *limit)
{
    struct str name = str_of(limit);

    metric_add(metric_cell(refused_metric(), &name, 1), 1);
}

static struct metric *resyncs_metric(void)
{
    return metric_register(METRIC_COUNTER, "holdfast_event_resyncs_total",
                           "Watchers of live events that were told to resync.", "reason", 3);
}

void watchers_count_resync(const char *reason)
{
    struct str name = str_of(reason);

    metric_add(metric_cell(resyncs_metric(), &name, 1), 1);
}

struct watchers *watchers_new(const struct watchers_config *config)
{
    struct watchers *all = xcalloc(1, sizeof(*all));

    all->config = *config;
    list_init(&all->open);
    buf_init(&all->scratch, SIZE_MAX / 4); /* a watcher bounds what it adds */
    buf_init(&all->text, SIZE_MAX / 4);    /* likewise */
    metric_set(open_cell(WATCHER_SSE), 0);
    metric_set(open_cell(WATCHER_WEBSOCKET), 0);
    (void)refused_metric();
    (void)resyncs_metric();
    return all;
}

void watchers_stop(struct watchers *all)
{
    if (!all)
        return;
    all->is_stopping = true;
    while (!list_empty(&all->open)) {
        struct watcher *w = list_entry(list_first(&all->open), struct watcher, node);
        w->on_end(w, WATCHER_STOPPING);
    }
}

void watchers_free(struct watchers *all)
{
    if (!all)
        return;
    buf_release(&all->scratch);
    buf_release(&all->text);
    free(all);
}

const struct watchers_config *watchers_config(const struct watchers *all)
{
    return &all->config;
}

struct buf *watchers_scratch(struct watchers *all)
{
    return &all->scratch;
}

struct buf *watchers_text(struct watchers *all)
{
    return &all->text;
}

static bool refuse(const char *limit, unsigned most, const char *whose, const char *option,
                   struct error *err)
{
    count_refused(limit);
    return error_set(err, ERR_LIMIT,
                     "%u streams of events are open %s, which is the most; close those that are "
                     "not used, or raise holdfast.events.%s",
                     most, whose, option);
}

/* Watchers are opened seldom, so they are counted one by one. */
static bool has_place(const struct watchers *all, const struct caller *c, struct error *err)
{
    unsigned of_owner = 0, of_tenant = 0, most = c->config->events.max_streams;

    if (all->is_stopping)
        return error_set(err, ERR_UNAVAILABLE, "Holdfast is stopping; try again in a moment");
    if (all->n >= most)
        return refuse("node", most, "on this node", "max_streams", err);
    if (caller_is_local_admin(c))
        return true;
    list_each(&all->open, it)
    {
        const struct watcher *w = list_entry(it, struct watcher, node);
        bool is_same = !w->is_local && str_eq(w->tenant, c->who.tenant);
        of_tenant += is_same;
        of_owner += is_same && str_eq(w->owner, c->who.owner);
    }
    most = c->config->events.max_per_owner;
    if (of_owner >= most)
        return refuse("owner", most, "for this key or user", "max_per_owner", err);
    most = c->config->events.max_per_tenant;
    return of_tenant < most || refuse("tenant", most, "for this tenant", "max_per_tenant", err);
}

static void on_revoked(struct identity_watch *watch)
{
    struct watcher *w = container_of(watch, struct watcher, watch);

    w->on_end(w, WATCHER_REVOKED);
}

bool watcher_open(struct watchers *all, struct watcher *w, enum watcher_kind kind,
                  const struct caller *c, struct error *err)
{
    const struct principal *who = &c->who;

    if (!has_place(all, c, err))
        return false;
    w->home = all;
    w->kind = kind;
    w->is_local = caller_is_local_admin(c);
    w->names = xcalloc(1, who->tenant.n + who->owner.n + 1);
    memcpy(w->names, who->tenant.p, who->tenant.n);
    memcpy(w->names + who->tenant.n, who->owner.p, who->owner.n);
    w->tenant = str_n(w->names, who->tenant.n);
    w->owner = str_n(w->names + who->tenant.n, who->owner.n);
    w->watch.on_revoked = on_revoked;
    identity_watch(all->config.front->identity, &w->watch, who);
    list_push(&all->open, &w->node);
    all->n++;
    metric_add(open_cell(kind), 1);
    return true;
}

void watcher_close(struct watcher *w)
{
    if (!w->home)
        return;
    identity_unwatch(&w->watch);
    list_remove(&w->node);
    w->home->n--;
    w->home = NULL;
    free(w->names);
    w->names = NULL;
    metric_add(open_cell(w->kind), -1);
}
