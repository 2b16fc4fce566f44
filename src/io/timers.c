/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of timers.  A timer knows its place, so a stop costs no search. */
#include "io/timers.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>

#define FIRST_CAP 16

int64_t timers_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool is_before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_us < b->due_us || (a->due_us == b->due_us && a->started < b->started);
}

static void put(struct timers *t, size_t place, struct loop_timer *timer)
{
    t->heap[place] = timer;
    timer->place = place;
}

/* `place` is free.  Both functions move timers out of the way and put `timer` where it belongs. */
static void sift_up(struct timers *t, size_t place, struct loop_timer *timer)
{
    for (; place > 1 && is_before(timer, t->heap[place / 2]); place /= 2)
        put(t, place, t->heap[place / 2]);
    put(t, place, timer);
}

static void sift_down(struct timers *t, size_t place, struct loop_timer *timer)
{
    for (size_t child; (child = 2 * place) <= t->n; place = child) {
        if (child < t->n && is_before(t->heap[child + 1], t->heap[child]))
            child++;
        if (!is_before(t->heap[child], timer))
            break;
        put(t, place, t->heap[child]);
    }
    put(t, place, timer);
}

void timer_stop(struct loop_timer *timer)
{
    struct timers *t = timer->home;
    size_t place = timer->place;

    if (!place)
        return;
    timer->place = 0;
    struct loop_timer *last = t->heap[t->n--];
    if (last == timer)
        return;
    if (place > 1 && is_before(last, t->heap[place / 2]))
        sift_up(t, place, last);
    else
        sift_down(t, place, last);
}

void timer_start(struct loop_timer *timer, int64_t due_us, int64_t repeat_us)
{
    struct timers *t = timer->home;

    timer_stop(timer);
    timer->due_us = due_us;
    timer->repeat_us = repeat_us;
    timer->started = t->starts++;
    if (t->n + 1 >= t->cap) {
        t->cap = t->cap ? 2 * t->cap : FIRST_CAP;
        t->heap = xrealloc(t->heap, t->cap * sizeof(struct loop_timer *));
    }
    sift_up(t, ++t->n, timer);
}

int timers_wait_ms(const struct timers *t, int64_t now_us)
{
    if (!t->n)
        return -1;
    int64_t us = t->heap[1]->due_us - now_us;
    if (us <= 0)
        return 0;
    int64_t ms = (us + 999) / 1000;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

struct loop_timer *timers_take_due(struct timers *t, int64_t now_us)
{
    struct loop_timer *timer = t->n ? t->heap[1] : NULL;

    if (!timer || timer->due_us > now_us)
        return NULL;
    if (timer->repeat_us)
        timer_start(timer, now_us + timer->repeat_us, timer->repeat_us);
    else
        timer_stop(timer);
    return timer;
}

void timers_release(struct timers *t)
{
    free(t->heap);
}
