/* SPDX-License-Identifier: Apache-2.0 */
/* The store's side of a sink: its lease and its position.  A job is on the heap and outlives a sink
 * that is freed meanwhile. */
#include "base/clock.h"
#include "base/fault.h"
#include "base/log_quiet.h"
#include "sinks/impl.h"
#include "sinks/store/ops.h"
#include "sinks/store/verbs.h"
#include "store/lanes.h"

#include <stdlib.h>

int64_t sink_lease_ms(void)
{
    return fault_hits("sinks.lease") ? SINK_LEASE_MS / 5 : SINK_LEASE_MS;
}

struct sink_job {
    struct sink *sink; /* NULL: it is gone */
    struct write_job write;
    struct read_job read;
    struct store_op op;
    struct sink_claim claim;
    char name[CONFIG_SINK_NAME_MAX + 1], position[POSITION_TEXT];
    int64_t begun_ms;
    struct arena *mem;
    struct sink_row *row;
};

static struct sink_job *job_new(struct sink *s, int64_t lease_ms)
{
    struct sink_job *job = xcalloc(1, sizeof(*job));

    job->sink = s;
    job->begun_ms = clock_mono_ms();
    memcpy(job->name, s->name.p, s->name.n);
    job->claim = (struct sink_claim){.name = str_n(job->name, s->name.n),
                                     .writer = s->home->config.writer,
                                     .lease_ms = lease_ms,
                                     .now_ms = clock_life_ms(),
                                     .is_alone = !s->home->config.is_shared};
    return job;
}

static void job_free(struct sink_job *job)
{
    if (job->mem)
        arena_free(job->mem);
    free(job);
}

static void hand_in(struct sink *s, struct sink_job *job)
{
    job->write.ops = &job->op;
    job->write.n = 1;
    if (lane_write(s->home->config.lanes, &job->write))
        s->job = job;
    else
        job_free(job); /* the queue is full; the next tick tries again */
}

void sink_forget_job(struct sink *s)
{
    if (s->job)
        s->job->sink = NULL;
    s->job = NULL;
}

static void log_failure(const struct sink_job *job, const struct error *err)
{
    static struct log_quiet quiet;

    log_warn_quietly(&quiet, "the position of a sink cannot be read or saved now",
                     LZ("sink", job->name), LZ("why", err->text));
}

/* NULL: the sink is gone. */
static struct sink *ended(struct sink_job *job)
{
    struct sink *s = job->sink;

    if (s)
        s->job = NULL;
    return s;
}

/* Taking. */

static bool run_load(struct read_job *read, struct store *store)
{
    struct sink_job *job = container_of(read, struct sink_job, read);

    return store_sink(store, job->claim.name, job->mem, &job->row, &read->err);
}

static void on_loaded(struct read_job *read)
{
    struct sink_job *job = container_of(read, struct sink_job, read);
    struct sink *s = ended(job);

    if (s && read->ok)
        sink_begin(s, job->row ? job->row->position : STR_NONE);
    else if (s) {
        log_failure(job, &read->err);
        s->is_taken = false;
    }
    job_free(job);
}

static void load(struct sink *s)
{
    struct sink_job *job = job_new(s, 0);

    job->mem = arena_new(64 * 1024);
    job->read = (struct read_job){.run = run_load, .done = on_loaded};
    if (lane_query(s->home->config.lanes, &job->read)) {
        s->job = job;
        return;
    }
    s->is_taken = false;
    job_free(job);
}

static void on_taken(struct write_job *write)
{
    struct sink_job *job = container_of(write, struct sink_job, write);
    struct sink *s = ended(job);

    if (s && !write->ok) {
        log_failure(job, &write->err);
    } else if (s && job->op.verdict == VERDICT_OK) {
        s->is_taken = true;
        s->lease_until_ms = job->begun_ms + sink_lease_ms();
        load(s);
    } else if (s) {
        s->state = SINK_STANDBY;
    }
    job_free(job);
}

void sink_take(struct sink *s)
{
    struct sink_job *job = job_new(s, sink_lease_ms());

    job->op = op_sink_take(&job->claim);
    job->write.done = on_taken;
    hand_in(s, job);
}

/* Saving. */

static void set_position(const struct sink *s, struct sink_job *job)
{
    if (s->has_done)
        job->claim.position = str_of(position_format(&s->done, job->position));
}

static void on_saved(struct write_job *write)
{
    struct sink_job *job = container_of(write, struct sink_job, write);
    struct sink *s = ended(job);

    if (s && !write->ok) {
        log_failure(job, &write->err);
        s->is_saved = false;
    } else if (s && job->op.verdict == VERDICT_OK) {
        s->lease_until_ms = job->begun_ms + sink_lease_ms();
        if (!s->is_saved)
            sink_save(s);
    } else if (s) {
        sink_lose(s, "it took the sink");
    }
    job_free(job);
}

void sink_save(struct sink *s)
{
    if (s->job) { /* the next save follows it */
        s->is_saved = false;
        return;
    }
    struct sink_job *job = job_new(s, sink_lease_ms());
    set_position(s, job);
    job->op = op_sink_save(&job->claim);
    job->write.done = on_saved;
    s->is_saved = true;
    hand_in(s, job);
    if (!s->job)
        s->is_saved = false;
}

void sink_release(struct sink *s)
{
    sink_forget_job(s);
    struct sink_job *job = job_new(s, 0);
    set_position(s, job);
    job->op = op_sink_save(&job->claim);
    job->write.done = on_saved;
    hand_in(s, job);
    sink_forget_job(s);
    s->is_taken = false;
}
