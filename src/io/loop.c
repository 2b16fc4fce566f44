/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop.  Of libuv it uses uv_poll_t for non-blocking descriptors, timers, signals and the
 * pool.  Other threads post tasks to a lock-free list and wake the loop through one eventfd
 * (uv_async_t would do, but its receiver spins while the sender is still inside write(2)).
 *
 * A turn begins with the first callback after the poll and ends when the deferred tasks have run:
 *
 *     timers → [prepare: deferred] → poll: descriptors, posted tasks → [check: deferred] → closing
 *
 * Invariants: every callback into our code passes turn_begin(), so the time of a turn is read once;
 * deferred tasks run with no other callback on the stack; a descriptor costs no system call while
 * its wanted events do not change.
 *
 * An edge-triggered descriptor (enum edge) is registered as such from the second time it is
 * readable, so a descriptor that is read once costs nothing extra.  When its wanted events change
 * after that, libuv registers it again, level-triggered, and it stays level-triggered. */
#include "io/loop.h"

#include "base/clock.h"
#include "base/thread.h"
#include "io/deadline.h"
#include "io/edge.h"
#include "io/outbox.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

struct loop {
    uv_loop_t uv;
    uv_poll_t wake; /* on wake_fd */
    int wake_fd;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    struct list signals;
    _Atomic(struct loop_task *) posted; /* newest first */
    atomic_bool stop;
    struct loop_task *deferred, **deferred_end;
    bool single;     /* loop_turn(): do not wait once a callback has run */
    int64_t turn_us; /* 0 between turns */
    int64_t stall_us;
    struct outbox *outbox; /* NULL until first used */
    struct deadlines *deadlines;
    bool edges_known, edges_possible;
    char scratch[LOOP_SCRATCH];
};

/* NEW: registered with libuv, perhaps not yet with the kernel.  SEEN: the kernel has reported
 * it. */
enum edge { EDGE_UNWANTED, EDGE_NEW, EDGE_SEEN, EDGE_ARMED };

struct loop_fd {
    uv_poll_t poll; /* first: the handle is the object */
    struct loop *loop;
    void (*fn)(void *arg, int events);
    void *arg;
    int events;
    bool is_stopped; /* libuv stops a handle on POLLERR; `events` are still wanted */
    uint8_t edge;    /* enum edge */
};

struct loop_timer {
    uv_timer_t timer;
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
};

struct loop_signal {
    uv_signal_t signal;
    struct list link;
    struct loop *loop;
    void (*fn)(void *arg, int signum);
    void *arg;
};

struct loop_job {
    uv_work_t work;
    struct loop *loop;
    void (*run)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

static inline void turn_begin(struct loop *loop)
{
    if (!loop->turn_us)
        loop->turn_us = clock_mono_us();
}

static void turn_end(struct loop *loop)
{
    int64_t took;

    while (loop->deferred) {
        struct loop_task *task = loop->deferred;
        turn_begin(loop);
        loop->deferred = task->next;
        if (!loop->deferred)
            loop->deferred_end = &loop->deferred;
        task->fn(task);
    }
    if (!loop->turn_us)
        return;
    took = clock_mono_us() - loop->turn_us;
    if (took > loop->stall_us)
        loop->stall_us = took;
    loop->turn_us = 0;
}

static void on_before_poll(uv_prepare_t *handle)
{
    struct loop *loop = handle->data;

    if (loop->single && (loop->turn_us || loop->deferred))
        uv_stop(&loop->uv);
    turn_end(loop);
}

static void on_after_poll(uv_check_t *handle)
{
    turn_end(handle->data);
}

static void run_posted(struct loop *loop)
{
    struct loop_task *newest = atomic_exchange_explicit(&loop->posted, NULL, memory_order_acquire);
    struct loop_task *oldest = NULL;

    turn_begin(loop);
    while (newest) {
        struct loop_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        struct loop_task *task = oldest;
        oldest = task->next;
        task->fn(task);
    }
    if (atomic_exchange(&loop->stop, false))
        uv_stop(&loop->uv);
}

static void on_wake(uv_poll_t *handle, int status unused_arg, int events unused_arg)
{
    struct loop *loop = handle->data;
    uint64_t count;

    /* Read before the list is taken: a thread that posts from now on wakes the loop again. */
    if (read(loop->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        die("the event descriptor of the loop cannot be read: %s", strerror(errno));
    run_posted(loop);
}

static void wake_up(struct loop *loop)
{
    const uint64_t one = 1;
    /* A full counter means that a wake-up is pending. */
    if (write(loop->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        die("the event descriptor of the loop cannot be written: %s", strerror(errno));
}

struct loop *loop_new(void)
{
    struct loop *loop = xcalloc(1, sizeof(*loop));

    /* When a peer hangs up, write(2) returns an error instead of raising a signal: TLS and pipes
     * have no MSG_NOSIGNAL. */
    signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&loop->uv) != 0)
        die("cannot make an event loop; raise the limit of open files (ulimit -n)");
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0 || uv_poll_init(&loop->uv, &loop->wake, loop->wake_fd) != 0)
        die("cannot make an event descriptor; raise the limit of open files (ulimit -n)");
    uv_prepare_init(&loop->uv, &loop->before_poll);
    uv_check_init(&loop->uv, &loop->after_poll);
    loop->wake.data = loop->before_poll.data = loop->after_poll.data = loop;
    uv_poll_start(&loop->wake, UV_READABLE, on_wake);
    uv_prepare_start(&loop->before_poll, on_before_poll);
    uv_check_start(&loop->after_poll, on_after_poll);
    uv_unref((uv_handle_t *)&loop->before_poll);
    uv_unref((uv_handle_t *)&loop->after_poll);
    list_init(&loop->signals);
    loop->deferred_end = &loop->deferred;
    loop->deadlines = deadlines_new(loop);
    return loop;
}

void loop_run(struct loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_turn(struct loop *loop)
{
    loop->single = true;
    uv_run(&loop->uv, UV_RUN_ONCE);
    loop->single = false;
    turn_end(loop); /* libuv runs timers last in this mode */
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stop, true);
    wake_up(loop);
}

static void signal_on_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct loop_signal, signal));
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    run_posted(loop);
    turn_end(loop);
    list_each(&loop->signals, it)
    {
        struct loop_signal *s = list_entry(it, struct loop_signal, link);
        uv_close((uv_handle_t *)&s->signal, signal_on_closed);
    }
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->before_poll, NULL);
    uv_close((uv_handle_t *)&loop->after_poll, NULL);
    deadlines_free(loop->deadlines);
    /* A pending stop must not end the closing early, so uv_run() is repeated. */
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0)
        ;
    if (uv_loop_close(&loop->uv) != 0)
        die("an event loop was freed while something still used it; this is a bug, please report "
            "it");
    close(loop->wake_fd);
    outbox_free(loop->outbox);
    free(loop);
}

