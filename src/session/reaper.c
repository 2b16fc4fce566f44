/* SPDX-License-Identifier: Apache-2.0 */
/* One timer starts each run.  A run is a series of batches on the write lane, one at a time.  The
 * next batch follows only while batches are full, so a run never holds the lane for long.  A failed
 * run is logged and counted, and the timer continues. */
#include "session/reaper.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/metric.h"
#include "session/session_metrics.h"

#include <stdlib.h>

#define FIRST_MS 5000     /* delay after the start, which is busy */
#define LINKS_STEP 100    /* sessions per batch that are searched for links */
#define LINKS_PER_RUN 200 /* remote sessions to delete per run; the rest wait for the next run */
#define LINKS_BYTES (256u << 20)
#define LEASE_SPARE_MS 30000 /* the lease lasts this long past the next run, which renews it */

struct reaper {
    struct lanes *lanes;
    struct sessions *sessions;
    struct loop_timer *timer;
    struct read_job job;
    struct reap_request what;              /* of the running batch; the lane reads it */
    int64_t interval_ms, idle_ms, keep_ms; /* keep_ms 0: ended sessions stay */
    unsigned batch_size;
    bool busy;
    struct reaped batch; /* result of the last batch */
    struct reaped run;   /* sum of this run; n_links counts remote sessions of earlier processes */
    struct metric_cell *failures;
    void (*on_link)(void *arg, const struct link_row *row);
    void *arg;
};

static bool run_batch(struct read_job *job, struct store *store)
{
    struct reaper *r = container_of(job, struct reaper, job);
    if (fault_hits("reaper.batch"))
        return error_set(&job->err, ERR_UNAVAILABLE, "fault injected");
    return store_reap(store, &r->what, &r->batch, &job->err);
}

static void batch_start(struct reaper *r);

static void run_failed(struct reaper *r, const char *why)
{
    metric_add(r->failures, 1);
    log_warn("cleaning up expired sessions failed; it is tried again at the next interval",
             LZ("why", why));
}

static void run_done(struct reaper *r)
{
    sessions_drop_over(r->sessions, r->what.now_ms, r->what.batch);
    if (r->run.expired)
        log_info("Cleaned up expired sessions", LI("count", r->run.expired));
    if (r->run.deleted)
        log_info("Deleted sessions that had ended", LI("count", r->run.deleted));
    if (r->run.clamped)
        log_warn("sessions used in the future, by a clock that was wrong, count as used now",
                 LI("count", r->run.clamped));
}

static void on_batch(struct read_job *job)
{
    struct reaper *r = container_of(job, struct reaper, job);
    const struct reaped *b = &r->batch;

    r->busy = false;
    if (!job->ok) {
        run_failed(r, job->err.text);
        return;
    }
    for (size_t i = 0; i < b->expired; i++)
        session_metric_ended(SESSION_EXPIRED, r->what.ret_lived_ms[i]);
    for (size_t i = 0; i < b->n_links; i++) {
        r->on_link(r->arg, &b->links[i]);
        r->run.n_links += b->links[i].remote_id.p && b->links[i].writer != r->what.writer;
    }
    r->run.expired += b->expired;
    r->run.deleted += b->deleted;
    r->run.clamped += b->clamped;
    if (b->expired >= r->what.batch || b->idled >= r->what.batch || b->clamped >= r->what.batch ||
        b->deleted >= r->what.batch || b->left || (b->more_links && r->run.n_links < LINKS_PER_RUN))
        batch_start(r);
    else
        run_done(r);
}

static void batch_start(struct reaper *r)
{
    r->batch = (struct reaped){0};
    r->what.batch = r->batch_size;
    r->what.ret_lived_ms = xrealloc(r->what.ret_lived_ms, r->batch_size * sizeof(int64_t));
    r->what.links = r->on_link && r->run.n_links < LINKS_PER_RUN ? LINKS_STEP : 0;
    arena_free(r->what.mem);
    r->what.mem = r->what.links ? arena_new(LINKS_BYTES) : NULL;
    r->what.idle_ms = r->idle_ms;
    r->what.now_ms = clock_life_ms();
    r->what.over_ms = r->keep_ms ? r->what.now_ms - r->keep_ms : 0;
    r->what.lease_until_ms = r->what.now_ms + r->interval_ms + LEASE_SPARE_MS;
    r->job = (struct read_job){.run = run_batch, .done = on_batch};
    r->busy = lane_maintain(r->lanes, &r->job);
    if (!r->busy)
        run_failed(r, "too much is waiting for the store");
}

static void on_timer(void *arg)
{
    struct reaper *r = arg;

    if (r->busy)
        return;
    r->run = (struct reaped){0};
    batch_start(r);
}

void reaper_apply(struct reaper *r, const struct config *c)
{
    bool first = r->interval_ms == 0;
    int64_t after = first && c->cleanup_interval_ms > FIRST_MS ? FIRST_MS : c->cleanup_interval_ms;

    if (r->interval_ms != c->cleanup_interval_ms)
        loop_timer_start(r->timer, after, c->cleanup_interval_ms);
    r->interval_ms = c->cleanup_interval_ms;
    r->batch_size = c->cleanup_batch;
    r->idle_ms = c->session_idle_ms;
    r->keep_ms = c->session_keep_ms;
}

struct reaper *reaper_new(struct loop *loop, struct lanes *lanes, struct sessions *sessions,
                          const struct config *c)
{
    struct reaper *r = xcalloc(1, sizeof(*r));

    r->lanes = lanes;
    r->sessions = sessions;
    r->what.writer = sessions_writer(sessions);
    r->failures = metric_cell(metric_register(METRIC_COUNTER, "holdfast_cleanup_failures_total",
                                              "Cleanup runs that failed.", "", 1),
                              NULL, 0);
    r->timer = loop_timer_new(loop, on_timer, r);
    reaper_apply(r, c);
    return r;
}

void reaper_on_links(struct reaper *r, void (*on_link)(void *arg, const struct link_row *row),
                     void *arg)
{
    r->on_link = on_link;
    r->arg = arg;
}

void reaper_free(struct reaper *r)
{
    if (!r)
        return;
    loop_timer_free(r->timer);
    free(r->what.ret_lived_ms);
    arena_free(r->what.mem);
    free(r);
}
