/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes over a store that is told what to do: which batches arrive, who pays for a bad job,
 * what is refused, and that nothing handed in is forgotten. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#include "store/lanes.h"
#include "store/store_impl.h"

#define POISON STR("poison")

/* A store that only writes, and remembers how it was asked to. */
struct scripted {
    struct store base;
    unsigned writes, probes;
    size_t sizes[64]; /* ops of each write */
    unsigned downs;   /* this many writes fail, then all is well */
    unsigned folds, fold_max;
    unsigned lefts; /* this many folds leave something */
    sem_t probed;
};

static bool scripted_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    struct scripted *sc = container_of(s, struct scripted, base);
    if (n == 0) {
        sc->probes++;
        sem_post(&sc->probed);
        return true;
    }
    sc->sizes[sc->writes++ % countof(sc->sizes)] = n;
    if (sc->downs && sc->downs--)
        return error_set(err, ERR_UNAVAILABLE, "down");
    for (size_t i = 0; i < n; i++)
        if (ops[i].kind == OP_EVENT_APPEND && str_eq(ops[i].event->error, POISON))
            return error_set(err, ERR_INTERNAL, "poisoned");
    for (size_t i = 0; i < n; i++)
        ops[i].verdict = VERDICT_OK;
    return true;
}

static bool scripted_fold(struct store *s, struct store_call *c, struct error *err)
{
    struct scripted *sc = container_of(s, struct scripted, base);
    bool *ret_left = c->ret;
    (void)err;
    assert_int_equal(c->verb, VERB_FOLD);
    sc->folds++;
    sc->fold_max = c->limit;
    *ret_left = sc->lefts > 0;
    sc->lefts -= *ret_left;
    return true;
}

static void scripted_close(struct store *s)
{
    (void)s;
}

static const struct store_ops scripted_ops = {
    .name = "scripted", .write = scripted_write, .call = scripted_fold, .close = scripted_close};

struct fixture {
    struct loop *loop;
    struct lanes *lanes;
    struct scripted store;
    unsigned assigned, committed, rolled_back;
    unsigned done; /* callbacks so far */
    sem_t held;    /* posted when the write lane is held up */
    sem_t release; /* lets it go */
};

struct job {
    struct write_job write;
    struct fixture *f;
    struct event_row events[4];
    struct store_op ops[4];
    unsigned prepared, done, order;
};

static bool on_assign(void *arg, struct store *store, struct store_op *ops, size_t n,
                      struct error *err)
{
    struct fixture *f = arg;
    (void)store, (void)ops, (void)n, (void)err;
    f->assigned++;
    return true;
}

static void on_commit(void *arg)
{
    ((struct fixture *)arg)->committed++;
}

static void on_rollback(void *arg)
{
    ((struct fixture *)arg)->rolled_back++;
}

static void open_lanes(struct fixture *f, struct lanes_config config)
{
    *f = (struct fixture){.loop = loop_new()};
    f->store.base.ops = &scripted_ops;
    sem_init(&f->store.probed, 0, 0);
    sem_init(&f->held, 0, 0);
    sem_init(&f->release, 0, 0);
    config.write = config.lookup = config.query = &f->store.base;
    config.hook = (struct write_hook){f, on_assign, on_commit, on_rollback};
    f->lanes = lanes_new(f->loop, &config);
}

static void close_lanes(struct fixture *f)
{
    lanes_free(f->lanes);
    loop_free(f->loop);
    sem_destroy(&f->store.probed);
    sem_destroy(&f->held);
    sem_destroy(&f->release);
}

static void on_prepare(struct write_job *write)
{
    container_of(write, struct job, write)->prepared++;
}

static void on_done(struct write_job *write)
{
    struct job *job = container_of(write, struct job, write);
    job->done++;
    job->order = job->f->done++;
}

static void init_job(struct fixture *f, struct job *job, size_t n)
{
    *job = (struct job){.f = f};
    for (size_t i = 0; i < n; i++) {
        job->events[i] = (struct event_row){.id = 1, .tenant = STR("t")};
        job->ops[i] = (struct store_op){OP_EVENT_APPEND, NULL, {.event = &job->events[i]}};
    }
    job->write =
        (struct write_job){.ops = job->ops, .n = n, .prepare = on_prepare, .done = on_done};
}

static void run_until(struct fixture *f, unsigned done)
{
    while (f->done < done)
        loop_turn(f->loop);
}