int64_t loop_now_us(const struct loop *loop)
{
    return loop->turn_us ? loop->turn_us : clock_mono_us();
}

int64_t loop_now_ms(const struct loop *loop)
{
    return loop_now_us(loop) / 1000;
}

struct deadlines *loop_deadlines(struct loop *loop)
{
    return loop->deadlines;
}

struct outbox *loop_outbox(struct loop *loop)
{
    if (unlikely(!loop->outbox))
        loop->outbox = outbox_new(loop);
    return loop->outbox;
}

char *loop_scratch(struct loop *loop)
{
    return loop->scratch;
}

int64_t loop_take_stall_us(struct loop *loop)
{
    int64_t us = loop->stall_us;

    loop->stall_us = 0;
    return us;
}

static bool arm_edge(struct loop_fd *w)
{
    struct loop *loop = w->loop;
    int set = uv_backend_fd(&loop->uv);
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&w->poll, &fd) != 0)
        return false;
    if (unlikely(!loop->edges_known))
        loop->edges_known = edge_look(set, fd, &loop->edges_possible);
    return loop->edges_possible && edge_arm(set, fd);
}

/* Called after the reader has taken all bytes: arming with unread bytes would report them twice. */
static void advance_edge(struct loop_fd *w)
{
    if (w->events != LOOP_READ)
        return;
    if (w->edge == EDGE_NEW)
        w->edge = EDGE_SEEN;
    else
        w->edge = arm_edge(w) ? EDGE_ARMED : EDGE_UNWANTED;
}

static void fd_on_poll(uv_poll_t *poll, int status, int uv_events)
{
    struct loop_fd *w = container_of(poll, struct loop_fd, poll);
    int events =
        (uv_events & UV_READABLE ? LOOP_READ : 0) | (uv_events & UV_WRITABLE ? LOOP_WRITE : 0);
    int wanted = w->events;

    turn_begin(w->loop);
    if (status < 0) { /* every operation will fail, except reading bytes that came before */
        w->is_stopped = true;
        events = LOOP_READ | (w->events & LOOP_WRITE);
    }
    if (uv_events & UV_DISCONNECT)
        events |= LOOP_READ | LOOP_LAST;
    w->fn(w->arg, events);
    if (likely(w->edge == EDGE_ARMED || w->edge == EDGE_UNWANTED) && !w->is_stopped)
        return;
    if (uv_is_closing((uv_handle_t *)&w->poll))
        return;
    if (w->is_stopped)
        loop_fd_want(w, w->events);
    else if (w->events == wanted)
        advance_edge(w);
}

struct loop_fd *loop_fd_new(struct loop *loop, int fd, void (*fn)(void *arg, int events), void *arg)
{
    struct loop_fd *w = xcalloc_line(sizeof(*w));

