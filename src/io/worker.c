/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking jobs on a few threads: one queue under one lock, results through loop_post().
 *
 * Invariant: a job is in exactly one place: on `waiting` (under the lock), run by a thread, or on
 * `finished` (under the lock), which the loop empties.  So every accepted job gets one `done`. */
#include "io/worker.h"

#include "base/thread.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

struct worker {
    struct loop *loop;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct list waiting, finished; /* of worker_job.link */
    unsigned n_waiting, max_waiting;
    bool stopping;
    bool posted; /* `task` is posted to the loop and has not run yet */
    struct loop_task task;
    unsigned n_threads;
    pthread_t threads[WORKER_THREADS_MAX];
};

/* Call it with the lock held. */
static void finish(struct worker *w, struct worker_job *job)
{
    list_push(&w->finished, &job->link);
    if (!w->posted && !w->stopping) {
        w->posted = true;
        loop_post(w->loop, &w->task);
    }
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct list *first;
        struct worker_job *job;

        while (!(first = list_pop(&w->waiting)) && !w->stopping)
            pthread_cond_wait(&w->work, &w->lock);
        if (!first)
            break;
        w->n_waiting--;
        pthread_mutex_unlock(&w->lock);
        job = list_entry(first, struct worker_job, link);
        job->run(job);
        pthread_mutex_lock(&w->lock);
        job->ran = true;
        finish(w, job);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void report_finished(struct worker *w)
{
    struct list batch;
    struct list *first;

    list_init(&batch);
    pthread_mutex_lock(&w->lock);
    w->posted = false;
    list_move_all(&batch, &w->finished);
    pthread_mutex_unlock(&w->lock);
    while ((first = list_pop(&batch))) {
        struct worker_job *job = list_entry(first, struct worker_job, link);
        job->done(job, job->ran);
    }
}

static void worker_release(struct worker *w)
{
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->work);
    free(w);
}

static void on_posted(struct loop_task *task)
{
    struct worker *w = container_of(task, struct worker, task);

    if (w->stopping) /* set on this thread, by worker_free() */
        worker_release(w);
    else
        report_finished(w);
}

struct worker *worker_new(struct loop *loop)
{
    return worker_new_threads(loop, WORKER_THREADS);
}

struct worker *worker_new_threads(struct loop *loop, unsigned threads)
{
    struct worker *w = xcalloc(1, sizeof(*w));

    w->n_threads = threads < WORKER_THREADS_MAX ? threads : WORKER_THREADS_MAX;
    w->max_waiting = WORKER_MAX_QUEUE;
    w->loop = loop;
    w->task.fn = on_posted;
    list_init(&w->waiting);
    list_init(&w->finished);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    for (unsigned i = 0; i < w->n_threads; i++)
        if (!thread_start(&w->threads[i], "worker", thread_main, w))
            die("cannot start a worker thread; raise the limit of processes (ulimit -u)");
    return w;
}

struct worker *worker_new_pool(struct loop *loop, unsigned threads)
{
    struct worker *w = worker_new_threads(loop, threads);

    w->max_waiting = UINT_MAX; /* only the loop's thread reads it */
    return w;
}

bool worker_submit(struct worker *w, struct worker_job *job)
{
    bool room;

    job->ran = false;
    pthread_mutex_lock(&w->lock);
    room = w->n_waiting < w->max_waiting && !w->stopping;
    if (room) {
        list_push(&w->waiting, &job->link);
        w->n_waiting++;
        pthread_cond_signal(&w->work);
    }
    pthread_mutex_unlock(&w->lock);
    return room;
}

void worker_cancel(struct worker *w, struct worker_job *job)
{
    pthread_mutex_lock(&w->lock);
    list_each(&w->waiting, it)
    {
        if (it != &job->link)
            continue;
        list_remove(it);
        w->n_waiting--;
        finish(w, job);
    }
    pthread_mutex_unlock(&w->lock);
}

/* A posted task still points to the worker; in that case the task frees it. */
void worker_free(struct worker *w)
{
    bool posted;

    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    list_move_all(&w->finished, &w->waiting);
    w->n_waiting = 0;
    posted = w->posted;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i], NULL);
    report_finished(w);
    if (!posted)
        worker_release(w);
}
