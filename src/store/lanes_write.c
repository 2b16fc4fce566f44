/* SPDX-License-Identifier: Apache-2.0 */
/* The write lane: group commit, and the fold between batches.
 *
 *     take jobs → batch full enough? → prepare each → assign, write, commit → hand back
 *         → upkeep → fold, if due → where to run
 *
 * If one job makes a batch fail, the lane writes the batch again in halves until that job is alone,
 * so that the other jobs succeed.  If the store itself fails (ERR_UNAVAILABLE), the whole batch
 * fails: writing its halves would only make all callers wait longer.
 *
 * All functions here run on the one write thread; only this thread uses `struct writer`. */
#include "store/lanes_impl.h"

#include <stdlib.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#define FOLD_EVERY_US 1000000
#define MANY_IN_FLIGHT 16
#define PROBE_EVERY_US 1000000
/* Slices folded while stopping.  The next start folds the rest. */
#define FOLD_LAST_SLICES 128

#define CACHE_LINE 64
#define WARM_MAX 1024 /* bytes per span; the hardware prefetcher fetches the rest */

struct writer {
    struct lane *lane;
    struct lanes *l;
    struct write_job *first, **end; /* taken, not yet in a batch */
    struct write_job **jobs;        /* the batch */
    size_t n_jobs, n_before;        /* jobs in this batch and in the previous one */
    struct store_op *ops;
    struct finished refused;  /* of this batch, for want of disk space */
    struct finished barriers; /* jobs without ops, waiting for the fold */
    int64_t fold_due_us;      /* 0: nothing to fold */
    size_t unfolded;          /* events appended since the last fold, approximately */
    int64_t probe_due_us;     /* 0: the store is healthy */
    struct place place;
};

static void take_jobs(struct writer *w)
{
    struct loop_task *task = task_take(&w->lane->incoming);
    while (task) {
        struct write_job *job = container_of(task, struct write_job, task);
        task = task->next;
        job->next = NULL;
        *w->end = job;
        w->end = &job->next;
    }
}

/* Counts the waiting jobs that fit in one batch.  *ret_full: the batch cannot take more jobs. */
static size_t count_batch(const struct writer *w, bool *ret_full)
{
    size_t jobs = 0;
    size_t ops = 0;
    const struct write_job *job = w->first;
    for (; job && jobs < w->l->config.max_batch; job = job->next, jobs++) {
        ops += job->n;
        if (ops > w->l->config.max_batch)
            break;
    }
    *ret_full = job != NULL || ops >= w->l->config.max_batch;
    return jobs;
}

/* How full a batch must be.  With few calls in flight half of them are enough: waiting for the last
 * ones would make all calls wait for the slowest.  With many calls the lane waits for nearly all of
 * them: a commit is the largest cost of an audited call, and it takes longer than the wait. */
static size_t batch_fill_enough(unsigned in_flight)
{
    return in_flight < MANY_IN_FLIGHT ? (in_flight + 1) / 2 : in_flight - in_flight / 8;
}

/* How full the last two batches were.  Requests that only use the store are not counted in flight
 * before they are queued.  But a caller that wrote lately mostly writes again after its reply.  The
 * larger of the last two batches approximates the number of such callers.  Without this the first
 * of them would be written alone, and all others in a second batch. */
static size_t batch_fill_lately(const struct writer *w)
{
    size_t n = w->n_jobs > w->n_before ? w->n_jobs : w->n_before;
    return n < MANY_IN_FLIGHT ? 0 : batch_fill_enough((unsigned)n);
}

/* With many calls in flight, more jobs are about to be queued: one fsync can serve them all. */
static void await_batch_fill(struct writer *w)
{
    const struct lanes_config *c = &w->l->config;
    int64_t began_us = lane_now_us();
    size_t lately = batch_fill_lately(w);
    for (size_t before = SIZE_MAX;;) {
        bool full = false;
        size_t jobs = count_batch(w, &full);
        size_t calls =
            batch_fill_enough(atomic_load_explicit(&w->l->in_flight, memory_order_relaxed));
        int64_t left_us =
            began_us + (jobs < calls ? c->batch_fill_us : c->return_us) - lane_now_us();
        size_t enough = calls > lately ? calls : lately;
        if (full || jobs >= enough || left_us <= 0 || atomic_load(&w->l->stopping) ||
            jobs == before) /* only upkeep was queued since */
            return;
        before = jobs;
        lane_sleep_for_batch_fill(w->lane, enough, left_us);
        take_jobs(w);
    }
}