    if (uv_poll_init(&loop->uv, &w->poll, fd) != 0) {
        free(w);
        return NULL;
    }
    w->loop = loop;
    w->fn = fn;
    w->arg = arg;
    return w;
}

void loop_fd_want(struct loop_fd *w, int events)
{
    int mask = (events & LOOP_READ ? UV_READABLE : 0) | (events & LOOP_WRITE ? UV_WRITABLE : 0);

    if (w->events == events && !w->is_stopped)
        return;
    w->events = events;
    w->is_stopped = false;
    if (w->edge == EDGE_ARMED)
        w->edge = EDGE_UNWANTED;
    if (w->edge != EDGE_UNWANTED) {
        w->edge = EDGE_NEW; /* not in the epoll set until the next poll */
        mask |= mask & UV_READABLE ? UV_DISCONNECT : 0;
    }
    if (mask)
        uv_poll_start(&w->poll, mask, fd_on_poll);
    else
        uv_poll_stop(&w->poll);
}

void loop_fd_edge_triggered(struct loop_fd *w)
{
    w->edge = EDGE_NEW;
}

void loop_fd_rearm(struct loop_fd *w)
{
    if (w->edge != EDGE_ARMED || arm_edge(w))
        return;
    w->is_stopped = true; /* libuv registers it again, level-triggered */
    loop_fd_want(w, w->events);
}

static void fd_on_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct loop_fd, poll));
}

void loop_fd_free(struct loop_fd *w)
{
    if (w)
        uv_close((uv_handle_t *)&w->poll, fd_on_closed);
}

void loop_post(struct loop *loop, struct loop_task *task)
{
    struct loop_task *head = atomic_load_explicit(&loop->posted, memory_order_relaxed);

    do
        task->next = head;
    while (!atomic_compare_exchange_weak_explicit(&loop->posted, &head, task, memory_order_release,
                                                  memory_order_relaxed));
    /* The thread that made the list non-empty wakes the loop; later posts need not. */
    if (!head)
        wake_up(loop);
}

void loop_defer(struct loop *loop, struct loop_task *task)
{
    task->next = NULL;
    *loop->deferred_end = task;
    loop->deferred_end = &task->next;
}

static void job_on_pool(uv_work_t *work)
{
    struct loop_job *job = container_of(work, struct loop_job, work);

    thread_roam(); /* the pool's threads start on first use */
    job->run(job->arg);
}

static void job_on_done(uv_work_t *work, int status unused_arg)
{
    struct loop_job *job = container_of(work, struct loop_job, work);

    turn_begin(job->loop);
    job->done(job->arg);
    free(job);
}

void loop_work(struct loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
    struct loop_job *job = xcalloc(1, sizeof(*job));

    *job = (struct loop_job){.loop = loop, .run = run, .done = done, .arg = arg};
    uv_queue_work(&loop->uv, &job->work, job_on_pool, job_on_done);
}

static void timer_on_due(uv_timer_t *timer)
{
    struct loop_timer *t = container_of(timer, struct loop_timer, timer);

    turn_begin(t->loop);
    t->fn(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    struct loop_timer *t = xcalloc(1, sizeof(*t));

    uv_timer_init(&loop->uv, &t->timer);
    t->loop = loop;
    t->fn = fn;
    t->arg = arg;
    return t;
}

void loop_timer_start(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms)
{
    uv_update_time(&t->loop->uv);
    uv_timer_start(&t->timer, timer_on_due, (uint64_t)(after_ms > 0 ? after_ms : 0),
                   (uint64_t)(repeat_ms > 0 ? repeat_ms : 0));
}

void loop_timer_stop(struct loop_timer *t)
{
    uv_timer_stop(&t->timer);
}

static void timer_on_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct loop_timer, timer));
}

void loop_timer_free(struct loop_timer *t)
{
    if (t)
        uv_close((uv_handle_t *)&t->timer, timer_on_closed);
}

static void signal_on_raised(uv_signal_t *signal, int signum)
{
    struct loop_signal *s = container_of(signal, struct loop_signal, signal);

    turn_begin(s->loop);
    s->fn(s->arg, signum);
}

void loop_on_signal(struct loop *loop, int signum, void (*fn)(void *arg, int signum), void *arg)
{
    struct loop_signal *s = xcalloc(1, sizeof(*s));

    s->loop = loop;
    s->fn = fn;
    s->arg = arg;
    list_push(&loop->signals, &s->link);
    uv_signal_init(&loop->uv, &s->signal);
    uv_unref((uv_handle_t *)&s->signal);
    if (uv_signal_start(&s->signal, signal_on_raised, signum) != 0)
        die("signal %d cannot be watched; this is a bug, please report it", signum);
}
