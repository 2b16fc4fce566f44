/* SPDX-License-Identifier: Apache-2.0 */
/* Displaced files are kept for a minute: an editor that had one open may still write into it, and
 * that is a person's save like any other.  Then the change that displaced the file, and every
 * agent's change made on top of it, are applied again to the saved text.  A change that no longer
 * applies is left out.
 *
 * Every two seconds a worker examines all files that are not busy.  The texts found in a file are
 * processed one by one before it is examined again.  Agents that change much leave many files
 * behind: past LATE_MANY, files that no process has open are released early. */
#include "docs/docs_impl.h"

#include "base/clock.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define LATE_TICK_MS 2000
#define LATE_SAFE_MS 2000 /* time without a write before an early or a final release */
#define LATE_MANY 100

/* An agent's change, kept as long as a displaced file may need it again. */
struct made {
    struct docs_change *change;
    unsigned refs;
};

#define CHAIN_MAX 64 /* changes applied again to one late save; past that only the history has it */
struct chain_of_changes {
    struct made *of[CHAIN_MAX]; /* oldest first */
    size_t n;
};

struct late {
    struct list node;
    struct docs *home;
    struct arena *mem;
    struct principal who;
    struct open_folder *folder;
    struct str path, staged, author, kind, reason;
    /* Digests of the document before and after the change that displaced this file. */
    uint8_t base[SHA256_BYTES], ours[SHA256_BYTES];
    bool has_base; /* false: a person saved in between, or a late save was processed since */
    struct chain_of_changes changes; /* turned the displaced text into `ours` */
    int64_t since_ms;
    bool is_busy;       /* being examined, or its texts are being processed */
    bool is_unrecorded; /* a text that was found did not reach the history */
    /* Of an examination: its parameters and its result. */
    bool is_over, is_crowded, is_gone;
    struct arena *found; /* NULL: no text was found */
    struct vault_version *versions;
    size_t n, at;
};

/* One examination of all files that are not busy. */
struct late_look {
    struct worker_job job;
    struct docs *home;
    struct late **all;
    size_t n;
};

static void chain_add(struct chain_of_changes *c, struct made *m)
{
    m->refs++;
    c->of[c->n++] = m;
}

static void chain_release(struct chain_of_changes *c)
{
    while (c->n > 0) {
        struct made *m = c->of[--c->n];
        if (--m->refs == 0) {
            m->change->free(m->change);
            free(m);
        }
    }
}

static void late_drop(struct late *l)
{
    list_remove(&l->node);
    chain_release(&l->changes);
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

/* The late save, with those changes applied again that still apply. */
struct late_change {
    struct docs_change change;
    struct late *late; /* valid until the call is done */
    struct str saved;
    /* Set at the call's turn: the changes that led from the displaced text to the document's text,
     * and the digest of that text if there was no other change. */
    struct chain_of_changes changes;
    uint8_t tip[SHA256_BYTES];
    bool is_made; /* the changes were applied again to the save */
};

static bool run_late(struct docs_change *change, struct str bytes, struct arena *mem,
                     struct str *ret, struct error *err unused_arg)
{
    struct late_change *lc = container_of(change, struct late_change, change);
    uint8_t now[SHA256_BYTES];
    struct str text = lc->saved;
    struct error why;

    sha256(bytes, now);
    lc->is_made = memcmp(now, lc->tip, sizeof(now)) == 0;
    if (!lc->is_made) {
        *ret = bytes; /* the document changed since: it stays; the history has the late save */
        return true;
    }
    for (size_t i = 0; i < lc->changes.n; i++) {
        struct docs_change *again = lc->changes.of[i]->change;
        struct str next;
        if (again->run(again, text, mem, &next, &why))
            text = next;
    }
    *ret = text;
    return true;
}

/* Changes of one document run one after another, so at this call's turn `late` has all earlier
 * ones. */
static void follow(struct late_change *lc)
{
    const struct late *l = lc->late;

    lc->changes.n = 0;
    for (size_t i = 0; i < l->changes.n; i++)
        chain_add(&lc->changes, l->changes.of[i]);
    memcpy(lc->tip, l->ours, sizeof(lc->tip));
    list_each(&l->home->late, node)
    {
        const struct late *next = list_entry(node, struct late, node);
        if (next == l || next->folder != l->folder || !str_eq(next->path, l->path) ||
            !next->has_base || next->changes.n != 1 || lc->changes.n == CHAIN_MAX ||
            memcmp(next->base, lc->tip, sizeof(lc->tip)) != 0)
            continue;
        chain_add(&lc->changes, next->changes.of[0]);
        memcpy(lc->tip, next->ours, sizeof(lc->tip));
    }
}

void late_add(struct docs *d, struct docs_call *c, struct str path)
{
    struct late *l;

    if (c->published.staged.n == 0)
        return;
    l = late_new(d, c, path, c->published.staged);
    if (c->published.n)
        memcpy(l->ours, c->published.versions[c->published.n - 1].sha256, sizeof(l->ours));
    l->has_base = c->published.n == 2 && c->published.versions[1].is_ours;
    if (l->has_base)
        memcpy(l->base, c->published.versions[0].sha256, sizeof(l->base));
    /* The change of a late save is not kept: it belongs to that save only. */
    if (c->change && c->ok && c->change->run != run_late) {
        struct made *m = xcalloc(1, sizeof(*m));
        m->change = c->change;
        c->change_detached = true;
        chain_add(&l->changes, m);
    }
}

/* The document's text at that time is not known, so late saves go to the history only. */
void late_add_left(struct docs *d, struct docs_call *c, const struct vault_leftover *left)
{
    late_new(d, c, left->path, left->staged)->kind = STR("recovered");
}

/* Staged names are unique over all folders. */
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

/* The service calls this last of all. */
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

    if (call->ok && call->published.n && lc->change.is_made) {
        struct chain_of_changes before = l->changes;
        memcpy(l->ours, call->published.versions[call->published.n - 1].sha256, sizeof(l->ours));
        l->changes = lc->change.changes;
        l->has_base = false;
        lc->change.changes = before;
    }
    chain_release(&lc->change.changes);
    l->is_unrecorded = l->is_unrecorded || !call->is_recorded;
    docs_end(call);
    if (++l->at < l->n && !l->home->stopping) {
        take_up(l);
        return;
    }
    arena_free(l->found);
    l->found = NULL;
    l->is_busy = false;
    if (l->is_unrecorded) { /* the file still exists; recovery processes it */
        l->folder->is_owing = true;
        late_drop(l);
    }
}

static void late_begin(struct docs_call *call)
{
    follow(&container_of(call, struct late_call, call)->change);
    change_begin(call);
}

/* Oldest first; each text is in the history before the turn of the next. */
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
    lc->call.in_line = true;
    lc->call.begin = late_begin;
    change_enter(&lc->call);
}

/* Runs on the worker, and in late_free() on the loop. */
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

/* Releases files that no process has open.  If that is unknown, it releases files that were not
 * written to for LATE_SAFE_MS.  Recovery finds the others at the next start. */
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