static void hold_up(struct write_job *write)
{
    struct job *job = container_of(write, struct job, write);
    sem_post(&job->f->held);
    sem_wait(&job->f->release);
}

/* Puts the write lane to rest inside `job` until f->release is posted. */
static void hold_lane(struct fixture *f, struct job *job)
{
    init_job(f, job, 1);
    job->write.prepare = hold_up;
    assert_true(lane_write(f->lanes, &job->write));
    sem_wait(&f->held);
}

TEST(test_lane_write__jobs_that_wait_together_are_committed_together)
{
    struct fixture f;
    struct job holder, jobs[10];
    open_lanes(&f, (struct lanes_config){0});
    hold_lane(&f, &holder);
    for (int i = 0; i < 10; i++) {
        init_job(&f, &jobs[i], 2);
        assert_true(lane_write(f.lanes, &jobs[i].write));
    }
    sem_post(&f.release);
    run_until(&f, 11);
    assert_int_equal(f.store.writes, 2);
    assert_int_equal(f.store.sizes[1], 20);
    for (unsigned i = 0; i < 10; i++) {
        assert_true(jobs[i].write.ok);
        assert_int_equal(jobs[i].prepared, 1);
        assert_int_equal(jobs[i].done, 1);
        assert_int_equal(jobs[i].order, i + 1);
        assert_int_equal(jobs[i].ops[1].verdict, VERDICT_OK);
    }
    struct lane_stats stats;
    lanes_set_in_flight(f.lanes, 3);
    lanes_stats(f.lanes, &stats);
    assert_int_equal(stats.in_flight, 3);
    assert_int_equal(stats.batches, 2);
    assert_int_equal(stats.ops, 21);
    assert_int_equal(stats.write_queue, 0);
    assert_int_equal(f.assigned, 2);
    assert_int_equal(f.committed, 2);
    close_lanes(&f);
}

TEST(test_lane_write__a_job_is_never_split_over_two_batches)
{
    struct fixture f;
    struct job holder, jobs[4];
    open_lanes(&f, (struct lanes_config){.max_batch = 4});
    hold_lane(&f, &holder);
    for (int i = 0; i < 4; i++) {
        init_job(&f, &jobs[i], i == 3 ? 1 : 3);
        assert_true(lane_write(f.lanes, &jobs[i].write));
    }
    sem_post(&f.release);
    run_until(&f, 5);
    assert_int_equal(f.store.writes, 4);
    assert_int_equal(f.store.sizes[1], 3);
    assert_int_equal(f.store.sizes[2], 3);
    assert_int_equal(f.store.sizes[3], 4);
    close_lanes(&f);
}

TEST(test_lane_write__a_bad_job_fails_alone)
{
    struct fixture f;
    struct job holder, jobs[8];
    open_lanes(&f, (struct lanes_config){0});
    hold_lane(&f, &holder);
    for (int i = 0; i < 8; i++) {
        init_job(&f, &jobs[i], 2);
        if (i == 5)
            jobs[i].events[1].error = POISON;
        assert_true(lane_write(f.lanes, &jobs[i].write));
    }
    sem_post(&f.release);
    run_until(&f, 9);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(jobs[i].write.ok, i != 5);
        assert_int_equal(jobs[i].ops[0].verdict, i == 5 ? VERDICT_FAILED : VERDICT_OK);
        assert_int_equal(jobs[i].prepared, 1);
        assert_int_equal(jobs[i].done, 1);
    }
    assert_int_equal(jobs[5].write.err.code, ERR_INTERNAL);
    assert_string_equal(jobs[5].write.err.text, "poisoned");
    assert_int_equal(f.store.writes, 1 + 7); /* 8, 4, 4, 2, 1, 1, 2 */
    assert_int_equal(f.assigned, f.committed + f.rolled_back);
    assert_int_equal(f.rolled_back, 4);
    assert_true(lanes_healthy(f.lanes));
    close_lanes(&f);
}

