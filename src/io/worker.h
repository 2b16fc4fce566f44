/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads for blocking jobs that take long (grep, indexing, password hashing), so that the pool
 * of io/loop.h stays free for name lookups.  Results come back as posted tasks.
 *
 * A job is the caller's memory, usually the first member of something larger, and is borrowed from
 * worker_submit() until `done` has been called, which happens exactly once and from the loop. */
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
                 bool ran); /* on the loop; ran is false for a job taken back */
    struct list link;       /* the worker's from here on */
    struct loop_task task;
    bool ran;
};

struct worker *worker_new(struct loop *loop) must_check;
/* With so many threads instead of two, at most WORKER_THREADS_MAX. */
struct worker *worker_new_threads(struct loop *loop, unsigned threads) must_check;
/* false: WORKER_MAX_QUEUE jobs wait already; `done` will not come. */
must_check bool worker_submit(struct worker *w, struct worker_job *job);
/* Takes back a job that has not begun (its `done` still comes, from the loop); one that runs, runs.
 */
void worker_cancel(struct worker *w, struct worker_job *job);
/* Waits for running jobs, takes back the others and calls what `done` is still owed, before it
 * returns.  Call it on the loop thread, before loop_free(). */
void worker_free(struct worker *w);

#endif
