/* SPDX-License-Identifier: Apache-2.0 */
/* Displaced files, for a minute: an editor that had one open may still write into it, and that is a
 * person's save like any other.  Then the change that displaced it is made again on what they
 * saved; where it does not apply any more, their text alone becomes the document.
 *
 * One file is looked at at a time, every two seconds. */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define LATE_TICK_MS 2000
#define LATE_SAFE_MS 2000 /* unwritten for so long, a file is let go of at the end */

struct late {
    struct list node;
    struct docs *home;
    struct arena *mem;
    struct principal who;
    struct open_folder *folder;
    struct str path, staged, author, kind, reason;
    uint8_t ours[SHA256_BYTES]; /* what the document held when it was displaced */
    struct docs_change *change;
    int64_t since_ms;
    bool is_done;
    struct worker_job job;
    struct vault_version *versions;
    size_t n;
};

static void late_drop(struct late *l)
{
    list_remove(&l->node);
    if (l->change)
        l->change->free(l->change);
    folder_unref(l->folder);
    arena_free(l->mem);
    free(l);
}

void late_add(struct docs *d, struct docs_call *c)
{
    struct late *l;

    if (c->published.staged.n == 0)
        return;
    l = xcalloc(1, sizeof(*l));
    l->home = d;
    l->mem = arena_new(DOCS_ARENA);
    l->who = principal_dup(c->who, l->mem);
    l->folder = open_folder_of(c->place.folder);
    folder_ref(l->folder);
    l->path = arena_dup(l->mem, c->place.path);
    l->staged = arena_dup(l->mem, c->published.staged);
    l->author = arena_dup(l->mem, c->author);
    l->kind = arena_dup(l->mem, c->kind);
    l->reason = arena_dup(l->mem, c->reason);
    if (c->published.n)
        memcpy(l->ours, c->published.versions[c->published.n - 1].sha256, sizeof(l->ours));
    if (c->change && c->ok) {
        l->change = c->change;
        c->change_kept = true;
    }
    l->since_ms = loop_now_ms(d->start.loop);
    list_push(&d->late, &l->node);
}

/* What they saved, with the change made again where it applies. */
struct late_change {
    struct docs_change change;
    struct late *late; /* lives until the call is done */
    struct str saved;
};

static bool run_late(struct docs_change *change, struct str bytes, struct arena *mem,
                     struct str *ret, struct error *err unused_arg)
{
    struct late_change *lc = container_of(change, struct late_change, change);
    struct late *l = lc->late;
    uint8_t now[SHA256_BYTES];
    struct error why;

    sha256(bytes, now);
    if (memcmp(now, l->ours, sizeof(now)) != 0) {
        *ret = bytes; /* somebody saved since, and saw what there was: the history has the rest */
        return true;
    }
    if (!l->change || !l->change->run(l->change, lc->saved, mem, ret, &why))
        *ret = lc->saved;
    return true;
}

static void free_nothing(struct docs_change *change unused_arg)
{
}

struct late_call {
    struct docs_call call;
    struct late_change change;
};

static void on_late_done(struct docs_call *call)
{
    struct late_call *lc = container_of(call, struct late_call, call);
    struct late *l = lc->change.late;
    struct arena *mem = call->mem;

    if (call->ok && call->published.n)
        memcpy(l->ours, call->published.versions[call->published.n - 1].sha256, sizeof(l->ours));
    docs_end(call);
    l->home->late_busy = false;
    arena_free(mem);
}

/* The newest of what they wrote; the ones before it are in it, or were theirs to overwrite. */
static void take_up(struct late *l)
{
    struct arena *mem = arena_new(DOCS_ARENA);
    struct late_call *lc = arena_new_of(mem, struct late_call);

    lc->change.change.run = run_late;
    lc->change.change.free = free_nothing;
    lc->change.late = l;
    lc->change.saved = arena_dup(mem, l->versions[l->n - 1].bytes);
    lc->call.who = &l->who;
    lc->call.mem = mem;
    lc->call.author = l->author;
    lc->call.kind = l->kind;
    lc->call.reason = l->reason;
    lc->call.change = &lc->change.change;
    lc->call.before = lc->change.saved;
    lc->call.done = on_late_done;
    docs_begin(l->home, &lc->call);
    lc->call.place.folder = &l->folder->shown;
    lc->call.place.path = l->path;
    docs_change(l->home, &lc->call);
}

static void run_look(struct worker_job *job)
{
    struct late *l = container_of(job, struct late, job);
    struct error err;

    l->n = 0;
    if (!vault_late(l->folder->shown.vault, l->staged, l->mem, &l->versions, &l->n, &err))
        l->n = 0;
    if (l->is_done && l->n == 0)
        vault_release(l->folder->shown.vault, l->staged);
}

static void on_looked(struct worker_job *job, bool ran)
{
    struct late *l = container_of(job, struct late, job);
    struct docs *d = l->home;

    d->late_busy = false;
    if (ran && l->n > 0 && !d->stopping) {
        l->since_ms = loop_now_ms(d->start.loop);
        l->is_done = false;
        d->late_busy = true;
        take_up(l);
    } else if (ran && l->is_done) {
        late_drop(l);
    }
}

static void on_tick(void *arg)
{
    struct docs *d = arg;
    struct late *l;

    if (d->late_busy || list_empty(&d->late))
        return;
    l = list_entry(list_pop(&d->late), struct late, node);
    list_push(&d->late, &l->node); /* each in turn */
    l->is_done = loop_now_ms(d->start.loop) - l->since_ms >= VAULT_LATE_MS;
    l->job = (struct worker_job){.run = run_look, .done = on_looked};
    d->late_busy = worker_submit(d->files, &l->job);
}

void late_start(struct docs *d)
{
    if (d->tick)
        return;
    d->tick = loop_timer_new(d->start.loop, on_tick, d);
    loop_timer_start(d->tick, LATE_TICK_MS, LATE_TICK_MS);
}

void late_stop(struct docs *d)
{
    loop_timer_free(d->tick);
    d->tick = NULL;
}

/* Those nobody has written to for long enough go; the others are found again at the next start. */
void late_free(struct docs *d)
{
    while (!list_empty(&d->late)) {
        struct late *l = list_entry(d->late.next, struct late, node);
        l->is_done = loop_now_ms(d->start.loop) - l->since_ms >= LATE_SAFE_MS;
        run_look(&l->job);
        late_drop(l);
    }
}
