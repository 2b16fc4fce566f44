/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: one epoll set, a heap of timers, a list of posted tasks, and a list of deferred
 * tasks.  Other threads post tasks to a lock-free list and wake the loop through one eventfd.
 *
 * A turn begins with its first callback and ends when the deferred tasks have run:
 *
 *     due timers → deferred tasks → wait → descriptors, posted tasks, signals → deferred tasks
 *
 * Invariants: every callback into our code passes turn_begin(), so the time of a turn is read once;
 * deferred tasks run with no other callback on the stack; a descriptor costs no system call while
 * its wanted events do not change from one wait to the next.
 *
 * A level-triggered descriptor stays on the kernel's ready list after it was reported.  The kernel
 * checks it again in the next turn and finds it empty: twice the work for a connection that carries
 * one message at a time.  So descriptors that want to read only are watched edge-triggered where
 * their reader can do with it (loop_fd_edge_triggered()). */
#include "io/loop.h"

#include "base/clock.h"
#include "io/deadline.h"
#include "io/outbox.h"
#include "io/timers.h"
#include "io/worker.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EVENTS_PER_TURN 1024
#define POOL_THREADS 4

struct loop {
    int set; /* the epoll set */
    int wake_fd;
    _Atomic(struct loop_task *) posted; /* newest first */
    atomic_bool stop;
    struct loop_task *deferred, **deferred_end;
    /* Descriptors whose wanted events the kernel does not know yet, in the order in which they
     * changed: of several that are ready, the kernel reports first the one it learnt of first. */
    struct loop_fd *changed, **changed_end;
    int64_t turn_us; /* 0 between turns */
    int64_t stall_us;
    size_t n_fds; /* not freed yet */
    struct timers timers;
    struct list signals;
    struct outbox *outbox; /* NULL until first used */
    struct deadlines *deadlines;
    struct worker *pool; /* NULL until first used */
    struct epoll_event events[EVENTS_PER_TURN];
    char scratch[LOOP_SCRATCH];
};

/* The loop frees the object at the end of the turn, because later events of the turn may name it. */
struct loop_fd {
    struct loop *loop;
    void (*fn)(void *arg, int events); /* NULL: freed */
    void *arg;
    int fd;
    uint8_t wanted;
    bool is_edge_triggered;
    bool is_changed;      /* on loop->changed */
    uint32_t known;       /* the mask that the kernel has */
    struct loop_fd *next; /* on loop->changed */
    struct loop_task end;
};
static_assert(sizeof(struct loop_fd) <= 64, "an event touches one line");

struct loop_signal {
    struct list link;
    int signum;
    void (*fn)(void *arg, int signum);
    void *arg;
};

struct loop_job {
    struct worker_job job;
    void (*run)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

/* What a signal handler touches.  Signals reach only the loop's thread (base/thread.h). */
static struct {
    atomic_int wake_fd;
    atomic_bool is_raised;
} watched_signals[NSIG];

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

static void run_posted(struct loop *loop)
{
    struct loop_task *newest = atomic_exchange_explicit(&loop->posted, NULL, memory_order_acquire);
    struct loop_task *oldest = NULL;

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
}

static void run_signals(struct loop *loop)
{
    list_each(&loop->signals, it)
    {
        struct loop_signal *s = list_entry(it, struct loop_signal, link);
        if (atomic_exchange(&watched_signals[s->signum].is_raised, false))
            s->fn(s->arg, s->signum);
    }
}

/* The counter of the eventfd is never read: an edge-triggered eventfd is reported after each write,
 * and a counter that only grows by wake-ups does not overflow. */
static void wake_up(struct loop *loop)
{
    const uint64_t one = 1;

    if (write(loop->wake_fd, &one, sizeof(one)) < 0)
        die("the event descriptor of the loop cannot be written: %s", strerror(errno));
}

struct loop *loop_new(void)
{
    struct loop *loop = xcalloc(1, sizeof(*loop));
    struct epoll_event wake = {.events = EPOLLIN | EPOLLET}; /* no pointer: see handle() */

    /* When a peer hangs up, write(2) returns an error instead of raising a signal: TLS and pipes
     * have no MSG_NOSIGNAL. */
    signal(SIGPIPE, SIG_IGN);
    loop->set = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->set < 0 || loop->wake_fd < 0)
        die("cannot make an event loop; raise the limit of open files (ulimit -n)");
    if (epoll_ctl(loop->set, EPOLL_CTL_ADD, loop->wake_fd, &wake) != 0)
        die("the event descriptor of the loop cannot be watched: %s", strerror(errno));
    list_init(&loop->signals);
    loop->deferred_end = &loop->deferred;
    loop->changed_end = &loop->changed;
    loop->deadlines = deadlines_new(loop);
    return loop;
}

