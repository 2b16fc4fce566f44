/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the processor that the write lane runs on.
 *
 * Under load the loop and the write lane take turns: the loop hands in jobs and waits for the
 * commit, then the lane waits for the next jobs.  By default the scheduler wakes each of them on an
 * idle processor, whose caches hold nothing that the other wrote.  So while the lane is busy, both
 * are bound to one processor.  They lose no time, because they would not have run at the same time,
 * and an audited call takes less (decision 0033).
 *
 * The binding ends as soon as it costs time.  The kernel counts how long each thread was runnable
 * but not running.  When the sum of both exceeds two thirds of the time in two successive looks,
 * the threads part, whether they waited for each other or for another thread on that processor.
 * They are bound again after a pause, which doubles while each new binding costs time at once.
 * Without these kernel counters the threads are never bound together.
 *
 * All functions here run on the write lane's thread. */
#include "store/lanes_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define LOOK_EVERY_US 100000
#define BUSY_SHARE 5           /* the lane is busy from this percentage of run time on */
#define WAIT_SHARE 66          /* percentage of waiting above which sharing costs time */
#define HOLD_US (10 * 1000000) /* then they part, and the scheduler may choose again */
#define TOGETHER_STABLE_US 1000000
#define REST_FIRST_US 1000000
#define REST_MOST_US (64 * REST_FIRST_US)

/* Run and wait time of one thread since its start, in ns.  The file reads "ran waited slices". */
static bool read_times(pid_t thread, int64_t *ret_ran, int64_t *ret_waited)
{
    char path[64], text[96];
    long long ran, waited;
    snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    if (sscanf(text, "%lld %lld", &ran, &waited) != 2 || ran == 0)
        /* 0: the kernel keeps no counters, or the thread has only just started. */
        return false;
    *ret_ran = ran;
    *ret_waited = waited;
    return true;
}

static bool look(const struct place *p, int64_t now_us, struct place_look *ret)
{
    int64_t loop_ran, loop_waited, waited;
    *ret = (struct place_look){.at_us = now_us};
    if (!read_times(p->loop, &loop_ran, &loop_waited) || !read_times(p->own, &ret->ran_us, &waited))
        return false;
    ret->ran_us /= 1000;
    ret->waited_us = (loop_waited + waited) / 1000;
    return true;
}

/* Binds both threads to the lane's current processor, so that only the loop must move. */
static bool join(struct place *p)
{
    int here = sched_getcpu();
    if (here < 0 || sched_getaffinity(p->loop, sizeof(p->loop_home), &p->loop_home) != 0 ||
        sched_getaffinity(p->own, sizeof(p->own_home), &p->own_home) != 0 ||
        !CPU_ISSET(here, &p->loop_home) || CPU_COUNT(&p->loop_home) < 2)
        return false;
    CPU_ZERO(&p->shared);
    CPU_SET(here, &p->shared);
    if (sched_setaffinity(p->own, sizeof(p->shared), &p->shared) != 0)
        return false;
    if (sched_setaffinity(p->loop, sizeof(p->shared), &p->shared) == 0)
        return true;
    (void)sched_setaffinity(p->own, sizeof(p->own_home), &p->own_home);
    return false;
}

/* Leaves the thread alone if its affinity was changed from outside meanwhile. */
static void give_back(pid_t thread, const cpu_set_t *home, const cpu_set_t *shared)
{
    cpu_set_t now;
    if (sched_getaffinity(thread, sizeof(now), &now) == 0 && CPU_EQUAL(&now, shared))
        (void)sched_setaffinity(thread, sizeof(*home), home);
}

void place_part(struct place *p)
{
    if (!p->together)
        return;
    give_back(p->loop, &p->loop_home, &p->shared);
    give_back(p->own, &p->own_home, &p->shared);
    p->together = false;
}

void place_init(struct place *p, pid_t loop, int64_t now_us)
{
    *p = (struct place){.loop = loop, .own = gettid(), .rest_us = REST_FIRST_US};
    p->due_us = now_us + LOOK_EVERY_US;
    (void)look(p, now_us, &p->last); /* fails for a thread that has only just started */
}

/* Sets the pause before the next join.  The pause doubles only while each join fails within
 * TOGETHER_STABLE_US. */
static void rest_after(struct place *p, int64_t now_us)
{
    if (now_us - p->since_us > TOGETHER_STABLE_US)
        p->rest_us = REST_FIRST_US;
    p->not_before_us = now_us + p->rest_us;
    p->rest_us = p->rest_us * 2 > REST_MOST_US ? REST_MOST_US : p->rest_us * 2;
}

enum place_step place_decide(struct place *p, const struct place_look *next)
{
    int64_t wall = next->at_us - p->last.at_us;
    bool busy = (next->ran_us - p->last.ran_us) * 100 >= BUSY_SHARE * wall;
    bool in_the_way = (next->waited_us - p->last.waited_us) * 100 > WAIT_SHARE * wall;

    if (!p->together) {
        p->was_in_the_way = false;
        return busy && next->at_us >= p->not_before_us ? PLACE_JOIN : PLACE_STAY;
    }
    if (in_the_way && p->was_in_the_way) {
        rest_after(p, next->at_us);
        return PLACE_PART;
    }
    p->was_in_the_way = in_the_way;
    return busy && next->at_us - p->since_us < HOLD_US ? PLACE_STAY : PLACE_PART;
}

void place_review(struct place *p, int64_t now_us)
{
    struct place_look next;
    if (now_us < p->due_us)
        return;
    p->due_us = now_us + LOOK_EVERY_US;
    if (!look(p, now_us, &next)) {
        place_part(p);
        p->due_us = INT64_MAX;
        return;
    }
    enum place_step step = place_decide(p, &next);
    if (step == PLACE_PART)
        place_part(p);
    if (step == PLACE_JOIN) {
        p->together = join(p);
        p->since_us = now_us;
        if (!p->together)
            p->not_before_us = now_us + REST_MOST_US;
    }
    p->last = next;
}
