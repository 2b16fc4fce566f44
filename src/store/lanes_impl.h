/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the lanes share.  lanes.c owns the threads, the queues into them and the one
 * queue back to the loop; lanes_write.c is what the write thread does with its jobs. */
#ifndef HOLDFAST_STORE_LANES_IMPL_H
#define HOLDFAST_STORE_LANES_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/lanes.h"

/* Newest first; pushed by many, taken whole by one. */
struct task_stack {
    _Atomic(struct loop_task *) newest;
};

/* Finished jobs on their way to the loop.  Outlives the lanes while its task is posted. */
struct done_queue {
    struct loop_task task;
    struct loop *loop;
    struct task_stack finished;
    atomic_bool posted;
    bool orphaned; /* loop thread only */
};

struct lane {
    struct lanes *lanes;
    const char *name;
    struct store *store;
    pthread_t thread;
    struct task_stack incoming;
    struct task_stack upkeep; /* write lane: lane_maintain() */
    atomic_int asleep;        /* futex: 1 while the thread sleeps or is about to */
    atomic_size_t queued;     /* handed in and not finished */
    atomic_size_t wake_at;    /* while asleep for company: so many must be queued; 0: any */
};

struct lanes {
    struct lanes_config config;
    struct lane write, lookup, query;
    struct done_queue *done;
    atomic_bool stopping;
    atomic_uint in_flight;
    atomic_bool healthy;
    atomic_uint_fast64_t batches, ops, failures;
    _Atomic int64_t last_batch_us;
};

void task_push(struct task_stack *stack, struct loop_task *task);
/* Takes everything, oldest first. */
struct loop_task *task_take(struct task_stack *stack);
/* Jobs gathered to be handed back in one go. */
struct finished {
    struct loop_task *newest, *oldest;
    size_t n;
};
void finished_add(struct finished *f, struct loop_task *task);
void lane_finish(struct lane *lane, struct finished *f);
/* Sleeps until something comes in, the lanes stop, or `for_us` has passed (< 0: no end). */
void lane_sleep(struct lane *lane, int64_t for_us);
/* Sleeps until so many jobs are queued, the lanes stop, or `for_us` has passed. */
void lane_sleep_for_company(struct lane *lane, size_t queued, int64_t for_us);
/* Real time whatever the tests do to the clock: threads sleep by it. */
int64_t lane_now_us(void);
void *lane_write_main(void *arg);
void write_task_done(struct loop_task *task);
void read_task_done(struct loop_task *task);

#endif
