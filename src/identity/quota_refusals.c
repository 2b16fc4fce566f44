/* SPDX-License-Identifier: Apache-2.0 */
/* Reports refusals to the operator.  Every refusal is counted.  Per tenant and key, one in ten
 * seconds is logged and one in a minute is written to the audit, with the number of refusals in
 * between, so that a flood of requests does not cause a flood of lines and writes. */
#include "identity/quota_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "config/limits.h"

#define LOG_EVERY_MS 10000
#define RECORD_EVERY_MS 60000

struct record {
    struct write_job job;
    struct store_op op;
    struct event_row event;
    struct arena *mem; /* holds this record */
};

static void on_recorded(struct write_job *job)
{
    struct record *r = container_of(job, struct record, job);

    if (!job->ok)
        log_warn("a reached limit could not be recorded in the audit", LZ("why", job->err.text));
    arena_free(r->mem);
}

static void record(struct quotas *all, const struct quota *q, const struct quota_refusal *refusal)
{
    struct arena *mem = arena_new(64 * 1024);
    struct record *r = arena_new_of(mem, struct record);

    r->mem = mem;
    r->event = (struct event_row){
        .tenant = arena_dup(mem, q->tenant),
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_dup(mem, q->credential),
        .method = STR("limit"),
        .outcome = STR("refused"),
        .error = arena_printf(mem, "%s Refused since the last record: %u.", refusal->err.text,
                              q->unrecorded),
        .body_len = -1,
    };
    r->op = (struct store_op){.kind = OP_EVENT_APPEND, .event = &r->event};
    r->job = (struct write_job){.ops = &r->op, .n = 1, .done = on_recorded};
    if (!lane_write(all->lanes, &r->job))
        arena_free(mem);
}

static bool is_due(int64_t *last_ms, int64_t every_ms)
{
    int64_t now = clock_mono_ms();

    if (*last_ms && now - *last_ms < every_ms)
        return false;
    *last_ms = now ? now : 1;
    return true;
}

void quota_refused(struct quotas *all, const struct quota_refusal *r)
{
    struct quota *q = r->who;

    metric_add(all->refused[r->kind][r->scope], 1);
    q->unlogged++;
    q->unrecorded++;
    if (is_due(&q->logged_ms, LOG_EVERY_MS)) {
        log_warn("a limit is reached", LS("tenant", q->tenant), LS("credential", q->credential),
                 LZ("limit", limit_name(r->kind)), LI("refused", q->unlogged));
        q->unlogged = 0;
    }
    if (all->lanes && is_due(&q->recorded_ms, RECORD_EVERY_MS)) {
        record(all, q, r);
        q->unrecorded = 0;
    }
}
