/* SPDX-License-Identifier: Apache-2.0 */
#include "retention/retention.h"

#include "audit/audit.h"
#include "audit/chain.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/metric.h"
#include "retention/plan.h"
#include "store/lanes.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_MS 7000 /* after the start, which is busy */
#define AGAIN_MS 1000 /* after a run that came too late */
#define SLICE_BYTES ((size_t)256 << 20)
#define PAUSE_MS 2        /* between slices */
#define PAUSE_CALLS_MS 20 /* while there are calls: a slice takes 10 ms of a processor */
#define PAUSE_BUSY_MS 50  /* while calls wait for the write lane */
#define BUSY_QUEUE 4
#define SHRINK_BYTES ((int64_t)1 << 20) /* of the file at once */
#define SHRINK_FROM ((int64_t)256 << 10)

enum step { STEP_IDLE, STEP_BEGIN, STEP_SLICE, STEP_TELL, STEP_SHRINK };

struct retention {
    struct loop *loop;
    struct lanes *lanes;
    struct audit *audit;
    struct config *config;
    struct loop_timer *timer, *pause;
    int64_t every_ms;
    enum step step;
    bool stopping;
    struct config *run_config; /* of this run, as the next */
    struct chain *chain;
    struct plan *plan;
    struct read_job read;
    struct write_job write;
    struct arena *mem; /* of this slice */
    struct removal removal;
    bool more;
    struct file_space space;
    bool shrinks;
    size_t changes;            /* of this run */
    int64_t anchors_before_ms; /* their age; 0: they are kept */
    struct metric_cell *events, *bodies, *bytes, *failures, *last_run, *file_bytes;
};

static void next(struct retention *r);

static void end_run(struct retention *r)
{
    if (r->plan && plan_complaint(r->plan))
        log_error("retention removes no more events of a writer",
                  LZ("why", plan_complaint(r->plan)));
    plan_free(r->plan);
    r->plan = NULL;
    chain_free(r->chain);
    r->chain = NULL;
    config_unref(r->run_config);
    r->run_config = NULL;
    arena_free(r->mem);
    r->mem = NULL;
    r->step = STEP_IDLE;
}

/* Another removal or a new hold came between reading and writing: a new run reads again. */
static void run_failed(struct retention *r, const struct error *err)
{
    bool is_stale = err->code == ERR_CONFLICT;

    if (!is_stale && !r->stopping) {
        metric_add(r->failures, 1);
        log_warn("retention could not remove what is too old; it tries again later",
                 LZ("why", err->text));
    }
    end_run(r);
    if (is_stale && !r->stopping)
        loop_timer_start(r->timer, AGAIN_MS, r->every_ms);
}

static void read_failed(struct retention *r)
{
    struct error err;

    error_set(&err, ERR_UNAVAILABLE, "too many queries are waiting");
    run_failed(r, &err);
}

static void pause_for(struct retention *r)
{
    struct lane_stats stats;

    if (r->stopping)
        return;

    lanes_stats(r->lanes, &stats);
    loop_timer_start(r->pause,
                     stats.write_queue > BUSY_QUEUE ? PAUSE_BUSY_MS
                     : stats.in_flight              ? PAUSE_CALLS_MS
                                                    : PAUSE_MS,
                     0);
}

static void on_pause(void *arg)
{
    struct retention *r = arg;
    struct lane_stats stats;

    lanes_stats(r->lanes, &stats);
    if (stats.write_queue > BUSY_QUEUE)
        pause_for(r);
    else
        next(r);
}

static bool run_begin(struct read_job *job, struct store *store)
{
    struct retention *r = container_of(job, struct retention, read);

    return plan_begin(r->plan, store, &job->err);
}

static bool run_slice(struct read_job *job, struct store *store)
{
    struct retention *r = container_of(job, struct retention, read);

    return plan_next(r->plan, store, r->mem, &r->removal, &r->more, &job->err);
}

/* What was removed of one tenant and is not told of yet. */
struct told {
    struct str tenant;
    int64_t events, bodies, bytes;
};

static struct told *told_of(struct told *all, size_t *n, struct str tenant)
{
    size_t i = 0;

    while (i < *n && !str_eq(all[i].tenant, tenant))
        i++;
    if (i == *n)
        all[(*n)++].tenant = tenant;
    return &all[i];
}

