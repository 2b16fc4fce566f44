/* SPDX-License-Identifier: Apache-2.0 */
/* A timer starts one round on the write lane.  A minute makes fewer rollups than a round deletes, so
 * the rounds keep up.  Several nodes may do this at once: each row is deleted by one of them. */
#include "analytics/ages.h"

#include <stdlib.h>

#include "analytics/store/ops.h"
#include "analytics/store/verbs.h"
#include "base/clock.h"
#include "base/log.h"

#define FIRST_MS 5000 /* after the start, which is busy */
#define EVERY_MS 60000
/* Rollups stay a little longer than they can be asked for. */
#define SPARE_MS (INT64_C(26) * 60 * 60 * 1000) /* a packed row begins a day before its last hour */
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
/* Hours are packed when late events of their day are rare. */
#define PACK_AFTER_MS (2 * DAY_MS)
/* Sets of labels that are packed at once, some milliseconds of work. */
#define PACK_LABELS 20

struct rollup_ages {
    struct lanes *lanes;
    struct loop_timer *timer;
    struct read_job job;
    bool busy;
    bool is_packing; /* the job only packs */
    bool more;       /* there is more to pack */
};

static bool age_tenant(struct store *store, struct str tenant, int64_t now_ms, struct error *err)
{
    for (unsigned step = 0; step < ROLLUP_STEPS; step++) {
        if (!rollup_keep_ms[step])
            continue;
        struct rollup_age age = {
            .tenant = tenant,
            .step = step,
            .before = (now_ms - rollup_keep_ms[step] - SPARE_MS) / SPAN_MS - rollup_spans[step],
            .most = ROLLUP_AGES_MOST,
        };
        struct store_op op = op_rollups_age(&age);
        if (!store_write(store, &op, 1, err))
            return false;
    }
    return true;
}

bool rollup_ages_run(struct store *store, int64_t now_ms, struct error *err)
{
    struct arena *mem = arena_new(1 << 20);
    struct str tenant = STR_NONE;
    bool ok;
    do {
        ok = store_rollup_tenant(store, tenant, mem, &tenant, err) &&
             (!tenant.p || age_tenant(store, tenant, now_ms, err));
    } while (ok && tenant.p);
    arena_free(mem);
    return ok;
}

bool rollup_pack_run(struct store *store, int64_t now_ms, bool *ret_more, struct error *err)
{
    int64_t before = (now_ms - PACK_AFTER_MS) / DAY_MS * (DAY_MS / SPAN_MS);
    struct arena *mem = arena_new(1 << 20);
    struct str tenant = STR_NONE;
    bool ok;
    *ret_more = false;
    do {
        ok = store_rollup_tenant(store, tenant, mem, &tenant, err) &&
             (!tenant.p || store_rollups_pack(store, tenant, before, PACK_LABELS, ret_more, err));
    } while (ok && tenant.p && !*ret_more);
    arena_free(mem);
    return ok;
}

/* The first job of a round deletes, the others pack. */
static bool run_round(struct read_job *job, struct store *store)
{
    struct rollup_ages *a = container_of(job, struct rollup_ages, job);
    int64_t now_ms = clock_wall_ms();

    return (a->is_packing || rollup_ages_run(store, now_ms, &job->err)) &&
           rollup_pack_run(store, now_ms, &a->more, &job->err);
}

static void on_round(struct read_job *job);

static void begin(struct rollup_ages *a, bool is_packing)
{
    a->is_packing = is_packing;
    a->job = (struct read_job){.run = run_round, .done = on_round};
    a->busy = lane_maintain(a->lanes, &a->job);
}

static void on_round(struct read_job *job)
{
    struct rollup_ages *a = container_of(job, struct rollup_ages, job);

    a->busy = false;
    if (job->ok && a->more)
        begin(a, true);
    if (!job->ok)
        log_warn("old rollups of analytics could not be deleted; it is tried again in a minute",
                 LZ("why", job->err.text));
}

static void on_timer(void *arg)
{
    struct rollup_ages *a = arg;

    if (!a->busy)
        begin(a, false);
}

struct rollup_ages *rollup_ages_new(struct loop *loop, struct lanes *lanes)
{
    struct rollup_ages *a = xcalloc(1, sizeof(*a));

    a->lanes = lanes;
    a->timer = loop_timer_new(loop, on_timer, a);
    loop_timer_start(a->timer, FIRST_MS, EVERY_MS);
    return a;
}

void rollup_ages_free(struct rollup_ages *a)
{
    if (!a)
        return;
    loop_timer_free(a->timer);
    free(a);
}
