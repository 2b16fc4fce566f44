/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: order of posted and deferred tasks, descriptors, timers, deadlines under a fake clock.
 */
#include "test.h"

#include "base/clock.h"
#include "io/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char trail[64];

static void mark(char c)
{
    size_t n = strlen(trail);
    assert_true(n + 1 < sizeof(trail));
    trail[n] = c;
    trail[n + 1] = '\0';
}

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

struct dated {
    struct deadline deadline;
    struct loop *loop;
    char c;
    struct dated *clears;
};

static void on_due(struct deadline *d)
{
    struct dated *x = container_of(d, struct dated, deadline);
    assert_false(deadline_is_set(d));
    mark(x->c);
    if (x->clears)
        deadline_clear(&x->clears->deadline);
    loop_stop(x->loop);
}

TEST(test_deadline__fires_when_due_and_not_before)
{
    struct loop *loop = loop_new();
    struct deadline_class minute, second;
    struct dated a = {.loop = loop, .c = 'a'}, b = {.loop = loop, .c = 'b'},
                 c = {.loop = loop, .c = 'c'};

    trail[0] = '\0';
    clock_set_fake(1000, 1000);
    deadline_class_init(&minute, loop, 60000);
    deadline_class_init(&second, loop, 1000);
    deadline_init(&a.deadline, on_due);
    deadline_init(&b.deadline, on_due);
    deadline_init(&c.deadline, on_due);
    deadline_set(&minute, &a.deadline);
    deadline_set(&second, &b.deadline);
    clock_advance_fake(999);
    deadline_set(&second, &c.deadline);
    loop_turn(loop); /* one sweep */
    assert_string_equal(trail, "");
    clock_advance_fake(1);
    loop_run(loop);
    assert_string_equal(trail, "b");
    assert_true(deadline_is_set(&c.deadline));
    deadline_clear(&c.deadline);
    clock_advance_fake(59000);
    loop_run(loop);
    assert_string_equal(trail, "ba");
    clock_set_real();
    deadline_class_release(&minute);
    deadline_class_release(&second);
    loop_free(loop);
}

TEST(test_deadline__one_may_clear_another_due_in_the_same_sweep)
{
    struct loop *loop = loop_new();
    struct deadline_class second;
    struct dated b = {.loop = loop, .c = 'b'};
    struct dated a = {.loop = loop, .c = 'a', .clears = &b};

    trail[0] = '\0';
    clock_set_fake(1000, 1000);
    deadline_class_init(&second, loop, 1000);
    deadline_init(&a.deadline, on_due);
    deadline_init(&b.deadline, on_due);
    deadline_set(&second, &a.deadline);
    deadline_set(&second, &b.deadline);
    clock_advance_fake(1000);
    loop_run(loop);
    assert_string_equal(trail, "a");
    clock_set_real();
    deadline_class_release(&second);
    loop_free(loop);
}

#define MANY 1000

struct crowd {
    struct loop *loop;
    struct deadline_class minute;
    struct deadline each[MANY];
    unsigned order[MANY], n_due; /* which fell due, in turn */
};

static struct crowd *crowd; /* of the test that runs */

static void on_one_due(struct deadline *d)
{
    crowd->order[crowd->n_due++] = (unsigned)(d - crowd->each);
    loop_stop(crowd->loop);
}

static void crowd_begin(struct crowd *c)
{
    crowd = c;
    c->n_due = 0;
    c->loop = loop_new();
    clock_set_fake(1000, 1000);
    deadline_class_init(&c->minute, c->loop, 60000);
    for (unsigned i = 0; i < MANY; i++)
        deadline_init(&c->each[i], on_one_due);
}

static void crowd_end(struct crowd *c)
{
    clock_set_real();
    deadline_class_release(&c->minute);
    loop_free(c->loop);
}

/* Every third is set again, every third is cleared, in an order that leaves gaps everywhere. */
TEST(test_deadline__many_fall_due_in_the_order_in_which_they_were_set_last)
{
    struct crowd c;
    unsigned n = 0;

    crowd_begin(&c);
    for (unsigned i = 0; i < MANY; i++)
        deadline_set(&c.minute, &c.each[i]);
    for (unsigned i = MANY; i-- > 0;)
        if (i % 3 == 1)
            deadline_clear(&c.each[i]);
    clock_advance_fake(1);
    for (unsigned i = 0; i < MANY; i += 3)
        deadline_set(&c.minute, &c.each[i]);
    clock_advance_fake(59999);
    loop_run(c.loop);
    for (unsigned i = 2; i < MANY; i += 3)
        assert_int_equal(c.order[n++], i);
    assert_int_equal(c.n_due, n);
    clock_advance_fake(1);
    loop_run(c.loop);
    for (unsigned i = 0; i < MANY; i += 3)
        assert_int_equal(c.order[n++], i);
    assert_int_equal(c.n_due, n);
    crowd_end(&c);
}

TEST(test_deadline__that_is_set_and_cleared_for_ever_takes_no_more_memory)
{
    struct crowd c;

    crowd_begin(&c);
    deadline_set(&c.minute, &c.each[0]); /* the oldest stays, so that no gap goes by itself */
    for (unsigned i = 0; i < 100 * MANY; i++) {
        deadline_set(&c.minute, &c.each[1 + i % 3]);
        if (i % 2)
            deadline_clear(&c.each[1 + i % 3]);
    }
    assert_in_range(c.minute.cap, 1, 64);
    assert_in_range(c.minute.n_set, 1, 4);
    clock_advance_fake(60000);
    loop_run(c.loop);
    assert_int_equal(c.order[0], 0);
    assert_int_equal(c.minute.n_set, 0);
    crowd_end(&c);
}

TEST(test_deadline__memory_may_go_as_soon_as_it_is_cleared)
{
    struct crowd c;
    struct deadline *shortlived[20];

    crowd_begin(&c);
    for (unsigned i = 0; i < countof(shortlived); i++) {
        shortlived[i] = xmalloc(sizeof(struct deadline));
        deadline_init(shortlived[i], on_one_due);
        deadline_set(&c.minute, &c.each[i]);
        deadline_set(&c.minute, shortlived[i]);
    }
    for (unsigned i = countof(shortlived); i-- > 0;) {
        deadline_clear(shortlived[i]);
        free(shortlived[i]);
    }
    for (unsigned i = 20; i < MANY; i++) /* the ring is made anew on the way */
        deadline_set(&c.minute, &c.each[i]);
    clock_advance_fake(60000);
    loop_run(c.loop);
    assert_int_equal(c.n_due, MANY);
    crowd_end(&c);
}

TEST(test_deadline__those_of_a_class_that_ends_are_unset)
{
    struct crowd c;

    crowd_begin(&c);
    for (unsigned i = 0; i < MANY; i++)
        deadline_set(&c.minute, &c.each[i]);
    deadline_clear(&c.each[7]);
    deadline_clear(&c.each[0]);
    deadline_clear(&c.each[1]);
    assert_ptr_equal(deadline_first(&c.minute), &c.each[2]);
    deadline_class_release(&c.minute);
    for (unsigned i = 0; i < MANY; i++) {
        assert_false(deadline_is_set(&c.each[i]));
        deadline_clear(&c.each[i]);
    }
    assert_null(deadline_first(&c.minute));
    crowd_end(&c); /* releases once more: fine */
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

TEST(test_loop_free__a_stop_that_nobody_ran_into_does_no_harm)
{
    struct loop *loop = loop_new();

    loop_stop(loop);
    loop_free(loop);
}
