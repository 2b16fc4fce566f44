/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for one kind of work on documents, shared fairly.  Jobs wait in one queue per owner;
 * owners take turns.  With per_owner < threads one owner never has all threads, so an owner's job
 * waits for at most one turn of the others, even if one owner submits many jobs.
 *
 * The caller owns the job's memory; the pool borrows it until `done`, which the loop calls once.
 * Loop thread, except `run`. */
#ifndef HOLDFAST_DOCS_POOL_H
#define HOLDFAST_DOCS_POOL_H

#include "base/error.h"
#include "base/str.h"
#include "io/worker.h"

struct pool;
struct pool_limits {
    unsigned threads;     /* at most WORKER_THREADS_MAX */
    unsigned per_owner;   /* threads of one owner at the same time */
    unsigned waiting_max; /* waiting jobs of one owner */
};
struct pool_job {
    void (*run)(struct pool_job *job);            /* on a thread */
    void (*done)(struct pool_job *job, bool ran); /* on the loop; !ran: the job was cancelled */
    /* Private to the pool. */
    struct worker_job job;
    struct pool *pool;
    struct pool_owner *owner;
    struct list node;
};

struct pool *pool_new(struct loop *loop, const struct pool_limits *limits) must_check;
/* ERR_LIMIT: waiting_max jobs of this owner wait already; `done` is not called.  `owner` is
 * copied. */
must_check bool pool_submit(struct pool *p, struct str owner, struct pool_job *job,
                            struct error *err);
struct worker *pool_worker(struct pool *p); /* for the service's own jobs, without an owner */
/* Waits for running jobs and cancels the rest; all `done` have been called when it returns.  NULL
 * is fine. */
void pool_free(struct pool *p);

#endif