static void warm_up(const struct write_job *job)
{
    __builtin_prefetch(job->ops);
    for (size_t i = 0; i < countof(job->warm); i++)
        for (size_t at = 0; at < job->warm[i].n && at < WARM_MAX; at += CACHE_LINE)
            __builtin_prefetch(job->warm[i].p + at);
}

/* Jobs finish in their order, so a refused job is handed back with its batch. */
static void refuse(struct writer *w, struct write_job *job)
{
    job->ok = false;
    room_explain(&w->l->room, &job->err);
    for (size_t k = 0; k < job->n; k++)
        job->ops[k].verdict = VERDICT_FAILED;
}

/* The jobs to write are w->jobs[0..n_jobs); those to refuse are in w->refused. */
static void gather(struct writer *w)
{
    bool full = false, low = room_is_low(&w->l->room);
    size_t n = count_batch(w, &full);

    w->n_before = w->n_jobs;
    w->n_jobs = 0;
    for (size_t i = 0; i < n; i++) {
        struct write_job *job = w->first;
        w->first = job->next;
        if (w->first)
            warm_up(w->first);
        if (unlikely(low && job->grows)) {
            refuse(w, job);
            finished_add(&w->refused, &job->task);
            continue;
        }
        w->jobs[w->n_jobs++] = job;
        if (job->prepare)
            job->prepare(job);
    }
    if (!w->first)
        w->end = &w->first;
}

/* `why` is NULL when the store has written successfully. */
static void set_health(struct writer *w, const struct error *why)
{
    if (why) {
        pthread_mutex_lock(&w->l->why_lock);
        w->l->why = *why;
        pthread_mutex_unlock(&w->l->why_lock);
    }
    atomic_store(&w->l->healthy, why == NULL);
    w->probe_due_us = why ? lane_now_us() + PROBE_EVERY_US : 0;
}

/* One transaction, with the hook around it. */
static bool write_ops(struct writer *w, size_t n, struct error *err)
{
    const struct write_hook *hook = &w->l->config.hook;
    bool ok = (!hook->assign || hook->assign(hook->arg, w->lane->store, w->ops, n, err)) &&
              store_write(w->lane->store, w->ops, n, err);
    if (ok && hook->commit)
        hook->commit(hook->arg);
    if (!ok && hook->rollback)
        hook->rollback(hook->arg);
    if (ok || err->code == ERR_UNAVAILABLE)
        set_health(w, ok ? NULL : err);
    return ok;
}

static bool try_jobs(struct writer *w, struct write_job **jobs, size_t n, struct error *err)
{
    size_t n_ops = 0;
    size_t n_events = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < jobs[i]->n; k++) {
            n_events += jobs[i]->ops[k].kind == OP_EVENT_APPEND;
            w->ops[n_ops] = jobs[i]->ops[k];
            w->ops[n_ops++].verdict =
                VERDICT_FAILED; /* stays if the hook fails before the store is called */
        }
    if (n_ops && !write_ops(w, n_ops, err))
        return false;
    n_ops = 0;
    for (size_t i = 0; i < n; i++) {
        jobs[i]->ok = true;
        for (size_t k = 0; k < jobs[i]->n; k++)
            jobs[i]->ops[k].verdict = w->ops[n_ops++].verdict;
    }
    atomic_fetch_add(&w->l->batches, n_ops > 0);
    atomic_fetch_add(&w->l->ops, n_ops);
    w->unfolded += n_events;
    if (n_events && !w->fold_due_us)
        w->fold_due_us = lane_now_us() + FOLD_EVERY_US;
    return true;
}

static void write_jobs(struct writer *w, struct write_job **jobs, size_t n)
{
    struct error err = {0};
    if (n == 0 || try_jobs(w, jobs, n, &err))
        return;
    if (n > 1 && err.code != ERR_UNAVAILABLE) {
        write_jobs(w, jobs, n / 2);
        write_jobs(w, jobs + n / 2, n - n / 2);
        return;
    }
    atomic_fetch_add(&w->l->failures, n);
    for (size_t i = 0; i < n; i++) {
        jobs[i]->ok = false;
        jobs[i]->err = err;
        for (size_t k = 0; k < jobs[i]->n; k++)
            jobs[i]->ops[k].verdict = w->ops[k].verdict; /* a single job: why it failed */
    }
}

static void write_batch(struct writer *w)
{
    struct finished f = w->refused;
    int64_t began_us = lane_now_us();

    w->refused = (struct finished){0};
    write_jobs(w, w->jobs, w->n_jobs);
    for (size_t i = 0; i < w->n_jobs; i++) {
        struct write_job *job = w->jobs[i];
        finished_add(job->n ? &f : &w->barriers, &job->task);
    }
    atomic_store(&w->l->last_batch_us, lane_now_us() - began_us);
    lane_finish(w->lane, &f);
}

