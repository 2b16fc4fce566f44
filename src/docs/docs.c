/* SPDX-License-Identifier: Apache-2.0 */
/* The service and the stages of a call: to a worker, to the store and back.  The verbs are in
 * read.c, change.c, move.c and history.c.
 *
 * Invariant: each submitted call gets exactly one `done`; at the end from docs_stop() or from
 * lanes_free(). */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

#include <stdlib.h>

struct docs *docs_new(const struct docs_start *start)
{
    struct docs *d = xcalloc(1, sizeof(*d));

    d->start = *start;
    d->mem = arena_new(1 << 16);
    d->start.data_dir = arena_dup(d->mem, start->data_dir);
    list_init(&d->line);
    list_init(&d->running);
    list_init(&d->reading);
    list_init(&d->readers);
    list_init(&d->late);
    list_init(&d->dirty);
    d->listed_ms = loop_now_ms(start->loop);
    atomic_init(&d->stop, false);
    return d;
}

#define CALLS_WAITING 1024 /* per owner; more calls are refused */
#define SEARCHES_WAITING 16

static const struct pool_limits limits = {3, 2, CALLS_WAITING};
static const struct pool_limits search_limits = {3, 2, SEARCHES_WAITING};

/* Threads are started only if there are documents. */
void docs_wake(struct docs *d)
{
    struct pool **pools[] = {&d->files, &d->changes, &d->find, &d->search};

    for (size_t i = 0; i < countof(pools); i++)
        if (!*pools[i])
            *pools[i] = pool_new(d->start.loop, pools[i] == &d->search ? &search_limits : &limits);
    late_start(d);
}

void docs_stop(struct docs *d)
{
    if (!d)
        return;
    d->stopping = true;
    atomic_store(&d->stop, true);
    for (size_t i = 0; d->set && i < d->set->n; i++)
        keep_unwatch(d->set->folders[i]);
    late_stop(d);
    age_stop(d);
    struct pool *pools[] = {d->files, d->changes, d->find, d->search};
    d->files = d->changes = d->find = d->search = NULL;
    for (size_t i = 0; i < countof(pools); i++)
        pool_free(pools[i]);
    change_stop(d);
}

void docs_free(struct docs *d)
{
    if (!d)
        return;
    late_free(d);
    age_free(d);
    keep_free(d);
    set_unref(d->set);
    if (d->index)
        index_close(d->index);
    arena_free(d->mem);
    free(d);
}

static void on_finish(struct loop_task *task)
{
    struct docs_call *c = container_of(task, struct docs_call, task);
    struct docs_change *change = c->change_detached ? NULL : c->change;

    if (c->is_reading)
        read_ended(c);
    if (c->is_running)
        change_ended(c);
    c->done(c); /* may read the change, and frees `c` */
    if (change)
        change->free(change);
}

/* During the stop the loop does not run any more, so `done` is called at once. */
void call_finish(struct docs_call *c)
{
    c->task.fn = on_finish;
    if (c->home->stopping)
        on_finish(&c->task);
    else
        loop_defer(c->home->start.loop, &c->task);
}

void call_fail(struct docs_call *c, const struct error *err)
{
    c->ok = false;
    c->err = *err;
    call_finish(c);
}

void call_stopped(struct docs_call *c)
{
    struct error err;

    error_set(&err, ERR_UNAVAILABLE, "Holdfast is stopping or has too much to do; call again");
    call_fail(c, &err);
}

static void run_blocking(struct pool_job *job)
{
    struct docs_call *c = container_of(job, struct docs_call, job);
    c->ok = c->blocking(c, &c->err);
}

static void on_blocking(struct pool_job *job, bool ran)
{
    struct docs_call *c = container_of(job, struct docs_call, job);

    if (ran)
        c->next(c);
    else
        call_stopped(c);
}

void call_submit(struct docs_call *c, struct pool *pool,
                 bool (*blocking)(struct docs_call *c, struct error *err),
                 void (*next)(struct docs_call *c))
{
    struct str owner =
        arena_printf(c->mem, "%.*s/%.*s", STR_ARG(c->who->tenant), STR_ARG(c->who->owner));
    struct error err;

    c->blocking = blocking;
    c->next = next;
    c->job = (struct pool_job){.run = run_blocking, .done = on_blocking};
    if (!pool)
        call_stopped(c);
    else if (!pool_submit(pool, owner, &c->job, &err))
        call_fail(c, &err);
}

static bool run_lookup(struct read_job *job, struct store *store)
{
    struct docs_call *c = container_of(job, struct docs_call, read);
    return c->lookup(c, store, &job->err);
}