TEST(test_lane_write__a_store_that_is_down_fails_the_batch_without_replay)
{
    struct fixture f;
    struct job holder, jobs[3];
    open_lanes(&f, (struct lanes_config){0});
    hold_lane(&f, &holder);
    for (int i = 0; i < 3; i++) {
        init_job(&f, &jobs[i], 1);
        assert_true(lane_write(f.lanes, &jobs[i].write));
    }
    f.store.downs = 2; /* the holder's batch and the one behind it */
    sem_post(&f.release);
    run_until(&f, 4);
    assert_int_equal(f.store.writes, 2);
    assert_int_equal(jobs[2].write.err.code, ERR_UNAVAILABLE);
    assert_false(jobs[0].write.ok);
    assert_false(lanes_healthy(f.lanes));
    init_job(&f, &jobs[0], 1);
    assert_true(lane_write(f.lanes, &jobs[0].write));
    run_until(&f, 5);
    assert_true(jobs[0].write.ok);
    assert_true(lanes_healthy(f.lanes));
    close_lanes(&f);
}

TEST(test_lanes_healthy__recovers_by_a_probe_without_any_job)
{
    struct fixture f;
    struct job job;
    open_lanes(&f, (struct lanes_config){0});
    f.store.downs = 1;
    init_job(&f, &job, 1);
    assert_true(lane_write(f.lanes, &job.write));
    run_until(&f, 1);
    assert_false(lanes_healthy(f.lanes));
    sem_wait(&f.store.probed);
    init_job(&f, &job, 0); /* a barrier: the lane is past the probe when it is done */
    assert_true(lane_write(f.lanes, &job.write));
    run_until(&f, 2);
    assert_true(lanes_healthy(f.lanes));
    close_lanes(&f);
}

TEST(test_lane_write__queue_takes_its_bound_and_not_one_more)
{
    struct fixture f;
    struct job holder, jobs[3];
    open_lanes(&f, (struct lanes_config){.max_queue = 3});
    hold_lane(&f, &holder);
    for (int i = 0; i < 3; i++)
        init_job(&f, &jobs[i], 1);
    assert_true(lane_write(f.lanes, &jobs[0].write));
    assert_true(lane_write(f.lanes, &jobs[1].write));
    assert_false(lane_write(f.lanes, &jobs[2].write));
    sem_post(&f.release);
    run_until(&f, 3);
    assert_true(lane_write(f.lanes, &jobs[2].write));
    run_until(&f, 4);
    close_lanes(&f);
}

TEST(test_lane_write__job_of_max_batch_is_taken_and_one_more_op_refused)
{
    struct fixture f;
    struct job jobs[2];
    open_lanes(&f, (struct lanes_config){.max_batch = 3});
    init_job(&f, &jobs[0], 3);
    init_job(&f, &jobs[1], 4);
    assert_true(lane_write(f.lanes, &jobs[0].write));
    assert_false(lane_write(f.lanes, &jobs[1].write));
    run_until(&f, 1);
    assert_true(jobs[0].write.ok);
    close_lanes(&f);
}

static void on_done_hand_in(struct write_job *write)
{
    struct job *job = container_of(write, struct job, write);
    on_done(write);
    assert_false(lane_write(job->f->lanes, write));
}

TEST(test_lanes_free__finishes_what_is_queued_and_refuses_what_comes)
{
    struct fixture f;
    struct job holder, jobs[100];
    open_lanes(&f, (struct lanes_config){.max_batch = 7});
    hold_lane(&f, &holder);
    for (int i = 0; i < 100; i++) {
        init_job(&f, &jobs[i], 1);
        jobs[i].write.done = on_done_hand_in;
        assert_true(lane_write(f.lanes, &jobs[i].write));
    }
    sem_post(&f.release);
    close_lanes(&f);
    assert_int_equal(f.done, 101);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(jobs[i].write.ok);
        assert_int_equal(jobs[i].order, i + 1);
    }
}

static void tell_held(struct write_job *write)
{
    sem_post(&container_of(write, struct job, write)->f->held);
}

static bool held_within_ms(struct fixture *f, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    return sem_timedwait(&f->held, &until) == 0;
}

/* The wait for the batch to fill is far longer than the test may take.  It must end because the
 * batch filled. */
TEST(test_lane_write__waits_for_the_batch_to_fill_while_many_calls_are_in_flight)
{
    struct fixture f;
    struct job jobs[2];
    open_lanes(&f, (struct lanes_config){.batch_fill_us = INT64_C(600) * 1000000});
    lanes_set_in_flight(f.lanes, 4);
    init_job(&f, &jobs[0], 1);
    init_job(&f, &jobs[1], 1);
    jobs[0].write.prepare = tell_held;
    assert_true(lane_write(f.lanes, &jobs[0].write));
    assert_false(held_within_ms(&f, 30));
    assert_true(lane_write(f.lanes, &jobs[1].write));
    run_until(&f, 2);
    assert_int_equal(f.store.writes, 1);
    assert_int_equal(f.store.sizes[0], 2);
    close_lanes(&f);
}