/* Finishes the jobs that waited for the fold: successfully, or with the error of the fold. */
static void release_barriers(struct writer *w, const struct error *err)
{
    for (struct loop_task *task = w->barriers.newest; task; task = task->next) {
        struct write_job *job = container_of(task, struct write_job, task);
        job->ok = err == NULL;
        if (err)
            job->err = *err;
    }
    lane_finish(w->lane, &w->barriers);
}

/* Returns false when the fold failed; the lane then tries again later. */
static bool fold_slice(struct writer *w)
{
    struct error err = {0};
    bool left = false;
    if (!store_fold(w->lane->store, w->l->config.fold_most, &left, &err)) {
        w->fold_due_us = lane_now_us() + FOLD_EVERY_US;
        w->unfolded = 0;
        if (err.code == ERR_UNAVAILABLE)
            set_health(w, &err);
        release_barriers(w, &err);
        return false;
    }
    w->unfolded = 0;
    w->fold_due_us = left ? lane_now_us() : 0; /* the next slice follows the next batch */
    if (left)
        return true;
    release_barriers(w, NULL);
    return true;
}

static bool fold_is_due(const struct writer *w, int64_t now_us)
{
    return w->barriers.n || w->unfolded + w->l->config.max_batch > w->l->config.fold_most ||
           (w->fold_due_us && now_us >= w->fold_due_us);
}

static void run_upkeep(struct writer *w)
{
    struct loop_task *task = task_take(&w->lane->upkeep);
    while (task) {
        struct finished f = {0};
        struct loop_task *next = task->next;
        struct read_job *job = container_of(task, struct read_job, task);
        job->ok = job->run(job, w->lane->store);
        finished_add(&f, task);
        lane_finish(w->lane, &f);
        task = next;
    }
}

static void probe_if_due(struct writer *w, int64_t now_us)
{
    struct error err;
    if (w->probe_due_us && now_us >= w->probe_due_us)
        set_health(w, store_write(w->lane->store, NULL, 0, &err) ? NULL : &err);
}

/* Sleeps until a job arrives, or until the fold, the probe or the placement look is due. */
static void sleep_until_due(struct writer *w, int64_t now_us)
{
    int64_t due_us = w->fold_due_us;
    if (w->probe_due_us && (!due_us || w->probe_due_us < due_us))
        due_us = w->probe_due_us;
    if (room_is_low(&w->l->room) && (!due_us || w->l->room.due_us < due_us))
        due_us = w->l->room.due_us;
    if (w->place.together && (!due_us || w->place.due_us < due_us))
        due_us = w->place.due_us; /* so that an idle lane does not stay bound */
    lane_sleep(w->lane, !due_us ? -1 : due_us > now_us ? due_us - now_us : 0);
}

static bool turn(struct writer *w)
{
    bool stopping = atomic_load(&w->l->stopping);
    take_jobs(w);
    bool had_jobs = w->first != NULL;
    room_review(&w->l->room, lane_now_us());
    if (had_jobs) {
        await_batch_fill(w);
        gather(w);
        write_batch(w);
    }
    run_upkeep(w);
    int64_t now_us = lane_now_us();
    bool due = fold_is_due(w, now_us);
    if (due)
        fold_slice(w);
    probe_if_due(w, now_us);
    place_review(&w->place, now_us);
    if (had_jobs || due)
        return true;
    if (stopping)
        return false;
    sleep_until_due(w, now_us);
    return true;
}

void *lane_write_main(void *arg)
{
    struct lane *lane = arg;
    size_t max = lane->lanes->config.max_batch;
    struct writer w = {.lane = lane, .l = lane->lanes, .fold_due_us = lane_now_us()};
    w.end = &w.first;
    w.jobs = xcalloc(max, sizeof(*w.jobs));
    w.ops = xcalloc(max, sizeof(*w.ops));
    struct sched_param plain = {0};

    place_init(&w.place, lane->lanes->loop_thread, lane_now_us());
    prctl(PR_SET_TIMERSLACK, 1000); /* the wait is tens of microseconds */
    /* SCHED_BATCH: waking this thread does not preempt the loop.  A commit gains nothing from
     * starting some microseconds earlier, while the loop would lose its caches.  The lane also
     * works if the kernel refuses. */
    (void)sched_setscheduler(0, SCHED_BATCH, &plain);
    while (turn(&w))
        ;
    place_part(&w.place);
    for (int i = 0; i < FOLD_LAST_SLICES && w.fold_due_us && fold_slice(&w); i++)
        ;
    free(w.jobs);
    free(w.ops);
    return NULL;
}