static void on_lookup(struct read_job *job)
{
    struct docs_call *c = container_of(job, struct docs_call, read);

    if (job->ok)
        c->next(c);
    else
        call_fail(c, &job->err);
}

void call_lookup(struct docs_call *c,
                 bool (*lookup)(struct docs_call *c, struct store *store, struct error *err),
                 void (*next)(struct docs_call *c))
{
    c->lookup = lookup;
    c->next = next;
    c->read = (struct read_job){.run = run_lookup, .done = on_lookup};
    if (!lane_lookup(c->home->start.lanes, &c->read))
        call_stopped(c);
}

void call_op(struct docs_call *c, struct store_op op)
{
    if (c->n_ops == c->ops_room) {
        struct store_op *old = c->ops;
        c->ops_room = c->ops_room ? 2 * c->ops_room : 4;
        c->ops = arena_zalloc(c->mem, c->ops_room * sizeof(*c->ops));
        if (c->n_ops)
            memcpy(c->ops, old, c->n_ops * sizeof(*old));
    }
    if (!op.who)
        op.who = c->who;
    c->ops[c->n_ops++] = op;
}

/* The displaced file stays on disk until the history has its text. */
static void mark_owing(struct docs_call *c)
{
    if (c->published.staged.n > 0)
        open_folder_of(c->place.folder)->is_owing = true;
}

static void on_written(struct write_job *job)
{
    struct docs_call *c = container_of(job, struct docs_call, write);

    if (job->ok) {
        c->next(c);
        return;
    }
    mark_owing(c);
    call_fail(c, &job->err);
}

void call_write(struct docs_call *c, void (*next)(struct docs_call *c))
{
    c->next = next;
    c->write = (struct write_job){.ops = c->ops, .n = c->n_ops, .done = on_written};
    if (!lane_write(c->home->start.lanes, &c->write)) {
        mark_owing(c);
        call_stopped(c);
    }
}

/* Adds an op that stores `v` as a revision of the document at `path`; the op fills both rows. */
void call_revise(struct docs_call *c, struct str path, const struct vault_version *v,
                 const struct vault_version *before, const struct revision_row *how)
{
    struct document_row *document = arena_new_of(c->mem, struct document_row);
    struct revision_row *row = arena_new_of(c->mem, struct revision_row);
    struct document_revise *rows = arena_new_of(c->mem, struct document_revise);
    char *uuid = arena_alloc(c->mem, UUID_TEXT);

    random_uuid7(uuid);
    document->id = str_of(uuid);
    document->folder = c->place.folder->name;
    document->path = path;
    document->created_ms = document->changed_ms = clock_life_ms();
    *row = *how;
    row->at_ms = clock_wall_ms();
    row->path = path;
    row->content = v->bytes;
    row->size = (int64_t)v->bytes.n;
    row->history_max = c->place.folder->history_max;
    memcpy(row->sha256, v->sha256, sizeof(row->sha256));
    if (before) {
        row->prefix = v->prefix;
        row->suffix = v->suffix;
        memcpy(row->follows, before->sha256, sizeof(row->follows));
    }
    *rows = (struct document_revise){.document = document, .revision = row};
    call_op(c, op_document_revise(rows));
    c->document = *document;
    c->newest = document;
}

/* Reads are those of the session, whoever uses it. */
const struct principal *call_reader(struct docs_call *c)
{
    if (!c->session_owner.p || str_eq(c->session_owner, c->who->owner))
        return c->who;
    struct principal *owner = arena_new_of(c->mem, struct principal);
    *owner = (struct principal){.tenant = c->who->tenant, .owner = c->session_owner};
    return owner;
}

/* Adds an op that records the lines which the session, if there is one, sees. */
void call_note_lines(struct docs_call *c, struct str path)
{
    struct document_read_row *row;

    if (!c->session_id.p || c->from_line <= 0)
        return;
    row = arena_new_of(c->mem, struct document_read_row);
    *row = (struct document_read_row){
        .session_id = c->session_id,
        .folder = c->place.folder->name,
        .path = path,
        .from_line = c->from_line,
        .to_line = c->to_line,
        .at_ms = clock_life_ms(),
    };
    call_op(c, op_document_read(call_reader(c), row));
}

void docs_work(struct docs *d, struct docs_call *c)
{
    c->home = d;
    call_submit(c, d->find, c->work, call_worked);
}

void docs_long_work(struct docs *d, struct docs_call *c)
{
    c->home = d;
    call_submit(c, d->search, c->work, call_worked);
}

bool docs_is_stopping(const struct docs_call *c)
{
    return atomic_load(&c->home->stop);
}

/* `ok` and `err` were set by the worker. */
void call_worked(struct docs_call *c)
{
    call_finish(c);
}
