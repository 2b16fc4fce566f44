/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the lanes.  lanes.c owns the threads, their incoming queues and the one
 * queue back to the loop.  lanes_write.c is the work of the write thread.  lanes_place.c chooses
 * the processor that the write thread runs on. */
#ifndef HOLDFAST_STORE_LANES_IMPL_H
#define HOLDFAST_STORE_LANES_IMPL_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "store/lanes.h"
#include "store/room.h"

/* Newest first.  Many threads push; one thread takes the whole stack. */
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
    atomic_size_t queued;     /* handed in, not yet finished */
    /* While the lane sleeps for the batch to fill: wake it at this many queued jobs; 0: at any
     * job. */
    atomic_size_t wake_at;
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
    struct error why; /* the store's last failure */
    atomic_uint_fast64_t batches, ops, failures;
    _Atomic int64_t last_batch_us;
    struct room room;
};

void task_push(struct task_stack *stack, struct loop_task *task);
/* Takes all tasks, oldest first. */
struct loop_task *task_take(struct task_stack *stack);
/* Jobs collected to be handed back to the loop together. */
struct finished {
    struct loop_task *newest, *oldest;
    size_t n;
};
void finished_add(struct finished *f, struct loop_task *task);
void lane_finish(struct lane *lane, struct finished *f);
/* Sleeps until a job comes in, the lanes stop, or `for_us` has passed (< 0: no timeout). */
void lane_sleep(struct lane *lane, int64_t for_us);
/* Sleeps until `queued` jobs are queued, the lanes stop, or `for_us` has passed. */
void lane_sleep_for_batch_fill(struct lane *lane, size_t queued, int64_t for_us);
/* The real monotonic clock even when tests use a fake one, because threads sleep by it. */
int64_t lane_now_us(void);
void *lane_write_main(void *arg);

/* Scheduler counters of the two threads at one moment. */
struct place_look {
    int64_t at_us;
    int64_t ran_us;    /* run time of the write lane */
    int64_t waited_us; /* both threads: runnable but not running */
};
/* The processors that the loop and the write lane are bound to.  Only the write lane uses it. */
struct place {
    pid_t loop, own; /* thread ids of the loop and of the write lane */
    bool together;
    bool was_in_the_way; /* they waited too long at the last look */
    /* While together: the shared processor, and the affinity that each thread had before. */
    cpu_set_t shared, loop_home, own_home;
    struct place_look last;
    int64_t due_us;        /* time of the next look; INT64_MAX: the kernel keeps no counters */
    int64_t since_us;      /* time at which they were put together */
    int64_t not_before_us; /* earliest time to put them together again */
    int64_t rest_us;       /* how long to stay apart after the next separation for waiting */
};
enum place_step { PLACE_STAY, PLACE_JOIN, PLACE_PART };
void place_init(struct place *p, pid_t loop, int64_t now_us);
/* When a look is due: reads the counters, decides, and moves the threads. */
void place_review(struct place *p, int64_t now_us);
/* Decides the step after the look `next`.  Called by place_review() and by tests. */
enum place_step place_decide(struct place *p, const struct place_look *next);
/* Gives both threads their earlier affinity back. */
void place_part(struct place *p);
void write_task_done(struct loop_task *task);
void read_task_done(struct loop_task *task);

#endif
