/* SPDX-License-Identifier: Apache-2.0 */
/* Owners with waiting jobs are in `turn`.  A free thread takes a job of the first owner that runs
 * fewer than per_owner jobs.  That owner then goes to the end of `turn`.
 *
 * Invariant: an owner is in `turn` exactly while it has waiting jobs.  It is freed when it has
 * neither waiting nor running jobs. */
#include "docs/pool.h"

#include "base/map.h"

#include <stdlib.h>

struct pool_owner {
    struct list node; /* in pool.turn */
    struct list waiting;
    unsigned n_waiting, n_running;
    size_t name_n;
    char name[];
};
struct pool {
    struct worker *worker;
    struct pool_limits limits;
    struct map owners;
    struct list turn;
    unsigned n_running;
    bool stopping;
};

struct pool *pool_new(struct loop *loop, const struct pool_limits *limits)
{
    struct pool *p = xcalloc(1, sizeof(*p));

    p->limits = *limits;
    p->worker = worker_new_threads(loop, limits->threads);
    map_init(&p->owners);
    list_init(&p->turn);
    return p;
}

struct worker *pool_worker(struct pool *p)
{
    return p->worker;
}

static struct str owner_key(const struct pool_owner *o)
{
    return str_n(o->name, o->name_n);
}

static struct pool_owner *owner_of(struct pool *p, struct str name)
{
    struct pool_owner *o = map_get(&p->owners, name.n ? name : STR(""));

    if (o)
        return o;
    o = xcalloc(1, sizeof(*o) + name.n + 1);
    memcpy(o->name, name.n ? name.p : "", name.n);
    o->name_n = name.n;
    list_init(&o->node);
    list_init(&o->waiting);
    map_put(&p->owners, owner_key(o), o);
    return o;
}

static void owner_drop_idle(struct pool *p, struct pool_owner *o)
{
    if (o->n_waiting > 0 || o->n_running > 0)
        return;
    map_remove(&p->owners, owner_key(o));
    free(o);
}

static void run_job(struct worker_job *w)
{
    struct pool_job *job = container_of(w, struct pool_job, job);
    job->run(job);
}

static void start(struct pool *p);

static void on_job(struct worker_job *w, bool ran)
{
    struct pool_job *job = container_of(w, struct pool_job, job);
    struct pool *p = job->pool;

    p->n_running--;
    job->owner->n_running--;
    owner_drop_idle(p, job->owner);
    start(p);
    job->done(job, ran);
}

static struct pool_owner *whose_turn(struct pool *p)
{
    list_each(&p->turn, node)
    {
        struct pool_owner *o = list_entry(node, struct pool_owner, node);
        if (o->n_running < p->limits.per_owner)
            return o;
    }
    return NULL;
}

static void start(struct pool *p)
{
    struct pool_owner *o;

    while (!p->stopping && p->n_running < p->limits.threads && (o = whose_turn(p))) {
        struct pool_job *job = list_entry(list_pop(&o->waiting), struct pool_job, node);
        list_remove(&o->node);
        if (--o->n_waiting > 0)
            list_push(&p->turn, &o->node);
        o->n_running++;
        p->n_running++;
        job->job = (struct worker_job){.run = run_job, .done = on_job};
        if (!worker_submit(p->worker, &job->job)) /* cannot fail: the worker's queue is longer than
                                                   * `threads` */
            die("a pool of documents has more jobs than threads; this is a bug");
    }
}

bool pool_submit(struct pool *p, struct str owner, struct pool_job *job, struct error *err)
{
    struct pool_owner *o = owner_of(p, owner);

    if (o->n_waiting == p->limits.waiting_max)
        return error_set(err, ERR_LIMIT,
                         "too many of your calls wait (%u); call again when one is done",
                         o->n_waiting);
    job->pool = p;
    job->owner = o;
    list_push(&o->waiting, &job->node);
    if (o->n_waiting++ == 0)
        list_push(&p->turn, &o->node);
    start(p);
    return true;
}

void pool_free(struct pool *p)
{
    struct list *first;

    if (!p)
        return;
    p->stopping = true;
    worker_free(p->worker);
    while ((first = list_pop(&p->turn))) {
        struct pool_owner *o = list_entry(first, struct pool_owner, node);
        struct list taken;
        list_init(&taken);
        list_move_all(&taken, &o->waiting);
        o->n_waiting = 0;
        owner_drop_idle(p, o);
        while ((first = list_pop(&taken))) {
            struct pool_job *job = list_entry(first, struct pool_job, node);
            job->done(job, false);
        }
    }
    map_release(&p->owners);
    free(p);
}
