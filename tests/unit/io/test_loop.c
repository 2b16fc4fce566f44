/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: order of posted and deferred tasks, descriptors, timers. */
#include "test.h"
#include "trail.h"

#include "io/loop.h"
#include "io/timers.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct letter {
    struct loop_task task;
    struct loop *loop;
    char c;
    struct letter *defers;
};

static void on_letter(struct loop_task *task)
{
    struct letter *l = container_of(task, struct letter, task);
    mark(l->c);
    if (l->defers)
        loop_defer(l->loop, &l->defers->task);
}

TEST(test_loop_post__runs_in_posting_order_and_defers_come_after)
{
    struct loop *loop = loop_new();
    struct letter z = {{NULL, on_letter}, loop, 'z', NULL};
    struct letter a = {{NULL, on_letter}, loop, 'a', &z};
    struct letter b = {{NULL, on_letter}, loop, 'b', NULL};
    struct letter c = {{NULL, on_letter}, loop, 'c', NULL};

    trail[0] = '\0';
    loop_post(loop, &a.task);
    loop_post(loop, &b.task);
    loop_post(loop, &c.task);
    loop_turn(loop);
    assert_string_equal(trail, "abcz");
    loop_free(loop);
}

TEST(test_loop_free__runs_what_is_still_posted)
{
    struct loop *loop = loop_new();
    struct letter a = {{NULL, on_letter}, loop, 'a', NULL};

    trail[0] = '\0';
    loop_post(loop, &a.task);
    loop_free(loop);
    assert_string_equal(trail, "a");
}

#define POSTS 20000
struct counter {
    struct loop_task task;
    unsigned *count;
    struct loop *loop;
};
static struct counter posts[2][POSTS];
static unsigned posts_seen;

static void on_count(struct loop_task *task)
{
    struct counter *c = container_of(task, struct counter, task);
    if (++*c->count == 2 * POSTS)
        loop_stop(c->loop);
}

static void *post_many(void *arg)
{
    struct counter *mine = arg;
    for (int i = 0; i < POSTS; i++)
        loop_post(mine[i].loop, &mine[i].task);
    return NULL;
}

TEST(test_loop_post__loses_nothing_from_two_threads)
{
    struct loop *loop = loop_new();
    pthread_t threads[2];

    posts_seen = 0;
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < POSTS; i++)
            posts[t][i] = (struct counter){{NULL, on_count}, &posts_seen, loop};
        assert_int_equal(pthread_create(&threads[t], NULL, post_many, posts[t]), 0);
    }
    loop_run(loop);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    assert_int_equal(posts_seen, 2 * POSTS);
    loop_free(loop);
}

struct pipe_watch {
    struct loop *loop;
    struct loop_fd *fd;
    int events;
    unsigned calls;
};

/* A posted task makes sure that the turn ends though nothing else happens. */
static void on_nothing(struct loop_task *task unused_arg)
{
}
static void loop_turn_without_waiting(struct loop *loop)
{
    struct loop_task nothing = {.fn = on_nothing};
    loop_post(loop, &nothing);
    loop_turn(loop);
}

static void on_pipe(void *arg, int events)
{
    struct pipe_watch *p = arg;
    p->events = events;
    p->calls++;
}

TEST(test_loop_fd__hang_up_shows_as_readable_and_pausing_silences_it)
{
    struct loop *loop = loop_new();
    struct pipe_watch p = {.loop = loop};
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    p.fd = loop_fd_new(loop, fds[0], on_pipe, &p);
    loop_fd_want(p.fd, LOOP_READ);
    close(fds[1]);
    loop_turn(loop);
    assert_int_equal(p.events, LOOP_READ);
    loop_fd_want(p.fd, 0);
    p.calls = 0;
    struct letter a = {{NULL, on_letter}, loop, 'a', NULL};
    trail[0] = '\0';
    loop_post(loop, &a.task);
    loop_turn(loop);
    assert_string_equal(trail, "a");
    assert_int_equal(p.calls, 0);
    loop_fd_free(p.fd);
    close(fds[0]);
    loop_free(loop);
}

