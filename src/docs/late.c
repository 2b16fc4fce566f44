/* SPDX-License-Identifier: Apache-2.0 */
/* Displaced files, for a minute: an editor that had one open may still write into it, and that is a
 * person's save like any other.  Then the change that displaced it is made again on what they
 * saved; where it does not apply any more, their text alone becomes the document.
 *
 * Every two seconds all of them are looked at, in one go and on a worker.  What was found in one is
 * taken up text by text before it is looked at again.  Agents that change much leave many behind:
 * past LATE_MANY those go early that nobody has open. */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define LATE_TICK_MS 2000
#define LATE_SAFE_MS 2000 /* unwritten for so long, a file is let go of at the end */
#define LATE_MANY 100

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
    bool is_busy;   /* looked at, or what was found is being taken up */
    bool is_untold; /* of what was found, something did not reach the history */
    /* Of a look: what it is to do, and what it found. */
    bool is_over, is_crowded, is_gone;
    struct arena *found; /* NULL: nothing */
    struct vault_version *versions;
    size_t n, at;
};

/* One look at all that are not busy. */
struct late_look {
    struct worker_job job;
    struct docs *home;
    struct late **all;
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

static struct late *late_new(struct docs *d, const struct docs_call *c, struct str path,
                             struct str staged)
{
    struct late *l = xcalloc(1, sizeof(*l));

