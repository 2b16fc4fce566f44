/* SPDX-License-Identifier: Apache-2.0 */
/* One timer; each round is a batch on the write lane, followed at once by the next while batches
 * come back full, so that no round holds the lane for long. */
#include "session/reaper.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"

#include <stdlib.h>

struct reaper {
    struct lanes *lanes;
    struct loop_timer *timer;
    struct read_job job;
    unsigned batch;
    bool busy;
    int64_t idle_ms;
    struct reaped reaped;
    struct metric_cell *expired, *failures;
};

static bool run(struct read_job *job, struct store *store)
{
    struct reaper *r = container_of(job, struct reaper, job);
    struct reap_what what = {.now_ms = clock_life_ms(), .idle_ms = r->idle_ms, .batch = r->batch};
    return store_reap(store, &what, &r->reaped, &job->err);
}

static void start(struct reaper *r);

static void done(struct read_job *job)
{
    struct reaper *r = container_of(job, struct reaper, job);
    r->busy = false;
    if (!job->ok) {
        metric_add(r->failures, 1);
        log_warn("cleanup failed; it is tried again at the next interval",
                 LZ("why", job->err.text));
        return;
    }
    metric_add(r->expired, (int64_t)r->reaped.expired);
    if (r->reaped.expired)
        log_info("Cleaned up expired sessions", LI("count", r->reaped.expired));
    if (r->reaped.expired >= r->batch)
        start(r);
}

static void start(struct reaper *r)
{
    if (r->busy)
        return;
    r->reaped = (struct reaped){0};
    r->job = (struct read_job){.run = run, .done = done};
    r->busy = lane_maintain(r->lanes, &r->job);
}

static void on_timer(void *arg)
{
    start(arg);
}

struct reaper *reaper_new(struct loop *loop, struct lanes *lanes, const struct config *c)
{
    struct reaper *r = xcalloc(1, sizeof(*r));
    r->lanes = lanes;
    r->batch = c->cleanup_batch;
    r->idle_ms = c->session_idle_ms;
    r->expired = metric_cell(
        metric_register(METRIC_COUNTER, "sessions_expired_total", "Sessions that expired.", "", 1),
        NULL, 0);
    r->failures = metric_cell(metric_register(METRIC_COUNTER, "holdfast_cleanup_failures_total",
                                              "Cleanup rounds that failed.", "", 1),
                              NULL, 0);
    r->timer = loop_timer_new(loop, on_timer, r);
    loop_timer_start(r->timer, c->cleanup_interval_ms, c->cleanup_interval_ms);
    return r;
}

void reaper_free(struct reaper *r)
{
    if (!r)
        return;
    loop_timer_free(r->timer);
    free(r);
}