static void add_event(struct retention *r, const struct told *t)
{
    struct event_row *e = arena_new_of(r->mem, struct event_row);

    *e = (struct event_row){.tenant = t->tenant,
                            .at_ms = clock_wall_ms(),
                            .kind = EVENT_SYSTEM,
                            .method = STR(RETENTION_METHOD),
                            .outcome = STR("ok"),
                            .body_len = -1};
    e->error =
        arena_printf(r->mem, "Retention removed %lld events and %lld bodies, %lld bytes in all.",
                     (long long)t->events, (long long)t->bodies, (long long)t->bytes);
    removal_add(&r->removal, (struct store_op){.kind = OP_EVENT_APPEND, .event = e});
}

#define TELL_MAX 100 /* tenants of one batch */

static void forget_row(struct retention *r, const struct tally_row *row)
{
    struct tally_row *minus = arena_new_of(r->mem, struct tally_row);

    *minus = *row;
    minus->events = -row->events;
    minus->bytes = -row->bytes;
    minus->body_bytes = -row->body_bytes;
    removal_add(&r->removal, op_tally_add(minus));
}

/* The sums are forgotten in the transaction that appends the events. */
static bool run_tell(struct read_job *job, struct store *store)
{
    struct retention *r = container_of(job, struct retention, read);
    struct told *all = arena_zalloc(r->mem, TELL_MAX * sizeof(*all));
    struct retention_state *state = NULL;
    size_t n = 0;

    if (!store_retention_state(store, r->mem, &state, &job->err) || !state)
        return false;
    removal_init(&r->removal, r->mem, state->version);
    r->more = false;
    for (enum tally_kind kind = TALLY_BY_AGE; kind < TALLY_KINDS; kind++) {
        struct tally_row *rows = NULL;
        size_t n_rows = 0;
        bool is_body = kind >= TALLY_BODIES_BY_AGE;
        if (!store_tallies(store, kind, r->mem, &rows, &n_rows, &job->err))
            return false;
        for (size_t i = 0; i < n_rows && i < TELL_MAX / 4; i++) {
            struct told *t = told_of(all, &n, rows[i].tenant);
            t->events += is_body ? 0 : rows[i].events;
            t->bodies += is_body ? rows[i].events : 0;
            t->bytes += rows[i].bytes + rows[i].body_bytes;
            forget_row(r, &rows[i]);
        }
        r->more |= n_rows > TELL_MAX / 4;
    }
    for (size_t i = 0; i < n; i++)
        add_event(r, &all[i]);
    return store_file_space(store, &r->space, &job->err);
}

static bool run_shrink(struct read_job *job, struct store *store)
{
    struct retention *r = container_of(job, struct retention, read);
    int64_t before = r->space.free;

    if (!store_file_shrink(store, SHRINK_BYTES, &job->err) ||
        !store_file_space(store, &r->space, &job->err))
        return false;
    r->shrinks = r->space.free < before;
    return true;
}

static void on_written(struct write_job *job)
{
    struct retention *r = container_of(job, struct retention, write);

    if (!job->ok) {
        run_failed(r, &job->err);
        return;
    }
    if (fault_hits("retention.written"))
        kill(getpid(), SIGKILL);
    if (r->step == STEP_SLICE) {
        plan_written(r->plan);
        metric_add(r->events, (int64_t)r->removal.whole);
        metric_add(r->bodies, (int64_t)(r->removal.changes - r->removal.whole));
        metric_add(r->bytes, r->removal.freed_bytes);
        r->changes += r->removal.changes;
    }
    if (!r->more)
        r->step++;
    pause_for(r);
}

static void write_slice(struct retention *r)
{
    if (fault_hits("retention.planned"))
        kill(getpid(), SIGKILL);
    r->write = (struct write_job){.ops = r->removal.ops, .n = r->removal.n, .done = on_written};
    if (!lane_write(r->lanes, &r->write))
        read_failed(r);
}

static void run_done(struct retention *r)
{
    if (r->changes)
        log_info("Removed what the audit no longer keeps", LI("events_and_bodies", r->changes));
    if (!plan_complaint(r->plan)) /* else anchors of that age are stored still */
        audit_forget_anchors(r->audit, r->anchors_before_ms);
    metric_set(r->last_run, clock_wall_ms() / 1000);
    end_run(r);
}

static void on_read(struct read_job *job)
{
    struct retention *r = container_of(job, struct retention, read);

    if (!job->ok) {
        run_failed(r, &job->err);
        return;
    }
    if (r->step == STEP_BEGIN) {
        r->step = STEP_SLICE;
        next(r);
    } else if (r->step == STEP_SHRINK) {
        metric_set(r->file_bytes, r->space.bytes);
        if (r->shrinks && r->space.free > SHRINK_FROM)
            pause_for(r);
        else
            run_done(r);
    } else if (r->removal.n > 1) {
        write_slice(r);
    } else {
        if (!r->more)
            r->step++;
        pause_for(r);
    }
}