static bool run_due_timers(struct loop *loop)
{
    int64_t now = loop->timers.n ? timers_now_us() : 0;
    struct loop_timer *t;
    bool ran = false;

    while ((t = timers_take_due(&loop->timers, now))) {
        turn_begin(loop);
        t->fn(t->arg);
        ran = true;
    }
    return ran;
}

/* The mask for the kernel.  A paused descriptor stays in the set with an empty mask; the kernel then
 * still reports errors and hang-up, but edge-triggered: at most once. */
static uint32_t mask_of(const struct loop_fd *w)
{
    uint32_t mask =
        (w->wanted & LOOP_READ ? EPOLLIN : 0U) | (w->wanted & LOOP_WRITE ? EPOLLOUT : 0U);

    if (w->is_edge_triggered && (w->wanted & LOOP_READ))
        mask |= EPOLLRDHUP;
    if (!w->wanted || (w->is_edge_triggered && w->wanted == LOOP_READ))
        mask |= EPOLLET;
    return mask;
}

/* Changing an entry makes the kernel look at the descriptor again: readiness is never missed. */
static void write_entry(struct loop_fd *w, uint32_t mask)
{
    struct epoll_event e = {.events = mask, .data.ptr = w};

    if (epoll_ctl(w->loop->set, EPOLL_CTL_MOD, w->fd, &e) != 0)
        die("a descriptor cannot be watched any more: %s; this is a bug, please report it",
            strerror(errno));
    w->known = mask;
}

static void apply_changes(struct loop *loop)
{
    struct loop_fd *w;

    while ((w = loop->changed)) {
        loop->changed = w->next;
        if (!loop->changed)
            loop->changed_end = &loop->changed;
        w->is_changed = false;
        if (w->fn && mask_of(w) != w->known)
            write_entry(w, mask_of(w));
    }
}

static void handle(struct loop *loop, struct epoll_event e)
{
    struct loop_fd *w = e.data.ptr;

    turn_begin(loop);
    if (!w) {
        run_posted(loop);
        run_signals(loop);
        return;
    }
    if (!w->fn || !w->wanted)
        return;
    int events = (e.events & EPOLLIN ? LOOP_READ : 0) | (e.events & EPOLLOUT ? LOOP_WRITE : 0);
    if (e.events & EPOLLERR) /* every operation will fail, except reading bytes that came before */
        events = LOOP_READ | (w->wanted & LOOP_WRITE);
    if (e.events & EPOLLHUP)
        events |= w->wanted;
    if (e.events & EPOLLRDHUP)
        events |= LOOP_READ | LOOP_LAST;
    w->fn(w->arg, events);
}

static void wait_and_handle(struct loop *loop, int timeout_ms)
{
    apply_changes(loop);
    int n = epoll_wait(loop->set, loop->events, EVENTS_PER_TURN, timeout_ms);
    if (n < 0 && errno != EINTR)
        die("the loop cannot wait for events: %s", strerror(errno));
    for (int i = 0; i < n; i++)
        handle(loop, loop->events[i]);
    turn_end(loop);
}

/* With `waits` false, a turn in which timers or deferred tasks ran handles the events that are there
 * and does not wait for others. */
static void turn(struct loop *loop, bool waits)
{
    bool ran = run_due_timers(loop) || loop->deferred;

    turn_end(loop);
    if (ran && !waits)
        wait_and_handle(loop, 0);
    else
        wait_and_handle(loop, timers_wait_ms(&loop->timers, loop->timers.n ? timers_now_us() : 0));
}

void loop_run(struct loop *loop)
{
    do
        turn(loop, true);
    while (!atomic_exchange(&loop->stop, false));
}

void loop_turn(struct loop *loop)
{
    turn(loop, false);
    run_due_timers(loop);
    turn_end(loop);
    atomic_store(&loop->stop, false);
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stop, true);
    wake_up(loop);
}