TEST(test_lane_write__waits_for_nearly_all_of_many_calls)
{
    struct fixture f;
    struct job jobs[14];
    open_lanes(&f, (struct lanes_config){.batch_fill_us = INT64_C(600) * 1000000});
    lanes_set_in_flight(f.lanes, 16);
    for (size_t i = 0; i < countof(jobs); i++) {
        init_job(&f, &jobs[i], 1);
        jobs[i].write.prepare = tell_held;
    }
    for (size_t i = 0; i + 1 < countof(jobs); i++)
        assert_true(lane_write(f.lanes, &jobs[i].write));
    assert_false(held_within_ms(&f, 30));
    assert_true(lane_write(f.lanes, &jobs[countof(jobs) - 1].write));
    run_until(&f, countof(jobs));
    assert_int_equal(f.store.writes, 1);
    close_lanes(&f);
}

TEST(test_lane_write__waits_for_those_who_wrote_lately)
{
    struct fixture f;
    struct job first[32], again[28];
    open_lanes(&f, (struct lanes_config){.batch_fill_us = INT64_C(600) * 1000000,
                                         .return_us = INT64_C(600) * 1000000});
    lanes_set_in_flight(f.lanes, 36); /* so that the first 32 are one batch */
    for (size_t i = 0; i < countof(first); i++) {
        init_job(&f, &first[i], 1);
        assert_true(lane_write(f.lanes, &first[i].write));
    }
    run_until(&f, countof(first));
    lanes_set_in_flight(f.lanes, 0);
    for (size_t i = 0; i < countof(again); i++) {
        init_job(&f, &again[i], 1);
        again[i].write.prepare = tell_held;
    }
    for (size_t i = 0; i + 1 < countof(again); i++)
        assert_true(lane_write(f.lanes, &again[i].write));
    assert_false(held_within_ms(&f, 30));
    assert_true(lane_write(f.lanes, &again[countof(again) - 1].write));
    run_until(&f, countof(first) + countof(again));
    assert_int_equal(f.store.writes, 2);
    close_lanes(&f);
}

TEST(test_lane_write__commits_at_once_when_no_other_job_is_to_be_expected)
{
    struct fixture f;
    struct job job;
    open_lanes(&f, (struct lanes_config){.batch_fill_us = INT64_C(600) * 1000000});
    lanes_set_in_flight(f.lanes, 2);
    init_job(&f, &job, 1);
    assert_true(lane_write(f.lanes, &job.write));
    run_until(&f, 1);
    assert_true(job.write.ok);
    close_lanes(&f);
}

TEST(test_lane_write__the_wait_for_a_fuller_batch_ends_when_the_lanes_do)
{
    struct fixture f;
    struct job job;
    open_lanes(&f, (struct lanes_config){.batch_fill_us = INT64_C(600) * 1000000});
    lanes_set_in_flight(f.lanes, 100);
    init_job(&f, &job, 1);
    assert_true(lane_write(f.lanes, &job.write));
    close_lanes(&f);
    assert_true(job.write.ok);
}

struct reading {
    struct read_job read;
    struct fixture *f;
    struct store *store;
    pthread_t thread;
    int64_t events;
};

static bool on_run(struct read_job *read, struct store *store)
{
    struct reading *r = container_of(read, struct reading, read);
    struct store_counts c = {0};
    r->store = store;
    r->thread = pthread_self();
    if (store->ops != &scripted_ops && !store_counts(store, &c, &read->err))
        return false;
    r->events = c.events;
    return true;
}

static void on_read(struct read_job *read)
{
    container_of(read, struct reading, read)->f->done++;
}

TEST(test_lanes__each_reads_on_its_own_thread_with_its_own_store)
{
    struct fixture f = {.loop = loop_new()};
    struct store *stores[3];
    struct reading r[3];
    struct error err;
    for (int i = 0; i < 3; i++) {
        assert_true(store_open_memory(&stores[i], &err));
        r[i] = (struct reading){.read = {.run = on_run, .done = on_read}, .f = &f};
    }
    struct lanes_config config = {.write = stores[0], .lookup = stores[1], .query = stores[2]};
    f.lanes = lanes_new(f.loop, &config);
    assert_true(lane_maintain(f.lanes, &r[0].read));
    assert_true(lane_lookup(f.lanes, &r[1].read));
    assert_true(lane_query(f.lanes, &r[2].read));
    run_until(&f, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(r[i].read.ok);
        assert_ptr_equal(r[i].store, stores[i]);
        assert_false(pthread_equal(r[i].thread, pthread_self()));
        assert_false(pthread_equal(r[i].thread, r[(i + 1) % 3].thread));
    }
    lanes_free(f.lanes);
    loop_free(f.loop);
}

