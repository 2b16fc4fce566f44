/* SPDX-License-Identifier: Apache-2.0 */
/* One query at a time; further scrapes wait for its result. */
#include "session/session_gauges.h"

#include "base/log.h"
#include "base/metric.h"

#include <stdlib.h>

#define MOST_TENANTS 256
#define ANSWER_BYTES (1u << 20)

struct session_gauges {
    struct lanes *lanes;
    struct deadline_class deadlines;
    struct list waiting; /* struct gauges_wait */
    struct metric *active, *counted, *limit;
    /* The running query. */
    bool busy;
    struct read_job job;
    struct config *config;
    struct arena *mem;
    struct store_counts counts;
    struct tenant_row *tenants[MOST_TENANTS / STORE_PAGE_MAX + 1];
    size_t n_tenants[MOST_TENANTS / STORE_PAGE_MAX + 1];
};

struct session_gauges *session_gauges_new(struct loop *loop, struct lanes *lanes)
{
    struct session_gauges *g = xcalloc(1, sizeof(*g));

    g->lanes = lanes;
    list_init(&g->waiting);
    deadline_class_init(&g->deadlines, loop, SESSION_GAUGES_MS);
    g->active = metric_register(METRIC_GAUGE, "sessions_active",
                                "Sessions that are neither expired nor terminated.", "", 1);
    g->counted =
        metric_register(METRIC_GAUGE, "holdfast_sessions_counted",
                        "Live sessions that count against the limit.", "tenant_id", MOST_TENANTS);
    g->limit = metric_register(METRIC_GAUGE, "holdfast_sessions_limit",
                               "How many sessions may count.", "tenant_id", MOST_TENANTS);
    return g;
}

void session_gauges_free(struct session_gauges *g)
{
    if (!g)
        return;
    deadline_class_release(&g->deadlines);
    free(g);
}

static bool run(struct read_job *job, struct store *store)
{
    struct session_gauges *g = container_of(job, struct session_gauges, job);
    struct str after = STR_NONE;

    if (!store_counts(store, &g->counts, &job->err))
        return false;
    for (size_t i = 0; i < countof(g->tenants); i++) {
        if (!store_tenants_page(store, after, STORE_PAGE_MAX, g->mem, &g->tenants[i],
                                &g->n_tenants[i], &job->err))
            return false;
        if (g->n_tenants[i] < STORE_PAGE_MAX)
            return true;
        after = g->tenants[i][g->n_tenants[i] - 1].id;
    }
    return true;
}

static void show_tenant(struct session_gauges *g, struct str tenant, int64_t counted)
{
    metric_set(metric_cell(g->counted, &tenant, 1), counted);
    metric_set(metric_cell(g->limit, &tenant, 1), config_max_sessions(g->config, tenant));
}

/* Tenants that only the configuration names have zero sessions. */
static void show(struct session_gauges *g)
{
    size_t shown = 0;

    metric_set(metric_cell(g->active, NULL, 0), g->counts.sessions_active);
    show_tenant(g, STR("default"), 0);
    for (size_t i = 0; i < g->config->n_tenants && i < MOST_TENANTS; i++)
        show_tenant(g, g->config->tenants[i].name, 0);
    for (size_t page = 0; page < countof(g->tenants); page++)
        for (size_t i = 0; i < g->n_tenants[page] && shown < MOST_TENANTS; i++, shown++)
            show_tenant(g, g->tenants[page][i].id, g->tenants[page][i].counted_sessions);
}

static void wake(struct session_gauges *g)
{
    struct list *it;

    while ((it = list_first(&g->waiting))) {
        struct gauges_wait *w = list_entry(it, struct gauges_wait, node);
        gauges_wait_cancel(w);
        w->done(w);
    }
}

static void on_answer(struct read_job *job)
{
    struct session_gauges *g = container_of(job, struct session_gauges, job);

    g->busy = false;
    if (job->ok)
        show(g);
    else
        log_debug("sessions could not be counted", LZ("why", job->err.text));
    config_unref(g->config);
    arena_free(g->mem);
    wake(g);
}

static bool ask(struct session_gauges *g, struct config *c)
{
    if (g->busy)
        return true;
    memset(g->n_tenants, 0, sizeof(g->n_tenants));
    g->job = (struct read_job){.run = run, .done = on_answer};
    g->mem = arena_new(ANSWER_BYTES);
    g->config = config_ref(c);
    g->busy = lane_query(g->lanes, &g->job);
    if (!g->busy) {
        arena_free(g->mem);
        config_unref(g->config);
    }
    return g->busy;
}

static void on_late(struct deadline *d)
{
    struct gauges_wait *w = container_of(d, struct gauges_wait, late);
    list_remove(&w->node);
    w->done(w);
}

bool session_gauges_refresh(struct session_gauges *g, struct config *c, struct gauges_wait *w)
{
    if (!ask(g, c))
        return true;
    list_push(&g->waiting, &w->node);
    deadline_init(&w->late, on_late);
    deadline_set(&g->deadlines, &w->late);
    return false;
}

void gauges_wait_cancel(struct gauges_wait *w)
{
    list_remove(&w->node);
    deadline_clear(&w->late);
}
