/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the spool's disk access off the loop.  Requests that arrive during a round go into the next
 * round, so there is one commit at a time no matter how many calls end at once.  The running round
 * owns the spool and the redactor; everything else belongs to the loop. */
#include "audit/audit_impl.h"

#include "base/log.h"
#include "io/worker.h"

#include <stdlib.h>

struct take {
    struct list link;
    int64_t exec;
};

struct spooler {
    struct audit *audit;
    struct spool *spool;
    struct redactor *redactor;
    struct worker *worker;
    struct worker_job job;
    struct list next_puts, next_takes; /* for the next round */
    struct list puts, takes;           /* of the running round */
    size_t n_next;
    bool busy, stopping;
    /* owned by the running round */
    size_t n;
    bool ok;
    struct error err;
};

struct spooler *spooler_new(struct audit *a, struct spool *spool)
{
    struct spooler *s = xcalloc(1, sizeof(*s));
    s->audit = a;
    s->spool = spool;
    s->redactor = redactor_new();
    redactor_trust_json(s->redactor);
    s->worker = worker_new(a->loop);
    list_init(&s->next_puts);
    list_init(&s->next_takes);
    list_init(&s->puts);
    list_init(&s->takes);
    return s;
}

/* Runs on the worker's thread. */
static void seal(struct spooler *s, struct spool_put *put)
{
    if (!put->sealed)
        audit_seal_event(s->audit, s->redactor, &put->own, &put->one.event, put->body, put->rule,
                         &put->redacted);
    put->sealed = true;
}

static void on_run(struct worker_job *job)
{
    struct spooler *s = container_of(job, struct spooler, job);
    struct spool_change *changes = xcalloc(s->n, sizeof(*changes));
    size_t n = 0;
    list_each(&s->puts, node)
    {
        struct spool_put *put = list_entry(node, struct spool_put, link);
        seal(s, put);
        changes[n++].put = &put->one;
    }
    list_each(&s->takes, node) changes[n++].exec = list_entry(node, struct take, link)->exec;
    s->ok = spool_write(s->spool, changes, n, &s->err);
    free(changes);
}

static void start_round(struct spooler *s);

/* If a removal fails, the next start finds the outcome in the store and drops the copy in the
 * spool. */
static void end_takes(struct spooler *s)
{
    if (!s->ok && !list_empty(&s->takes))
        log_warn("outcomes could not be deleted from spool.db after they were written to the store",
                 LZ("why", s->err.text));
    for (struct list *node; (node = list_pop(&s->takes));)
        free(list_entry(node, struct take, link));
}

static void on_done(struct worker_job *job, bool ran)
{
    struct spooler *s = container_of(job, struct spooler, job);
    struct list puts;
    if (!ran) /* not run before the worker ended: its thread is gone, so the job runs here */
        on_run(job);
    s->busy = false;
    end_takes(s);
    list_init(&puts);
    list_move_all(&puts, &s->puts);
    struct error err = s->err;
    bool ok = s->ok;
    start_round(s);
    for (struct list *node; (node = list_pop(&puts));) {
        struct spool_put *put = list_entry(node, struct spool_put, link);
        put->done(put, ok ? NULL : &err);
    }
}

/* Moves everything requested so far into the next round. */
static void gather(struct spooler *s)
{
    list_move_all(&s->puts, &s->next_puts);
    list_move_all(&s->takes, &s->next_takes);
    s->n = s->n_next;
    s->n_next = 0;
    s->job = (struct worker_job){.run = on_run, .done = on_done};
}

static void start_round(struct spooler *s)
{
    if (s->busy || s->stopping || s->n_next == 0)
        return;
    gather(s);
    s->busy = worker_submit(s->worker, &s->job); /* cannot fail: the queue holds only this job */
}

void spooler_put(struct spooler *s, struct spool_put *put)
{
    list_push(&s->next_puts, &put->link);
    s->n_next++;
    start_round(s);
}

void spooler_take(struct spooler *s, int64_t exec)
{
    struct take *take = xcalloc(1, sizeof(*take));
    take->exec = exec;
    list_push(&s->next_takes, &take->link);
    s->n_next++;
    start_round(s);
}

void spooler_free(struct spooler *s)
{
    if (!s)
        return;
    s->stopping = true;
    worker_free(s->worker);
    while (s->n_next > 0) {
        gather(s);
        on_done(&s->job, false);
    }
    redactor_free(s->redactor);
    free(s);
}