TEST(test_loop_fd__broken_pipe_shows_as_readable)
{
    struct loop *loop = loop_new();
    struct pipe_watch p = {.loop = loop};
    int fds[2];

    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    p.fd = loop_fd_new(loop, fds[1], on_pipe, &p);
    loop_fd_want(p.fd, LOOP_READ);
    close(fds[0]);
    loop_turn(loop);
    assert_true(p.events & LOOP_READ);
    loop_fd_free(p.fd);
    close(fds[1]);
    loop_free(loop);
}

TEST(test_loop_fd_new__refuses_what_cannot_be_polled)
{
    struct loop *loop = loop_new();
    int fd = open("/proc/self/exe", O_RDONLY);

    assert_true(fd >= 0);
    assert_null(loop_fd_new(loop, fd, on_pipe, NULL));
    close(fd);
    loop_free(loop);
}

static void stop_it(void *arg)
{
    mark('t');
    loop_stop(arg);
}

TEST(test_loop_timer__fires_and_is_silent_after_stop)
{
    struct loop *loop = loop_new();
    struct loop_timer *stopped = loop_timer_new(loop, stop_it, loop);
    struct loop_timer *t = loop_timer_new(loop, stop_it, loop);

    trail[0] = '\0';
    loop_timer_start(stopped, 1, 0);
    loop_timer_stop(stopped);
    loop_timer_start(t, 5, 0);
    loop_run(loop);
    assert_string_equal(trail, "t");
    loop_timer_free(t);
    loop_timer_free(stopped);
    loop_timer_free(NULL);
    loop_free(loop);
}

static void on_job(void *arg)
{
    *(pthread_t *)arg = pthread_self();
}

static struct loop *job_loop;
static void on_job_done(void *arg)
{
    (void)arg;
    mark('d');
    loop_stop(job_loop);
}

TEST(test_loop_work__runs_elsewhere_and_reports_here)
{
    pthread_t where = pthread_self();

    trail[0] = '\0';
    job_loop = loop_new();
    loop_work(job_loop, on_job, on_job_done, &where);
    loop_run(job_loop);
    assert_string_equal(trail, "d");
    assert_false(pthread_equal(where, pthread_self()));
    loop_free(job_loop);
}

static void on_signal(void *arg, int signum)
{
    assert_int_equal(signum, SIGUSR1);
    mark('s');
    loop_stop(arg);
}

TEST(test_loop_on_signal__is_called_from_the_loop)
{
    struct loop *loop = loop_new();

    trail[0] = '\0';
    loop_on_signal(loop, SIGUSR1, on_signal, loop);
    raise(SIGUSR1);
    assert_string_equal(trail, "");
    loop_run(loop);
    assert_string_equal(trail, "s");
    loop_free(loop);
}

static int open_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

TEST(test_loop_free__a_stop_that_nobody_ran_into_does_no_harm)
{
    struct loop *loop = loop_new();

    loop_free(loop);
    int before = open_fds();
    loop = loop_new();
    struct letter a = {{NULL, on_letter}, loop, 'a', NULL};
    trail[0] = '\0';
    loop_on_signal(loop, SIGUSR1, on_signal, loop);
    loop_post(loop, &a.task);
    loop_stop(loop);
    assert_true(open_fds() > before);
    loop_free(loop);
    assert_string_equal(trail, "a");
    assert_int_equal(open_fds(), before); /* every handle was closed */
}

static void mark_timer(void *arg)
{
    mark(*(char *)arg);
}

static struct loop_timer *timer_of(struct loop *loop, char *letter)
{
    return loop_timer_new(loop, mark_timer, letter);
}

static void until_marks(struct loop *loop, size_t n)
{
    while (strlen(trail) < n)
        loop_turn(loop);
}

