/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking jobs: every accepted one is reported once, from the loop. */
#include "test.h"

#include "io/worker.h"

#include <pthread.h>
#include <semaphore.h>

struct job {
    struct worker_job base;
    sem_t *hold;  /* waits for it */
    sem_t *began; /* tells it */
    pthread_t thread;
    unsigned n_ran, n_done;
    bool ran;
};

static void run(struct worker_job *base)
{
    struct job *j = container_of(base, struct job, base);
    j->thread = pthread_self();
    j->n_ran++;
    if (j->began)
        sem_post(j->began);
    if (j->hold)
        sem_wait(j->hold);
}

static void done(struct worker_job *base, bool ran)
{
    struct job *j = container_of(base, struct job, base);
    j->n_done++;
    j->ran = ran;
}

static void job_init(struct job *j)
{
    memset(j, 0, sizeof(*j));
    j->base.run = run;
    j->base.done = done;
}

TEST(test_worker__runs_elsewhere_and_reports_here)
{
    struct loop *loop = loop_new();
    struct worker *w = worker_new(loop);
    struct job j;

    job_init(&j);
    assert_true(worker_submit(w, &j.base));
    while (!j.n_done)
        loop_turn(loop);
    assert_true(j.ran);
    assert_int_equal(j.n_ran, 1);
    assert_false(pthread_equal(j.thread, pthread_self()));
    worker_free(w);
    loop_free(loop);
}

/* Both threads held, so that what is submitted afterwards waits. */
static void hold_both(struct worker *w, struct job held[WORKER_THREADS], sem_t *hold)
{
    sem_t began;

    sem_init(hold, 0, 0);
    sem_init(&began, 0, 0);
    for (int i = 0; i < WORKER_THREADS; i++) {
        job_init(&held[i]);
        held[i].hold = hold;
        held[i].began = &began;
        assert_true(worker_submit(w, &held[i].base));
    }
    for (int i = 0; i < WORKER_THREADS; i++)
        sem_wait(&began);
    sem_destroy(&began);
}

TEST(test_worker_submit__queue_takes_its_limit_and_not_one_more)
{
    static struct job jobs[WORKER_MAX_QUEUE + 1];
    struct loop *loop = loop_new();
    struct worker *w = worker_new(loop);
    struct job held[WORKER_THREADS];
    sem_t hold;

    hold_both(w, held, &hold);
    for (int i = 0; i <= WORKER_MAX_QUEUE; i++) {
        job_init(&jobs[i]);
        assert_int_equal(worker_submit(w, &jobs[i].base), i < WORKER_MAX_QUEUE);
    }
    for (int i = 0; i < WORKER_THREADS; i++)
        sem_post(&hold);
    while (!jobs[WORKER_MAX_QUEUE - 1].n_done)
        loop_turn(loop);
    worker_free(w);
    for (int i = 0; i < WORKER_MAX_QUEUE; i++)
        assert_int_equal(jobs[i].n_done, 1);
    assert_int_equal(jobs[WORKER_MAX_QUEUE].n_done, 0);
    sem_destroy(&hold);
    loop_free(loop);
}

TEST(test_worker_cancel__takes_back_only_what_has_not_begun)
{
    struct loop *loop = loop_new();
    struct worker *w = worker_new(loop);
    struct job held[WORKER_THREADS], late;
    sem_t hold;

    hold_both(w, held, &hold);
    job_init(&late);
    assert_true(worker_submit(w, &late.base));
    worker_cancel(w, &late.base);
    worker_cancel(w, &held[0].base);
    assert_int_equal(late.n_done, 0);
    while (!late.n_done)
        loop_turn(loop);
    assert_false(late.ran);
    assert_int_equal(late.n_ran, 0);
    assert_int_equal(held[0].n_done, 0);
    for (int i = 0; i < WORKER_THREADS; i++)
        sem_post(&hold);
    while (!held[0].n_done || !held[1].n_done)
        loop_turn(loop);
    assert_true(held[0].ran);
    worker_free(w);
    sem_destroy(&hold);
    loop_free(loop);
}

static void *let_go(void *arg)
{
    for (int i = 0; i < WORKER_THREADS; i++)
        sem_post(arg);
    return NULL;
}

TEST(test_worker_free__waits_for_running_jobs_and_reports_all)
{
    struct loop *loop = loop_new();
    struct worker *w = worker_new(loop);
    struct job held[WORKER_THREADS], late;
    pthread_t thread;
    sem_t hold;

    hold_both(w, held, &hold);
    job_init(&late);
    assert_true(worker_submit(w, &late.base));
    assert_int_equal(pthread_create(&thread, NULL, let_go, &hold), 0);
    worker_free(w);
    pthread_join(thread, NULL);
    assert_int_equal(held[0].n_done, 1);
    assert_int_equal(held[1].n_done, 1);
    assert_int_equal(late.n_done, 1);
    assert_int_equal(late.ran, late.n_ran == 1);
    sem_destroy(&hold);
    loop_free(loop);
}
