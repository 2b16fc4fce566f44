/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for one kind of work on documents, shared fairly.  Jobs stand in one queue per owner;
 * owners take turns.  One owner never has all threads, so somebody else's job waits for no more
 * than one turn of the others, however many jobs one owner hands in.
 *
 * A job is the caller's memory and is borrowed until `done`, which comes once, from the loop.  Loop
 * thread, but for `run`. */
#ifndef HOLDFAST_DOCS_POOL_H
#define HOLDFAST_DOCS_POOL_H

#include "base/error.h"
#include "base/str.h"
#include "io/worker.h"

struct pool;
struct pool_limits {
    unsigned threads;     /* at most WORKER_THREADS_MAX */
    unsigned per_owner;   /* of them, at the same time */
    unsigned waiting_max; /* jobs of one owner that wait */
};
struct pool_job {
    void (*run)(struct pool_job *job);            /* on a thread */
    void (*done)(struct pool_job *job, bool ran); /* on the loop; !ran: taken back */
    /* The pool's from here on. */
    struct worker_job job;
    struct pool *pool;
    struct pool_owner *owner;
    struct list node;
};

struct pool *pool_new(struct loop *loop, const struct pool_limits *limits) must_check;
/* ERR_LIMIT: waiting_max jobs of this owner wait already; `done` will not come.  `owner` is copied.
 */
must_check bool pool_submit(struct pool *p, struct str owner, struct pool_job *job,
                            struct error *err);
struct worker *pool_worker(struct pool *p); /* for the service's own jobs, which are nobody's */
/* Waits for what runs, takes back the rest; every `done` has come when it returns.  NULL is fine.
 */
void pool_free(struct pool *p);

#endif