TEST(test_loop_timer__timers_run_in_the_order_in_which_they_are_due)
{
    struct loop *loop = loop_new();
    char names[] = "abcdefgh";
    const int after[] = {17, 1, 13, 5, 5, 9, 21, 0}; /* of two at 5, the first started is first */
    struct loop_timer *t[8];

    trail[0] = '\0';
    for (int i = 0; i < 8; i++) {
        t[i] = timer_of(loop, &names[i]);
        loop_timer_start(t[i], after[i], 0);
    }
    loop_timer_stop(t[5]);
    until_marks(loop, 7);
    assert_string_equal(trail, "hbdecag");
    for (int i = 0; i < 8; i++)
        loop_timer_free(t[i]);
    loop_free(loop);
}

/* The heap against a plain list: starts, restarts and stops in a fixed random order. */
TEST(test_timers__a_thousand_random_starts_and_stops_leave_the_right_one_on_top)
{
    struct timers all = {0};
    struct loop_timer t[64] = {0};
    unsigned seed = 7;

    for (int i = 0; i < 64; i++)
        t[i].home = &all;
    for (int step = 0; step < 20000; step++) {
        struct loop_timer *one = &t[rand_r(&seed) % 64], *first = NULL;
        if (rand_r(&seed) % 3)
            timer_start(one, rand_r(&seed) % 1000, 0);
        else
            timer_stop(one);
        for (int i = 0; i < 64; i++)
            if (t[i].place && (!first || t[i].due_us < first->due_us ||
                               (t[i].due_us == first->due_us && t[i].started < first->started)))
                first = &t[i];
        assert_ptr_equal(all.n ? all.heap[1] : NULL, first);
    }
    timers_release(&all);
}

TEST(test_timers_wait__rounds_up_and_never_waits_for_a_due_one)
{
    struct timers all = {0};
    struct loop_timer t = {.home = &all};

    assert_int_equal(timers_wait_ms(&all, 0), -1);
    timer_start(&t, 1000, 0);
    assert_int_equal(timers_wait_ms(&all, 0), 1);
    assert_int_equal(timers_wait_ms(&all, 999), 1);
    assert_int_equal(timers_wait_ms(&all, 1000), 0);
    assert_int_equal(timers_wait_ms(&all, 5000), 0);
    assert_int_equal(timers_wait_ms(&all, -1), 2);
    assert_null(timers_take_due(&all, 999));
    assert_ptr_equal(timers_take_due(&all, 1000), &t);
    assert_null(timers_take_due(&all, 5000));
    timers_release(&all);
}

struct self_free {
    struct loop_timer *timer;
    unsigned calls;
};

static void on_self_free(void *arg)
{
    struct self_free *s = arg;
    if (++s->calls == 3) {
        loop_timer_free(s->timer);
        s->timer = NULL;
    }
}

TEST(test_loop_timer__repeats_and_may_free_itself)
{
    struct loop *loop = loop_new();
    struct self_free s = {0};

    s.timer = loop_timer_new(loop, on_self_free, &s);
    loop_timer_start(s.timer, 0, 1);
    while (s.timer)
        loop_turn(loop);
    assert_int_equal(s.calls, 3);
    loop_free(loop);
}

struct pair {
    struct loop_fd *mine, *other;
    int other_fd;
    unsigned *calls;
};

static void on_pair(void *arg, int events unused_arg)
{
    struct pair *p = arg;
    ++*p->calls;
    loop_fd_free(p->other);
    loop_fd_free(p->mine);
    close(p->other_fd);
}

/* Both descriptors are ready in the same turn; the first callback frees both watches and closes the
 * other descriptor, whose event must not be delivered any more. */
