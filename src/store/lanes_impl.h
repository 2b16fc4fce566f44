/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the lanes share.  lanes.c owns the threads, the queues into them and the one
 * queue back to the loop; lanes_write.c is what the write thread does with its jobs, lanes_place.c
 * where it does it. */
#ifndef HOLDFAST_STORE_LANES_IMPL_H
#define HOLDFAST_STORE_LANES_IMPL_H

#include <pthread.h>
#include <sched.h>
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
    atomic_size_t wake_at; /* while asleep for the batch to fill: so many must be queued; 0: any */
};

struct lanes {
    struct lanes_config config;
    pid_t loop_thread;
    struct lane write, lookup, query;
    struct done_queue *done;
    atomic_bool stopping;
    atomic_uint in_flight;
    atomic_bool healthy;
    pthread_mutex_t why_lock;
    struct error why; /* the store failed last */
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
void lane_sleep_for_batch_fill(struct lane *lane, size_t queued, int64_t for_us);
/* Real time whatever the tests do to the clock: threads sleep by it. */
int64_t lane_now_us(void);
void *lane_write_main(void *arg);

/* What was counted of the two threads until then. */
struct place_look {
    int64_t at_us;
    int64_t ran_us;    /* the lane */
    int64_t waited_us; /* both: ready to run, and something else did */
};
/* Which processors the loop and the write lane keep to; the write lane's own. */
struct place {
    pid_t loop, own; /* the threads */
    bool together;
    bool was_in_the_way;                   /* at the last look */
    cpu_set_t shared, loop_home, own_home; /* while together: the one, and what they had before */
    struct place_look last;
    int64_t due_us;        /* of the next look; INT64_MAX: the kernel does not count */
    int64_t since_us;      /* together */
    int64_t not_before_us; /* together again */
    int64_t rest_us;       /* after the next time that they were in each other's way */
};
enum place_step { PLACE_STAY, PLACE_JOIN, PLACE_PART };
void place_init(struct place *p, pid_t loop, int64_t now_us);
/* Looks, when it is due, and acts on it. */
void place_review(struct place *p, int64_t now_us);
/* What to do after `next`; for place_review(), and for tests. */
enum place_step place_decide(struct place *p, const struct place_look *next);
/* Both may run where they might before. */
void place_part(struct place *p);
void write_task_done(struct loop_task *task);
void read_task_done(struct loop_task *task);

#endif