static void read_with(struct retention *r, bool (*run)(struct read_job *job, struct store *store))
{
    arena_free(r->mem);
    r->mem = arena_new(SLICE_BYTES);
    r->read = (struct read_job){.run = run, .done = on_read};
    if (!lane_query(r->lanes, &r->read))
        read_failed(r);
}

static void shrink(struct retention *r)
{
    if (!r->space.shrinks || r->space.free <= SHRINK_FROM) {
        metric_set(r->file_bytes, r->space.bytes);
        run_done(r);
        return;
    }
    r->read = (struct read_job){.run = run_shrink, .done = on_read};
    if (!lane_maintain(r->lanes, &r->read))
        read_failed(r);
}

static void next(struct retention *r)
{
    if (r->stopping)
        return;
    switch (r->step) {
    case STEP_IDLE:
        break;
    case STEP_BEGIN:
        read_with(r, run_begin);
        break;
    case STEP_SLICE:
        read_with(r, run_slice);
        break;
    case STEP_TELL:
        read_with(r, run_tell);
        break;
    case STEP_SHRINK:
        shrink(r);
        break;
    }
}

static int64_t now_of_rules(void)
{
    int64_t wall = clock_wall_ms(), life = clock_life_ms();

    return wall < life ? wall : life;
}

static void on_timer(void *arg)
{
    struct retention *r = arg;

    if (r->step != STEP_IDLE)
        return;
    const char *anchor_file;
    r->run_config = config_ref(r->config);
    r->chain = audit_chain_to_verify(r->audit, &anchor_file);
    struct rules *rules = rules_new(r->run_config, now_of_rules());
    r->anchors_before_ms = rules_of(rules, STR(CHAIN_SYSTEM_TENANT))->events_before_ms;
    r->plan = plan_new(r->chain, rules);
    r->changes = 0;
    r->step = STEP_BEGIN;
    next(r);
}

void retention_apply(struct retention *r, struct config *c)
{
    int64_t every = rules_interval_ms(c);

    config_unref(r->config);
    r->config = config_ref(c);
    if (every && every != r->every_ms)
        loop_timer_start(r->timer, every < FIRST_MS ? every : FIRST_MS, every);
    else if (!every)
        loop_timer_stop(r->timer);
    r->every_ms = every;
}

static struct metric_cell *cell(enum metric_kind kind, const char *name, const char *help)
{
    return metric_cell(metric_register(kind, name, help, "", 1), NULL, 0);
}

struct retention *retention_new(struct loop *loop, struct lanes *lanes, struct audit *audit,
                                struct config *c)
{
    struct retention *r = xcalloc(1, sizeof(*r));

    r->loop = loop;
    r->lanes = lanes;
    r->audit = audit;
    r->timer = loop_timer_new(loop, on_timer, r);
    r->pause = loop_timer_new(loop, on_pause, r);
    r->events =
        cell(METRIC_COUNTER, "holdfast_retention_events_total", "Events that retention removed.");
    r->bodies = cell(METRIC_COUNTER, "holdfast_retention_bodies_total",
                     "Bodies that retention removed from events that stay.");
    r->bytes = cell(METRIC_COUNTER, "holdfast_retention_bytes_total",
                    "Bytes of the events and bodies that retention removed, before packing.");
    r->failures =
        cell(METRIC_COUNTER, "holdfast_retention_failures_total", "Runs of retention that failed.");
    r->last_run = cell(METRIC_GAUGE, "holdfast_retention_last_run_timestamp_seconds",
                       "When retention last removed all that was too old; 0: not since the start.");
    r->file_bytes = cell(METRIC_GAUGE, "holdfast_retention_file_bytes",
                         "Size of the database file after the last run; 0 with PostgreSQL.");
    retention_apply(r, c);
    return r;
}

void retention_stop(struct retention *r)
{
    if (!r)
        return;
    r->stopping = true;
    loop_timer_stop(r->timer);
    loop_timer_stop(r->pause);
}

void retention_free(struct retention *r)
{
    if (!r)
        return;
    end_run(r);
    loop_timer_free(r->timer);
    loop_timer_free(r->pause);
    config_unref(r->config);
    free(r);
}
