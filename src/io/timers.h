/* SPDX-License-Identifier: Apache-2.0 */
/* The timers of one loop: a heap, the timer that is due first on top.  For the loop alone; everyone
 * else uses loop_timer_*() of io/loop.h. */
#ifndef HOLDFAST_IO_TIMERS_H
#define HOLDFAST_IO_TIMERS_H

#include "base/base.h"

struct loop_timer {
    struct timers *home;
    void (*fn)(void *arg);
    void *arg;
    int64_t due_us, repeat_us; /* repeat_us 0: once */
    uint64_t started; /* of two timers with the same due_us, the one started first runs first */
    size_t place;     /* in the heap, counted from 1; 0: not running */
};

struct timers {
    struct loop_timer **heap; /* the children of place p are at 2p and 2p + 1; heap[0] is unused */
    size_t n, cap;
    size_t n_made;   /* timers that were not freed yet, running or not */
    uint64_t starts; /* number of starts so far */
};

/* The clock of epoll_wait(), which tests cannot freeze as they freeze base/clock.h. */
int64_t timers_now_us(void);
void timers_release(struct timers *t); /* every timer must have been freed */
void timer_start(struct loop_timer *timer, int64_t due_us, int64_t repeat_us); /* restarts */
void timer_stop(struct loop_timer *timer);
/* Milliseconds until the first timer is due, rounded up; 0 if it is due, -1 if none runs. */
int timers_wait_ms(const struct timers *t, int64_t now_us);
/* Returns the timer that was due first at now_us, stopped or started for its next time; NULL if
 * none was due. */
struct loop_timer *timers_take_due(struct timers *t, int64_t now_us);

#endif
