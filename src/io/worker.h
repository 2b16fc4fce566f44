/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads for long blocking jobs (grep, indexing, password hashing), so that the pool of
 * io/loop.h stays free for name lookups.  Results come back as posted tasks.
 *
 * A job is the caller's memory, usually a member of a larger object.  The worker borrows it from
 * worker_submit() until `done` has been called, exactly once and on the loop. */
#ifndef HOLDFAST_IO_WORKER_H
#define HOLDFAST_IO_WORKER_H

#include "base/list.h"
#include "io/loop.h"

#define WORKER_THREADS 2
#define WORKER_THREADS_MAX 8
#define WORKER_MAX_QUEUE 256

struct worker;
struct worker_job {
    void (*run)(struct worker_job *job); /* on a worker thread */
    void (*done)(struct worker_job *job,
                 bool ran); /* on the loop; ran is false for a cancelled job */
    struct list link;       /* this and the following members belong to the worker */
    struct loop_task task;
    bool ran;
};

struct worker *worker_new(struct loop *loop) must_check;
/* Like worker_new(), with this many threads, at most WORKER_THREADS_MAX. */
struct worker *worker_new_threads(struct loop *loop, unsigned threads) must_check;
/* The same without a limit of waiting jobs.  For loop_work(). */
struct worker *worker_new_pool(struct loop *loop, unsigned threads) must_check;
/* Returns false when WORKER_MAX_QUEUE jobs are waiting; `done` is then not called. */
must_check bool worker_submit(struct worker *w, struct worker_job *job);
/* Cancels a job that has not begun; its `done` is still called, on the loop.  A running job is not
 * affected. */
void worker_cancel(struct worker *w, struct worker_job *job);
/* Waits for running jobs, cancels the others, and calls every pending `done` before it returns.
 * Call it on the loop thread, before loop_free(). */
void worker_free(struct worker *w);

#endif
