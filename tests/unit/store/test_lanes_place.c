/* SPDX-License-Identifier: Apache-2.0 */
/* When the write lane and the loop keep to one processor, when they part, and that nobody is left
 * bound: neither afterwards, nor a thread that was begun meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#include "base/thread.h"
#include "store/lanes_impl.h"
#include "store/store_impl.h"

#define SECOND 1000000
#define LOOK (SECOND / 10)
#define PATIENCE_S 60

/* Looks again a tenth of a second later, when the lane ran and both waited so many percent of it.
 */
static enum place_step after(struct place *p, int ran, int waited)
{
    struct place_look next = {p->last.at_us + LOOK, p->last.ran_us + LOOK / 100 * ran,
                              p->last.waited_us + LOOK / 100 * waited};
    enum place_step step = place_decide(p, &next);
    if (step != PLACE_STAY) {
        p->together = step == PLACE_JOIN;
        p->since_us = next.at_us;
    }
    p->last = next;
    return step;
}

static struct place apart(void)
{
    return (struct place){.rest_us = SECOND};
}

static struct place joined(void)
{
    struct place p = apart();
    assert_int_equal(after(&p, 30, 0), PLACE_JOIN);
    return p;
}

TEST(test_place_decide__joins_when_the_lane_has_much_to_do)
{
    struct place p = apart();
    assert_int_equal(after(&p, 0, 0), PLACE_STAY);
    assert_int_equal(after(&p, 4, 0), PLACE_STAY);
    assert_int_equal(after(&p, 5, 150), PLACE_JOIN); /* they wait for others, and not less alone */
}

TEST(test_place_decide__stays_while_it_does_no_harm_and_parts_when_there_is_nothing_to_do)
{
    struct place p = joined();
    for (int i = 0; i < 50; i++)
        assert_int_equal(after(&p, 30, 66), PLACE_STAY);
    assert_int_equal(after(&p, 4, 0), PLACE_PART);
    assert_int_equal(after(&p, 5, 0), PLACE_JOIN); /* at once: nobody was harmed */
}

TEST(test_place_decide__parts_when_they_wait_and_tries_again_after_a_rest_that_doubles)
{
    static const int rests_s[] = {1, 2, 4, 8, 16, 32, 64, 64};
    struct place p = joined();
    for (size_t i = 0; i < countof(rests_s); i++) {
        int64_t rest = rests_s[i] * (int64_t)SECOND;
        assert_int_equal(after(&p, 30, 67), PLACE_STAY); /* once may be chance */
        assert_int_equal(after(&p, 30, 67), PLACE_PART);
        int64_t parted_us = p.last.at_us;
        while (after(&p, 30, 0) == PLACE_STAY)
            assert_true(p.last.at_us - parted_us < rest);
        assert_int_equal(p.last.at_us - parted_us, rest);
    }
}

TEST(test_place_decide__rests_shortly_again_after_it_went_well)
{
    struct place p = joined();
    for (int went_well = 0; went_well < 3; went_well++) {
        for (int i = 0; i < 11; i++)
            assert_int_equal(after(&p, 30, 67 * (i % 2)), PLACE_STAY);
        assert_int_equal(after(&p, 30, 67), PLACE_STAY);
        assert_int_equal(after(&p, 30, 67), PLACE_PART);
        int64_t parted_us = p.last.at_us;
        while (after(&p, 30, 0) == PLACE_STAY)
            ;
        assert_int_equal(p.last.at_us - parted_us, SECOND);
    }
}

TEST(test_place_decide__lets_the_scheduler_choose_anew_now_and_then)
{
    struct place p = joined();
    int64_t joined_us = p.last.at_us;
    while (after(&p, 30, 0) == PLACE_STAY)
        ;
    assert_int_equal(p.last.at_us - joined_us, 10 * SECOND);
    assert_int_equal(after(&p, 30, 0), PLACE_JOIN);
}

/* The real threads. */

struct fixture {
    struct store store;
    struct loop *loop;
    struct lanes *lanes;
    struct write_job job;
    struct store_op op;
    struct event_row event;
    bool goes_on;
};

static int64_t now_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec / 1000;
}

/* A store that makes the lane run. */
static bool busy_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    (void)s, (void)err;
    int64_t until_us = now_us(CLOCK_THREAD_CPUTIME_ID) + 500;
    while (now_us(CLOCK_THREAD_CPUTIME_ID) < until_us)
        ;
    for (size_t i = 0; i < n; i++)
        ops[i].verdict = VERDICT_OK;
    return true;
}