TEST(test_lanes__without_a_writer_read_and_refuse_to_write)
{
    struct fixture f = {.loop = loop_new()};
    struct reading r[3];
    struct job job;
    struct error err;
    struct lanes_config config = {0};
    assert_true(store_open_memory(&config.lookup, &err));
    assert_true(store_open_memory(&config.query, &err));
    f.lanes = lanes_new(f.loop, &config);
    for (int i = 0; i < 3; i++)
        r[i] = (struct reading){.read = {.run = on_run, .done = on_read}, .f = &f};
    init_job(&f, &job, 1);
    assert_false(lane_write(f.lanes, &job.write));
    assert_false(lane_maintain(f.lanes, &r[0].read));
    assert_true(lane_lookup(f.lanes, &r[1].read));
    assert_true(lane_query(f.lanes, &r[2].read));
    run_until(&f, 2);
    assert_true(r[1].read.ok && r[2].read.ok);
    lanes_free(f.lanes);
    loop_free(f.loop);
}

struct slow {
    struct reading reading;
    sem_t held, release;
};

static bool on_run_slow(struct read_job *read, struct store *store)
{
    struct slow *s = container_of(read, struct slow, reading.read);
    (void)store;
    sem_post(&s->held);
    sem_wait(&s->release);
    return true;
}

TEST(test_lane_query__a_slow_list_delays_neither_lookup_nor_write_and_its_queue_is_bounded)
{
    struct fixture f;
    struct slow slow = {.reading = {.read = {.run = on_run_slow, .done = on_read}, .f = &f}};
    struct reading lists[2], lookup;
    struct job job;
    open_lanes(&f, (struct lanes_config){.max_queue = 2});
    sem_init(&slow.held, 0, 0);
    sem_init(&slow.release, 0, 0);
    lists[0] = lists[1] = lookup =
        (struct reading){.read = {.run = on_run, .done = on_read}, .f = &f};
    assert_true(lane_query(f.lanes, &slow.reading.read));
    sem_wait(&slow.held);
    assert_true(lane_query(f.lanes, &lists[0].read));
    assert_false(lane_query(f.lanes, &lists[1].read));
    assert_true(lane_lookup(f.lanes, &lookup.read));
    init_job(&f, &job, 1);
    assert_true(lane_write(f.lanes, &job.write));
    run_until(&f, 2);
    assert_true(lookup.read.ok && job.write.ok && !lists[0].read.ok);
    sem_post(&slow.release);
    run_until(&f, 4);
    assert_true(lists[0].read.ok);
    close_lanes(&f);
    sem_destroy(&slow.held);
    sem_destroy(&slow.release);
}

static void write_now(struct fixture *f, size_t n)
{
    struct job job;
    init_job(f, &job, n);
    assert_true(lane_write(f->lanes, &job.write));
    run_until(f, f->done + 1);
    assert_true(job.write.ok);
}

/* Long before they are due by the clock, and whoever waits for the fold waits for all of it. */
TEST(test_lane_write__folds_before_there_are_more_events_than_may_be)
{
    struct fixture f;
    open_lanes(&f, (struct lanes_config){.max_batch = 4, .fold_most = 8});
    write_now(&f, 0);
    unsigned before = f.store.folds;
    write_now(&f, 4);
    write_now(&f, 1); /* with another four they would be nine */
    write_now(&f, 1);
    assert_true(f.store.folds > before);
    assert_int_equal(f.store.fold_max, 8);
    write_now(&f, 0);
    before = f.store.folds;
    f.store.lefts = 2;
    write_now(&f, 0);
    assert_true(f.store.folds >= before + 3);
    assert_int_equal(f.store.lefts, 0);
    close_lanes(&f);
}

