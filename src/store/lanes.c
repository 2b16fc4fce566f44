/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes: three threads and the queues between them and the loop.
 *
 * Each lane has an intrusive stack.  Any thread pushes; only the lane takes, and always the whole
 * stack, so there is neither lock nor ABA.  A lane without work sets `asleep`, looks at the stack
 * once more, and sleeps on that futex.  A pusher clears `asleep` and makes the wake call only when
 * it was set.  Finished jobs go back to the loop through one more such stack, with one posted task
 * while it is not empty. */
#include "store/lanes_impl.h"

#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t lane_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Pushes the already linked chain newest..oldest.  True when the stack was empty. */
static bool push_chain(struct task_stack *stack, struct loop_task *newest, struct loop_task *oldest)
{
    struct loop_task *head = atomic_load(&stack->newest);
    do
        oldest->next = head;
    while (!atomic_compare_exchange_weak(&stack->newest, &head, newest));
    return head == NULL;
}

void task_push(struct task_stack *stack, struct loop_task *task)
{
    push_chain(stack, task, task);
}

struct loop_task *task_take(struct task_stack *stack)
{
    struct loop_task *newest = atomic_exchange(&stack->newest, NULL);
    struct loop_task *oldest = NULL;
    while (newest) {
        struct loop_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static long futex(atomic_int *word, int op, int value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static bool lane_is_empty(struct lane *lane)
{
    return !atomic_load(&lane->incoming.newest) && !atomic_load(&lane->upkeep.newest);
}

void lane_sleep(struct lane *lane, int64_t for_us)
{
    struct timespec timeout = {.tv_sec = for_us / 1000000, .tv_nsec = for_us % 1000000 * 1000};
    atomic_store(&lane->asleep, 1);
    if (lane_is_empty(lane) && !atomic_load(&lane->lanes->stopping))
        futex(&lane->asleep, FUTEX_WAIT, 1, for_us < 0 ? NULL : &timeout);
    atomic_store(&lane->asleep, 0);
}

/* The loop first counts a job, then checks whether to wake the lane.  The lane first writes
 * wake_at, then checks the count.  So at least one of them sees the other's write. */
void lane_sleep_for_batch_fill(struct lane *lane, size_t queued, int64_t for_us)
{
    struct timespec timeout = {.tv_sec = for_us / 1000000, .tv_nsec = for_us % 1000000 * 1000};
    atomic_store(&lane->wake_at, queued);
    atomic_store(&lane->asleep, 1);
    if (atomic_load(&lane->queued) < queued && !atomic_load(&lane->lanes->stopping))
        futex(&lane->asleep, FUTEX_WAIT, 1, &timeout);
    atomic_store(&lane->asleep, 0);
    atomic_store(&lane->wake_at, 0);
}

static void lane_wake(struct lane *lane)
{
    bool enough = atomic_load(&lane->queued) >= atomic_load(&lane->wake_at) ||
                  atomic_load(&lane->lanes->stopping);
    if (atomic_load(&lane->asleep) && enough && atomic_exchange(&lane->asleep, 0))
        futex(&lane->asleep, FUTEX_WAKE, 1, NULL);
}

static bool lane_hand_in(struct lane *lane, struct task_stack *stack, struct loop_task *task)
{
    if (atomic_load(&lane->lanes->stopping))
        return false;
    if (atomic_fetch_add(&lane->queued, 1) >= lane->lanes->config.max_queue) {
        atomic_fetch_sub(&lane->queued, 1);
        return false;
    }
    task_push(stack, task);
    lane_wake(lane);
    return true;
}

void finished_add(struct finished *f, struct loop_task *task)
{
    task->next = f->newest;
    f->newest = task;
    if (!f->oldest)
        f->oldest = task;
    f->n++;
}

void lane_finish(struct lane *lane, struct finished *f)
{
    struct done_queue *q = lane->lanes->done;
    if (f->n == 0)
        return;
    atomic_fetch_sub(&lane->queued, f->n);
    if (push_chain(&q->finished, f->newest, f->oldest)) {
        atomic_store(&q->posted, true);
        loop_post(q->loop, &q->task);
    }
    *f = (struct finished){0};
}

static void run_finished(struct done_queue *q)
{
    struct loop_task *task = task_take(&q->finished);
    while (task) {
        struct loop_task *next = task->next; /* read now: fn gives the job back to its submitter */
        task->fn(task);
        task = next;
    }
}

static void on_posted(struct loop_task *task)
{
    struct done_queue *q = container_of(task, struct done_queue, task);
    atomic_store(&q->posted, false);
    if (q->orphaned)
        free(q);
    else
        run_finished(q);
}

void write_task_done(struct loop_task *task)
{
    struct write_job *job = container_of(task, struct write_job, task);
    job->done(job);
}

void read_task_done(struct loop_task *task)
{
    struct read_job *job = container_of(task, struct read_job, task);
    job->done(job);
}

/* Runs the first job, together with the jobs after it that share its run_many.  Returns the rest of
 * the list. */
static struct loop_task *run_reads(struct lane *lane, struct loop_task *task)
{
    struct read_job *jobs[READS_MAX];
    struct finished f = {0};
    size_t n = 0;
    do {
        jobs[n++] = container_of(task, struct read_job, task);
        task = task->next;
    } while (task && n < READS_MAX && jobs[0]->run_many &&
             container_of(task, struct read_job, task)->run_many == jobs[0]->run_many);
    if (n > 1)
        jobs[0]->run_many(jobs, n, lane->store);
    else
        jobs[0]->ok = jobs[0]->run(jobs[0], lane->store);
    for (size_t i = 0; i < n; i++)
        finished_add(&f, &jobs[i]->task);
    lane_finish(lane, &f);
    return task;
}

static void *lane_read_main(void *arg)
{
    struct lane *lane = arg;
    for (;;) {
        struct loop_task *task = task_take(&lane->incoming);
        if (!task && atomic_load(&lane->lanes->stopping))
            return NULL;
        if (!task)
            lane_sleep(lane, -1);
        while (task)
            task = run_reads(lane, task);
    }
}

static void lane_start(struct lanes *l, struct lane *lane, const char *name, struct store *store,
                       void *(*main)(void *))
{
    lane->lanes = l;
    lane->name = name;
    lane->store = store;
    if (!thread_start(&lane->thread, name, main, lane))
        die("cannot start the thread %s; raise the limit of processes (ulimit -u)", name);
}

struct lanes *lanes_new(struct loop *loop, const struct lanes_config *config)
{
    struct lanes *l = xcalloc(1, sizeof(*l));
    l->config = *config;
    l->loop_thread = gettid();
    if (!l->config.max_queue)
        l->config.max_queue = 65536;
    if (!l->config.max_batch)
        l->config.max_batch = 512;
    if (!l->config.fold_most)
        l->config.fold_most = 8192;
    assert(l->config.fold_most >= l->config.max_batch); /* else a fold would always be due */
    if (!l->config.batch_fill_us)
        l->config.batch_fill_us = 1000;
    if (!l->config.return_us)
        l->config.return_us = l->config.batch_fill_us < 0 ? -1 : 1000;
    l->room.dir = config->room_dir;
    l->done = xcalloc(1, sizeof(*l->done));
    l->done->loop = loop;
    l->done->task.fn = on_posted;
    atomic_store(&l->healthy, true);
    pthread_mutex_init(&l->why_lock, NULL);
    if (config->write)
        lane_start(l, &l->write, "store-write", config->write, lane_write_main);
    lane_start(l, &l->lookup, "store-lookup", config->lookup, lane_read_main);
    lane_start(l, &l->query, "store-query", config->query, lane_read_main);
    return l;
}

/* Closes the write lane's store last: only this store may checkpoint, once all readers are
 * closed. */
static void close_stores(const struct lanes_config *c)
{
    if (c->query != c->write && c->query != c->lookup)
        store_close(c->query);
    if (c->lookup != c->write)
        store_close(c->lookup);
    if (c->write)
        store_close(c->write);
}

void lanes_free(struct lanes *l)
{
    if (!l)
        return;
    struct lane *all[] = {&l->write, &l->lookup, &l->query};
    atomic_store(&l->stopping, true);
    for (size_t i = l->config.write ? 0 : 1; i < countof(all); i++)
        lane_wake(all[i]);
    for (size_t i = l->config.write ? 0 : 1; i < countof(all); i++)
        pthread_join(all[i]->thread, NULL);
    run_finished(l->done);
    if (atomic_load(&l->done->posted))
        l->done->orphaned = true;
    else
        free(l->done);
    close_stores(&l->config);
    pthread_mutex_destroy(&l->why_lock);
    free(l);
}

bool lane_write(struct lanes *l, struct write_job *job)
{
    if (job->n > l->config.max_batch || !l->config.write)
        return false;
    job->task.fn = write_task_done;
    return lane_hand_in(&l->write, &l->write.incoming, &job->task);
}

bool lane_maintain(struct lanes *l, struct read_job *job)
{
    job->task.fn = read_task_done;
    return l->config.write && lane_hand_in(&l->write, &l->write.upkeep, &job->task);
}

bool lane_lookup(struct lanes *l, struct read_job *job)
{
    job->task.fn = read_task_done;
    return lane_hand_in(&l->lookup, &l->lookup.incoming, &job->task);
}

bool lane_query(struct lanes *l, struct read_job *job)
{
    job->task.fn = read_task_done;
    return lane_hand_in(&l->query, &l->query.incoming, &job->task);
}

void lanes_set_in_flight(struct lanes *l, unsigned n)
{
    atomic_store_explicit(&l->in_flight, n, memory_order_relaxed);
}

bool lanes_healthy(const struct lanes *l)
{
    return atomic_load(&l->healthy);
}

void lanes_why(struct lanes *l, struct error *ret)
{
    pthread_mutex_lock(&l->why_lock);
    *ret = l->why;
    pthread_mutex_unlock(&l->why_lock);
}

void lanes_set_reserve(struct lanes *l, int64_t bytes)
{
    atomic_store(&l->room.reserve, bytes);
}

bool lanes_lack_room(struct lanes *l, struct error *ret)
{
    if (!room_is_low(&l->room))
        return false;
    room_explain(&l->room, ret);
    return true;
}

void lanes_stats(const struct lanes *l, struct lane_stats *ret)
{
    *ret = (struct lane_stats){
        .in_flight = atomic_load_explicit(&l->in_flight, memory_order_relaxed),
        .write_queue = atomic_load(&l->write.queued),
        .lookup_queue = atomic_load(&l->lookup.queued),
        .query_queue = atomic_load(&l->query.queued),
        .batches = atomic_load(&l->batches),
        .ops = atomic_load(&l->ops),
        .failures = atomic_load(&l->failures),
        .last_batch_us = atomic_load(&l->last_batch_us),
    };
}
