/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager how Holdfast is: ready, alive, and one line for `systemctl status`. */
#include "gateway_impl.h"

#include "base/metric.h"
#include "io/service.h"

#define STATUS_MS 15000

/* A server that was not needed yet counts as up: nothing is known against it. */
static void on_sessions_counted(struct gauges_wait *w)
{
    struct gateway *g = container_of(w, struct gateway, sessions);
    struct metric *active = metric_register(METRIC_GAUGE, "sessions_active", "", "", 1);
    int64_t n = metric_value(metric_cell(active, NULL, 0));
    const struct config *c = g->front.config;
    size_t up = 0;

    g->counts_sessions = false;
    for (size_t i = 0; i < c->n_servers; i++) {
        struct upstream *u = upstreams_find(g->sv.upstreams, c->servers[i].name);
        up += u && upstream_health(u).state != HEALTH_DOWN;
    }
    service_notify(g->options.service, "STATUS=%zu of %zu servers up, %lld sessions", up,
                   c->n_servers, (long long)n);
}

static void on_status(void *arg)
{
    struct gateway *g = arg;

    if (g->front.draining || g->counts_sessions)
        return;
    g->sessions.done = on_sessions_counted;
    g->counts_sessions = true;
    if (session_gauges_refresh(g->api.gauges, g->front.config, &g->sessions))
        on_sessions_counted(&g->sessions);
}

void gateway_start_status(struct gateway *g)
{
    service_notify(g->options.service, "READY=1");
    service_watch(g->options.service, g->sv.loop);
    if (!service_is_there(g->options.service))
        return;
    g->status = loop_timer_new(g->sv.loop, on_status, g);
    loop_timer_start(g->status, 0, STATUS_MS);
}

void gateway_stop_status(struct gateway *g)
{
    service_unwatch(g->options.service);
    loop_timer_free(g->status);
    if (g->counts_sessions)
        gauges_wait_cancel(&g->sessions);
}
