/* SPDX-License-Identifier: Apache-2.0 */
/* Where the write lane runs.
 *
 * Under load the loop and the write lane take turns: the loop has handed in what it read and waits
 * for the commit, then the lane waits for what comes of it.  Left to the scheduler each wakes the
 * other on a processor that rested, and finds nothing of what the other wrote in its caches.  So
 * while the lane has much to do, both keep to one processor: they lose no time, as they would not
 * have run at once, and an audited call takes less (decision 0033).
 *
 * That is given up at once when it no longer holds.  The kernel counts how long each thread was
 * ready to run and did not; as soon as that is two thirds of the time in two looks, whether they
 * wait for each other or for somebody else on that processor, they part, and try again after a rest
 * that doubles.
 * Without that count they never come together.
 *
 * Everything here runs on the write lane's thread. */
#include "store/lanes_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define LOOK_EVERY_US 100000
#define BUSY_SHARE 5           /* percent of the time that the lane runs when it has much to do */
#define WAIT_SHARE 66          /* percent that they wait when they are in each other's way */
#define HOLD_US (10 * 1000000) /* then the scheduler may choose another processor for them */
#define TOGETHER_STABLE_US 1000000
#define REST_FIRST_US 1000000
#define REST_MOST_US (64 * REST_FIRST_US)

/* Running and waiting of one thread since it began, in ns: "ran waited slices". */
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
        return false; /* a kernel that does not count says 0, and one that does at the very start */
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

/* To the processor that the lane is on, so that only the loop must move. */
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

/* Unless somebody has moved it meanwhile, who will have had a reason. */
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
    (void)look(p, now_us, &p->last); /* nothing is counted of a thread that has just begun */
}

/* It doubles only as long as coming together harms at once. */
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