static bool no_fold(struct store *s, struct store_call *c, struct error *err)
{
    (void)s, (void)err;
    assert_int_equal(c->verb, VERB_FOLD);
    *(bool *)c->ret = false;
    return true;
}

static void no_close(struct store *s)
{
    (void)s;
}

static const struct store_ops busy_ops = {
    .name = "busy", .write = busy_write, .call = no_fold, .close = no_close};

static void on_done(struct write_job *job)
{
    struct fixture *f = container_of(job, struct fixture, job);
    if (f->goes_on)
        assert_true(lane_write(f->lanes, &f->job));
}

static int processors_of(pid_t thread)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(thread, sizeof(set), &set), 0);
    return CPU_COUNT(&set);
}

static void on_tick(void *arg)
{
    (void)arg;
}

static void run_until_here(struct fixture *f, int processors)
{
    struct loop_timer *tick = loop_timer_new(f->loop, on_tick, NULL);
    int64_t end_us = now_us(CLOCK_MONOTONIC) + PATIENCE_S * (int64_t)SECOND;
    loop_timer_start(tick, 1, 1);
    while (processors_of(0) != processors) {
        assert_true(now_us(CLOCK_MONOTONIC) < end_us);
        loop_turn(f->loop);
    }
    loop_timer_free(tick);
}

static void open_busy(struct fixture *f)
{
    *f = (struct fixture){.loop = loop_new(), .goes_on = true};
    f->store.ops = &busy_ops;
    struct lanes_config config = {.write = &f->store, .lookup = &f->store, .query = &f->store};
    f->lanes = lanes_new(f->loop, &config);
    f->event = (struct event_row){.id = 1, .tenant = STR("t")};
    f->op = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &f->event}};
    f->job = (struct write_job){.ops = &f->op, .n = 1, .done = on_done};
    assert_true(lane_write(f->lanes, &f->job));
}

static bool is_counted(void)
{
    long long ran = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "re");
    bool ok = f && fscanf(f, "%lld", &ran) == 1 && ran > 0;
    if (f)
        fclose(f);
    return ok;
}

static void skip_unless_possible(void)
{
    if (processors_of(0) < 2)
        skip_because("there is one processor only");
    if (!is_counted())
        skip_because("this kernel does not count how long threads wait");
}

static void *count_processors(void *arg)
{
    *(int *)arg = processors_of(0);
    return NULL;
}

static void count_on_pool(void *arg)
{
    count_processors(arg);
}

static void stop_counting(void *arg)
{
    (void)arg;
}

TEST(test_place__the_loop_is_bound_while_the_lane_is_busy_and_nobody_else_ever_is)
{
    struct fixture f;
    skip_unless_possible();
    int all = processors_of(0), in_thread = 0, on_pool = 0;
    pthread_t thread;
    open_busy(&f);
    run_until_here(&f, 1);
    assert_true(thread_start(&thread, "test", count_processors, &in_thread));
    pthread_join(thread, NULL);
    loop_work(f.loop, count_on_pool, stop_counting, &on_pool);
    f.goes_on = false;
    run_until_here(&f, all);
    while (!on_pool)
        loop_turn(f.loop);
    assert_int_equal(in_thread, all);
    assert_int_equal(on_pool, all);
    lanes_free(f.lanes);
    loop_free(f.loop);
}

TEST(test_place__stopping_gives_the_processors_back)
{
    struct fixture f;
    skip_unless_possible();
    int all = processors_of(0);
    open_busy(&f);
    run_until_here(&f, 1);
    f.goes_on = false;
    lanes_free(f.lanes);
    assert_int_equal(processors_of(0), all);
    loop_free(f.loop);
}

TEST(test_place__who_was_moved_meanwhile_stays_where_he_was_put)
{
    struct place p;
    cpu_set_t home, one;
    skip_unless_possible();
    assert_int_equal(sched_getaffinity(0, sizeof(home), &home), 0);
    place_init(&p, gettid(), 0);
    p.together = true;
    p.loop_home = p.own_home = home;
    CPU_ZERO(&p.shared);
    CPU_ZERO(&one);
    for (int at = 0; at < CPU_SETSIZE; at++)
        if (CPU_ISSET(at, &home))
            CPU_SET(at, CPU_COUNT(&one) ? &p.shared : &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    place_part(&p);
    assert_false(p.together);
    assert_int_equal(processors_of(0), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(home), &home), 0);
}