    l->home = d;
    l->mem = arena_new(1u << 20);
    l->who = principal_dup(c->who, l->mem);
    l->folder = open_folder_of(c->place.folder);
    folder_ref(l->folder);
    l->path = arena_dup(l->mem, path);
    l->staged = arena_dup(l->mem, staged);
    l->author = arena_dup(l->mem, c->author);
    l->kind = arena_dup(l->mem, c->kind);
    l->reason = arena_dup(l->mem, c->reason);
    l->since_ms = loop_now_ms(d->start.loop);
    list_push(&d->late, &l->node);
    return l;
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

void late_add(struct docs *d, struct docs_call *c, struct str path)
{
    struct late *l;

    if (c->published.staged.n == 0)
        return;
    l = late_new(d, c, path, c->published.staged);
    if (c->published.n)
        memcpy(l->ours, c->published.versions[c->published.n - 1].sha256, sizeof(l->ours));
    /* A late save's own change is not for another time: it belongs to that save. */
    if (c->change && c->ok && c->change->run != run_late) {
        l->change = c->change;
        c->change_kept = true;
    }
}

/* What the document held then is not known: what is written late goes to the history only. */
void late_add_left(struct docs *d, struct docs_call *c, const struct vault_left *left)
{
    late_new(d, c, left->path, left->staged)->kind = STR("recovered");
}

/* Names are never given twice, in whichever folder. */
bool late_has(const struct docs *d, struct str staged)
{
    list_each(&d->late, node)
    {
        const struct late *l = list_entry(node, struct late, node);
        if (memmem(l->staged.p, l->staged.n, staged.p, staged.n))
            return true;
    }
    return false;
}

struct late_call {
    struct docs_call call;
    struct late_change change;
};

/* The service does this last of all. */
static void free_late(struct docs_change *change)
{
    struct late_change *lc = container_of(change, struct late_change, change);

    arena_free(container_of(lc, struct late_call, change)->call.mem);
}

static void take_up(struct late *l);

static void on_late_done(struct docs_call *call)
{
    struct late_call *lc = container_of(call, struct late_call, call);
    struct late *l = lc->change.late;

    if (call->ok && call->published.n)
        memcpy(l->ours, call->published.versions[call->published.n - 1].sha256, sizeof(l->ours));
    l->is_untold = l->is_untold || !call->is_told;
    docs_end(call);
    if (++l->at < l->n && !l->home->stopping) {
        take_up(l);
        return;
    }
    arena_free(l->found);
    l->found = NULL;
    l->is_busy = false;
    if (l->is_untold) { /* the file is still there, and is taken up from it */
        l->folder->is_owing = true;
        late_drop(l);
    }
}

/* Oldest first; each is in the history before the next one's turn. */
static void take_up(struct late *l)
{
    struct arena *mem = arena_new(DOCS_ARENA);
    struct late_call *lc = arena_new_of(mem, struct late_call);

    lc->change.change.run = run_late;
    lc->change.change.free = free_late;
    lc->change.late = l;
    lc->change.saved = l->versions[l->at].bytes;
    lc->call.who = &l->who;
    lc->call.mem = mem;
    lc->call.author = l->author;
    lc->call.kind = l->kind;
    lc->call.reason = l->reason;
    lc->call.change = &lc->change.change;
    lc->call.before = lc->change.saved;
    memcpy(lc->call.before_sha256, l->versions[l->at].sha256, sizeof(lc->call.before_sha256));
    lc->call.done = on_late_done;
    docs_begin(l->home, &lc->call);
    lc->call.place.folder = &l->folder->shown;
    lc->call.place.path = l->path;
    docs_change(l->home, &lc->call);
}

/* On the worker, and at the very end on the loop. */
static void look_at(struct late *l)
{
    struct vault *v = l->folder->shown.vault;
    struct arena *mem = arena_new(DOCS_ARENA);
    struct error err;

    l->n = l->at = 0;
    bool ok = vault_late(v, l->staged, mem, &l->versions, &l->n, &err);
    if (ok && l->n > 0) {
        l->found = mem;
        return;
    }
    arena_free(mem);
    l->is_gone =
        ok && (l->is_over || (l->is_crowded && vault_held(v, l->staged) == VAULT_HELD_BY_NONE));
    if (l->is_gone)
        vault_release(v, l->staged);
}

static void run_look(struct worker_job *job)
{
    struct late_look *look = container_of(job, struct late_look, job);

    for (size_t i = 0; i < look->n && !atomic_load(&look->home->stop); i++)
        look_at(look->all[i]);
}

static void on_looked(struct worker_job *job, bool ran unused_arg)
{
    struct late_look *look = container_of(job, struct late_look, job);
    struct docs *d = look->home;

    for (size_t i = 0; i < look->n; i++) {
        struct late *l = look->all[i];
        l->is_busy = false;
        if (l->is_gone) {
            late_drop(l);
        } else if (l->found && !d->stopping) {
            l->since_ms = loop_now_ms(d->start.loop);
            l->is_busy = true;
            take_up(l);
        }
    }
    free(look->all);
    free(look);
    d->late_busy = false;
}

static void start_look(struct docs *d)
{
    struct late_look *look = xcalloc(1, sizeof(*look));
    int64_t now = loop_now_ms(d->start.loop);
    size_t n = 0;

    list_each(&d->late, node)
    {
        n++;
    }
    look->home = d;
    look->all = xcalloc(n + 1, sizeof(struct late *));
    list_each(&d->late, node)
    {
        struct late *l = list_entry(node, struct late, node);
        if (l->is_busy)
            continue;
        l->is_busy = true;
        l->is_over = now - l->since_ms >= VAULT_LATE_MS;
        l->is_crowded = n > LATE_MANY && now - l->since_ms >= LATE_SAFE_MS;
        look->all[look->n++] = l;
    }
    look->job = (struct worker_job){.run = run_look, .done = on_looked};
    d->late_busy = true;
    if (!worker_submit(pool_worker(d->files), &look->job))
        on_looked(&look->job, false);
}

static void on_tick(void *arg)
{
    struct docs *d = arg;

    set_check(d);
    recover_owed(d);
    keep_tick(d);
    if (!d->late_busy && !list_empty(&d->late))
        start_look(d);
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

/* Those that nobody has open go, and where that cannot be told, those nobody has written to for
 * long enough; the others are found again at the next start. */
void late_free(struct docs *d)
{
    while (!list_empty(&d->late)) {
        struct late *l = list_entry(d->late.next, struct late, node);
        enum vault_holder holder = vault_held(l->folder->shown.vault, l->staged);
        bool is_old = loop_now_ms(d->start.loop) - l->since_ms >= LATE_SAFE_MS;
        l->is_over = holder == VAULT_HELD_BY_NONE || (holder == VAULT_HELD_UNKNOWN && is_old);
        l->is_crowded = false;
        if (!l->found)
            look_at(l);
        if (l->found)
            arena_free(l->found);
        late_drop(l);
    }
}