TEST(test_lane_write__a_job_without_ops_is_done_when_all_before_it_is_folded)
{
    struct fixture f = {.loop = loop_new()};
    struct store *memory = NULL;
    struct error err;
    struct job append, barrier;
    struct reading r = {.read = {.run = on_run, .done = on_read}, .f = &f};
    struct store_counts counts;
    assert_true(store_open_memory(&memory, &err));
    struct lanes_config config = {.write = memory, .lookup = memory, .query = memory};
    f.lanes = lanes_new(f.loop, &config);
    init_job(&f, &append, 1);
    append.events[0].kind = EVENT_INTENT;
    append.events[0].exec = append.events[0].id = (INT64_C(1) << EVENT_WRITER_SHIFT) + 1;
    init_job(&f, &barrier, 0);
    assert_true(lane_write(f.lanes, &append.write));
    assert_true(lane_write(f.lanes, &barrier.write));
    run_until(&f, 2);
    assert_true(append.write.ok && barrier.write.ok);
    assert_true(store_counts(memory, &counts, &err));
    assert_int_equal(counts.executions_open, 1);
    assert_true(lane_query(f.lanes, &r.read));
    run_until(&f, 3);
    assert_int_equal(r.events, 1);
    lanes_free(f.lanes);
    loop_free(f.loop);
}

static size_t together[2];

static void on_run_many(struct read_job **jobs, size_t n, struct store *store unused_arg)
{
    together[together[0] != 0] = n;
    for (size_t i = 0; i < n; i++)
        jobs[i]->ok = true;
}

TEST(test_lane_lookup__those_that_came_together_are_run_together_up_to_a_number)
{
    struct fixture f;
    struct slow slow = {.reading = {.read = {.run = on_run_slow, .done = on_read}, .f = &f}};
    struct reading many[READS_MAX + 2];
    open_lanes(&f, (struct lanes_config){0});
    sem_init(&slow.held, 0, 0);
    sem_init(&slow.release, 0, 0);
    together[0] = together[1] = 0;
    assert_true(lane_lookup(f.lanes, &slow.reading.read));
    sem_wait(&slow.held);
    for (size_t i = 0; i < countof(many); i++) {
        many[i] = (struct reading){
            .read = {.run = on_run, .run_many = on_run_many, .done = on_read}, .f = &f};
        assert_true(lane_lookup(f.lanes, &many[i].read));
    }
    sem_post(&slow.release);
    run_until(&f, 1 + countof(many));
    assert_int_equal(together[0], READS_MAX);
    assert_int_equal(together[1], 2);
    close_lanes(&f);
    sem_destroy(&slow.held);
    sem_destroy(&slow.release);
}

/* Hands in one job and waits for it. */
static void write_one(struct fixture *f, struct job *job, bool grows)
{
    init_job(f, job, 1);
    job->write.grows = grows;
    assert_true(lane_write(f->lanes, &job->write));
    run_until(f, f->done + 1);
}

TEST(test_lanes_set_reserve__refuses_jobs_that_grow_until_there_is_space)
{
    struct fixture f;
    struct job job;
    struct error why;
    open_lanes(&f, (struct lanes_config){.room_dir = STR("/tmp")});
    lanes_set_reserve(f.lanes, INT64_MAX / 8);
    do
        write_one(&f, &job, true);
    while (job.write.ok);
    assert_int_equal(job.write.err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(job.write.err.text, "limits.disk_reserve"));
    assert_int_equal(job.ops[0].verdict, VERDICT_FAILED);
    assert_int_equal(job.prepared, 0);
    assert_true(lanes_lack_room(f.lanes, &why));
    assert_string_equal(why.text, job.write.err.text);
    assert_true(lanes_healthy(f.lanes));
    write_one(&f, &job, false);
    assert_true(job.write.ok);
    lanes_set_reserve(f.lanes, 0);
    while (lanes_lack_room(f.lanes, &why)) /* an idle lane looks by itself */
        usleep(1000);
    write_one(&f, &job, true);
    assert_true(job.write.ok);
    close_lanes(&f);
}

TEST(test_lanes_set_reserve__refuses_nothing_if_the_directory_cannot_be_asked)
{
    struct fixture f;
    struct job job;
    open_lanes(&f, (struct lanes_config){.room_dir = STR("/nonexistent/holdfast")});
    lanes_set_reserve(f.lanes, INT64_MAX / 8);
    for (int i = 0; i < 3; i++) {
        write_one(&f, &job, true);
        assert_true(job.write.ok);
    }
    close_lanes(&f);
}
