/* SPDX-License-Identifier: Apache-2.0 */
/* Threads shared by owners: turns, shares and limits. */
#include "test.h"

#include "docs/pool.h"

#include <semaphore.h>

#define JOBS 32

struct job {
    struct pool_job base;
    sem_t *hold, *began;
    char owner;
    unsigned n_done;
    bool ran;
};

static struct job jobs[JOBS];
static char order[JOBS + 1]; /* owners, as their jobs were done */
static size_t n_order;

static void run(struct pool_job *base)
{
    struct job *j = container_of(base, struct job, base);
    if (j->began)
        sem_post(j->began);
    if (j->hold)
        sem_wait(j->hold);
}

static void done(struct pool_job *base, bool ran)
{
    struct job *j = container_of(base, struct job, base);
    j->n_done++;
    j->ran = ran;
    order[n_order++] = j->owner;
}

static bool submit(struct pool *p, struct job *j, const char *owner, sem_t *hold, sem_t *began)
{
    struct error err;

    *j = (struct job){
        .base = {.run = run, .done = done}, .hold = hold, .began = began, .owner = owner[0]};
    bool ok = pool_submit(p, str_of(owner), &j->base, &err);
    if (!ok)
        assert_int_equal(err.code, ERR_LIMIT);
    return ok;
}

static void wait_done(struct loop *loop, size_t n)
{
    while (n_order < n)
        loop_turn(loop);
}

static void begin_test(void)
{
    n_order = 0;
    memset(order, 0, sizeof order);
}

TEST(test_pool__owners_take_turns)
{
    struct pool_limits one = {.threads = 1, .per_owner = 1, .waiting_max = 10};
    struct loop *loop = loop_new();
    struct pool *p = pool_new(loop, &one);
    sem_t hold;

    begin_test();
    sem_init(&hold, 0, 0);
    assert_true(submit(p, &jobs[0], "a", &hold, NULL));
    for (int i = 1; i <= 4; i++)
        assert_true(submit(p, &jobs[i], "a", NULL, NULL));
    assert_true(submit(p, &jobs[5], "b", NULL, NULL));
    assert_true(submit(p, &jobs[6], "b", NULL, NULL));
    assert_true(submit(p, &jobs[7], "c", NULL, NULL));
    sem_post(&hold);
    wait_done(loop, 8);
    assert_string_equal(order, "aabcabaa");
    pool_free(p);
    sem_destroy(&hold);
    loop_free(loop);
}

TEST(test_pool__one_owner_never_has_all_threads)
{
    struct pool_limits two = {.threads = 3, .per_owner = 2, .waiting_max = 10};
    struct loop *loop = loop_new();
    struct pool *p = pool_new(loop, &two);
    sem_t hold, began;

    begin_test();
    sem_init(&hold, 0, 0);
    sem_init(&began, 0, 0);
    for (int i = 0; i < 4; i++)
        assert_true(submit(p, &jobs[i], "a", &hold, &began));
    sem_wait(&began);
    sem_wait(&began);
    assert_true(submit(p, &jobs[4], "b", NULL, NULL));
    wait_done(loop, 1);
    assert_string_equal(order, "b");
    assert_int_equal(sem_trywait(&began), -1); /* a third of the first owner's has not begun */
    for (int i = 0; i < 4; i++)
        sem_post(&hold);
    wait_done(loop, 5);
    pool_free(p);
    sem_destroy(&hold);
    sem_destroy(&began);
    loop_free(loop);
}

TEST(test_pool__takes_its_limit_of_an_owner_and_not_one_more)
{
    struct pool_limits limits = {.threads = 1, .per_owner = 1, .waiting_max = 3};
    struct loop *loop = loop_new();
    struct pool *p = pool_new(loop, &limits);
    sem_t hold, began;

    begin_test();
    sem_init(&hold, 0, 0);
    sem_init(&began, 0, 0);
    assert_true(submit(p, &jobs[0], "a", &hold, &began));
    sem_wait(&began);
    for (int i = 1; i <= 3; i++)
        assert_true(submit(p, &jobs[i], "a", NULL, NULL));
    assert_false(submit(p, &jobs[4], "a", NULL, NULL));
    assert_true(submit(p, &jobs[5], "b", NULL, NULL));
    sem_post(&hold);
    wait_done(loop, 5);
    assert_int_equal(jobs[4].n_done, 0);
    pool_free(p);
    sem_destroy(&hold);
    sem_destroy(&began);
    loop_free(loop);
}

TEST(test_pool_free__takes_back_what_waits)
{
    struct pool_limits limits = {.threads = 1, .per_owner = 1, .waiting_max = 3};
    struct loop *loop = loop_new();
    struct pool *p = pool_new(loop, &limits);
    sem_t hold, began;

    begin_test();
    sem_init(&hold, 0, 0);
    sem_init(&began, 0, 0);
    assert_true(submit(p, &jobs[0], "a", &hold, &began));
    sem_wait(&began);
    assert_true(submit(p, &jobs[1], "a", NULL, NULL));
    assert_true(submit(p, &jobs[2], "b", NULL, NULL));
    sem_post(&hold);
    pool_free(p);
    for (int i = 0; i < 3; i++)
        assert_int_equal(jobs[i].n_done, 1);
    assert_true(jobs[0].ran);
    assert_false(jobs[1].ran);
    assert_false(jobs[2].ran);
    sem_destroy(&hold);
    sem_destroy(&began);
    loop_free(loop);
}
