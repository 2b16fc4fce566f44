/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: order of posted and deferred tasks, descriptors, timers. */
#include "test.h"
#include "trail.h"

#include "io/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
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

    loop_on_signal(loop, SIGUSR1, on_signal, loop);
    loop_free(loop); /* libuv has what it opens once and keeps */
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