TEST(test_loop_fd_free__silences_an_event_of_the_same_turn)
{
    struct loop *loop = loop_new();
    struct pair p[2];
    unsigned calls = 0;
    int fds[2][2];

    for (int i = 0; i < 2; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
        p[i].mine = loop_fd_new(loop, fds[i][0], on_pair, &p[i]);
        loop_fd_want(p[i].mine, LOOP_READ);
        assert_int_equal(write(fds[i][1], "x", 1), 1);
    }
    for (int i = 0; i < 2; i++) {
        p[i].other = p[!i].mine;
        p[i].other_fd = fds[!i][0];
        p[i].calls = &calls;
    }
    loop_turn(loop);
    loop_turn_without_waiting(loop);
    assert_int_equal(calls, 1);
    for (int i = 0; i < 2; i++) {
        close(fds[i][1]);
        close(fds[i][0]); /* one of them is closed already */
    }
    loop_free(loop);
}

static void on_named(void *arg, int events unused_arg)
{
    mark(*(char *)arg);
}

/* So the connection that came first is served first. */
TEST(test_loop_fd__descriptors_that_are_ready_together_are_reported_in_order)
{
    struct loop *loop = loop_new();
    struct loop_fd *watches[5];
    char names[] = "abcde";
    int fds[5][2];

    trail[0] = '\0';
    for (int i = 0; i < 5; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
        assert_int_equal(write(fds[i][1], "x", 1), 1);
        watches[i] = loop_fd_new(loop, fds[i][0], on_named, &names[i]);
        loop_fd_edge_triggered(watches[i]);
        loop_fd_want(watches[i], LOOP_READ);
    }
    loop_turn(loop);
    assert_string_equal(trail, "abcde");
    for (int i = 0; i < 5; i++) {
        loop_fd_free(watches[i]);
        close(fds[i][0]);
        close(fds[i][1]);
    }
    loop_free(loop);
}

TEST(test_loop_fd__bytes_that_came_in_a_pause_are_reported_after_it)
{
    struct loop *loop = loop_new();
    struct pipe_watch p = {.loop = loop};
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    p.fd = loop_fd_new(loop, fds[0], on_pipe, &p);
    loop_fd_edge_triggered(p.fd);
    loop_fd_want(p.fd, LOOP_READ);
    loop_fd_want(p.fd, 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    loop_turn_without_waiting(loop);
    assert_int_equal(p.calls, 0);
    loop_fd_want(p.fd, LOOP_READ);
    loop_turn(loop);
    assert_int_equal(p.calls, 1);
    loop_turn_without_waiting(loop); /* edge-triggered: not again, although nothing was read */
    assert_int_equal(p.calls, 1);
    loop_fd_rearm(p.fd);
    loop_turn(loop);
    assert_int_equal(p.calls, 2);
    loop_fd_free(p.fd);
    close(fds[0]);
    close(fds[1]);
    loop_free(loop);
}

static void on_many_done(void *arg)
{
    if (++*(unsigned *)arg == 2000)
        loop_stop(job_loop);
}

static void on_many(void *arg unused_arg)
{
}

TEST(test_loop_work__takes_more_jobs_than_a_worker_lets_wait)
{
    unsigned done = 0;

    job_loop = loop_new();
    for (int i = 0; i < 2000; i++)
        loop_work(job_loop, on_many, on_many_done, &done);
    loop_run(job_loop);
    assert_int_equal(done, 2000);
    loop_free(job_loop);
}

static void add_one(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
}

TEST(test_loop_free__runs_and_reports_the_jobs_that_wait)
{
    struct loop *loop = loop_new();
    atomic_uint calls = 0;

    for (int i = 0; i < 500; i++)
        loop_work(loop, add_one, add_one, &calls);
    loop_free(loop);
    assert_int_equal(atomic_load(&calls), 1000);
}

TEST(test_loop_on_signal__two_signals_and_the_default_after_the_loop)
{
    struct loop *loop = loop_new();
    struct sigaction now;

    trail[0] = '\0';
    loop_on_signal(loop, SIGUSR1, on_signal, loop);
    loop_on_signal(loop, SIGUSR2, on_signal, loop);
    raise(SIGUSR1);
    raise(SIGUSR1);
    loop_run(loop);
    assert_string_equal(trail, "s"); /* two that came together are one */
    loop_free(loop);
    assert_int_equal(sigaction(SIGUSR2, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, SIG_DFL);
}