static void release_signals(struct loop *loop)
{
    struct list *it;

    while ((it = list_pop(&loop->signals))) {
        struct loop_signal *s = list_entry(it, struct loop_signal, link);
        signal(s->signum, SIG_DFL);
        atomic_store(&watched_signals[s->signum].is_raised, false);
        free(s);
    }
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    worker_free(loop->pool);
    run_posted(loop);
    turn_end(loop);
    release_signals(loop);
    deadlines_free(loop->deadlines);
    if (loop->n_fds || loop->timers.n_made)
        die("an event loop was freed while something still used it; this is a bug, please report "
            "it");
    timers_release(&loop->timers);
    close(loop->wake_fd);
    close(loop->set);
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

static void fd_on_end(struct loop_task *task)
{
    struct loop_fd *w = container_of(task, struct loop_fd, end);

    if (w->is_changed)
        apply_changes(w->loop); /* takes it off the list */
    free(w);
}

struct loop_fd *loop_fd_new(struct loop *loop, int fd, void (*fn)(void *arg, int events), void *arg)
{
    struct loop_fd *w = xcalloc_line(sizeof(*w));
    int on = 1;

    *w = (struct loop_fd){.loop = loop, .fn = fn, .arg = arg, .fd = fd, .end.fn = fd_on_end};
    w->known = mask_of(w);
    struct epoll_event e = {.events = w->known, .data.ptr = w};
    if (epoll_ctl(loop->set, EPOLL_CTL_ADD, fd, &e) != 0) {
        free(w);
        return NULL;
    }
    (void)ioctl(fd, FIONBIO, &on); /* a read or write must never block the loop */
    loop->n_fds++;
    return w;
}

/* The kernel is told before the next wait, once, however often the wanted events change until
 * then. */
static void note_change(struct loop_fd *w)
{
    if (w->is_changed)
        return;
    w->is_changed = true;
    w->next = NULL;
    *w->loop->changed_end = w;
    w->loop->changed_end = &w->next;
}

void loop_fd_want(struct loop_fd *w, int events)
{
    if (w->wanted == events)
        return;
    w->wanted = (uint8_t)events;
    note_change(w);
}

void loop_fd_edge_triggered(struct loop_fd *w)
{
    w->is_edge_triggered = true;
    note_change(w);
}

void loop_fd_rearm(struct loop_fd *w)
{
    if (w->known & EPOLLET)
        write_entry(w, w->known);
}

void loop_fd_free(struct loop_fd *w)
{
    if (!w)
        return;
    (void)epoll_ctl(w->loop->set, EPOLL_CTL_DEL, w->fd, NULL); /* a closed one is gone already */
    w->fn = NULL;
    w->loop->n_fds--;
    loop_defer(w->loop, &w->end);
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

/* A job that loop_free() finds waiting is run there: both functions are always called. */
static void job_on_done(struct worker_job *job, bool ran)
{
    struct loop_job *j = container_of(job, struct loop_job, job);

    if (!ran)
        j->run(j->arg);
    j->done(j->arg);
    free(j);
}

static void job_on_pool(struct worker_job *job)
{
    struct loop_job *j = container_of(job, struct loop_job, job);

    j->run(j->arg);
}

void loop_work(struct loop *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
    struct loop_job *j = xcalloc(1, sizeof(*j));

    *j = (struct loop_job){.run = run, .done = done, .arg = arg};
    j->job.run = job_on_pool;
    j->job.done = job_on_done;
    if (!loop->pool)
        loop->pool = worker_new_pool(loop, POOL_THREADS);
    if (!worker_submit(loop->pool, &j->job))
        die("the pool of the loop refused a job; this is a bug, please report it");
}

struct loop_timer *loop_timer_new(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    struct loop_timer *t = xcalloc(1, sizeof(*t));

    *t = (struct loop_timer){.home = &loop->timers, .fn = fn, .arg = arg};
    loop->timers.n_made++;
    return t;
}

void loop_timer_start(struct loop_timer *t, int64_t after_ms, int64_t repeat_ms)
{
    timer_start(t, timers_now_us() + (after_ms > 0 ? after_ms * 1000 : 0),
                repeat_ms > 0 ? repeat_ms * 1000 : 0);
}

void loop_timer_stop(struct loop_timer *t)
{
    timer_stop(t);
}

void loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return;
    timer_stop(t);
    t->home->n_made--;
    free(t);
}

static void on_signal(int signum)
{
    const uint64_t one = 1;
    int saved = errno;

    atomic_store(&watched_signals[signum].is_raised, true);
    (void)!write(atomic_load(&watched_signals[signum].wake_fd), &one, sizeof(one));
    errno = saved;
}

void loop_on_signal(struct loop *loop, int signum, void (*fn)(void *arg, int signum), void *arg)
{
    struct loop_signal *s = xcalloc(1, sizeof(*s));
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    *s = (struct loop_signal){.signum = signum, .fn = fn, .arg = arg};
    list_push(&loop->signals, &s->link);
    atomic_store(&watched_signals[signum].wake_fd, loop->wake_fd);
    sigfillset(&action.sa_mask);
    if (sigaction(signum, &action, NULL) != 0)
        die("signal %d cannot be watched; this is a bug, please report it", signum);
}
