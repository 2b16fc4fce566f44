/* SPDX-License-Identifier: Apache-2.0 */
/* Intents with a commit of unknown fate: the connection broke before the store answered.  The call
 * was refused and never sent, but the store may have the intent, which would then read as open for
 * as long as the process lives.  When the store is back, each intent is looked up.  The intents
 * that the store has are closed as refused.
 *
 * Only a store on another machine leaves unknown commits.  Their number is bounded.  An intent
 * beyond the bound is closed as indeterminate, like the intents of a process that died.  Everything
 * runs on the loop thread, except on_run(), which runs on the write lane. */
#include "audit/audit_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define LOOK_MS 200

struct unknown_commit {
    struct list link;
    struct event_row outcome; /* outcome to append; exec is the intent's id */
    uint8_t intent_mac[32];
    bool stored; /* the store has the intent */
    struct arena *mem;
};

struct unknown_commits {
    struct audit *audit;
    struct list list,
        asking; /* struct unknown_commit: for the next lookup, and of the running one */
    size_t n;
    struct loop_timer *timer;
    struct read_job job;
    bool busy;
    size_t n_closed;
};

static void unknown_commit_free(struct unknown_commits *d, struct unknown_commit *one)
{
    d->n--;
    arena_free(one->mem);
    free(one);
}

void unknown_commits_free(struct unknown_commits *d)
{
    if (!d)
        return;
    list_move_all(&d->list, &d->asking);
    for (struct list *node; (node = list_pop(&d->list));)
        unknown_commit_free(d, list_entry(node, struct unknown_commit, link));
    loop_timer_free(d->timer);
    free(d);
}

static bool ask(struct store *store, struct unknown_commit *one, struct error *err)
{
    struct event_filter filter = {
        .kind = -1, .after = one->outcome.exec - 1, .before = one->outcome.exec + 1};
    struct arena *mem = arena_new(1 << 20);
    struct event_row *rows = NULL;
    size_t n = 0;
    bool ok = store_events_page(store, &filter, 1, mem, &rows, &n, err);
    if (ok)
        one->stored = n == 1 && crypto_equal(rows[0].mac, one->intent_mac, sizeof(one->intent_mac));
    arena_free(mem);
    return ok;
}

/* Runs on the write lane. */
static bool on_run(struct read_job *job, struct store *store)
{
    struct unknown_commits *d = container_of(job, struct unknown_commits, job);
    struct store_op *ops = xcalloc(d->n + 1, sizeof(*ops));
    size_t n = 0;
    bool ok = true;
    list_each(&d->asking, node)
    {
        struct unknown_commit *one = list_entry(node, struct unknown_commit, link);
        ok = ok && ask(store, one, &job->err);
        if (ok && one->stored)
            ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &one->outcome};
    }
    ok = ok && (n == 0 || audit_append(store, d->audit->chain, ops, n, &job->err));
    free(ops);
    d->n_closed = ok ? n : 0;
    return ok;
}

static void on_done(struct read_job *job)
{
    struct unknown_commits *d = container_of(job, struct unknown_commits, job);
    d->busy = false;
    if (!job->ok) {
        list_move_all(&d->list, &d->asking);
    } else if (d->n_closed > 0) {
        log_info("calls that were refused while the store was lost are now recorded as refused",
                 LI("calls", d->n_closed));
    }
    for (struct list *node; job->ok && (node = list_pop(&d->asking));)
        unknown_commit_free(d, list_entry(node, struct unknown_commit, link));
    if (!list_empty(&d->list))
        loop_timer_start(d->timer, LOOK_MS, 0);
}

static void on_look(void *arg)
{
    struct unknown_commits *d = arg;
    if (d->busy || list_empty(&d->list))
        return;
    list_move_all(&d->asking, &d->list);
    d->job = (struct read_job){.run = on_run, .done = on_done};
    d->busy = lanes_healthy(d->audit->lanes) && lane_maintain(d->audit->lanes, &d->job);
    if (d->busy)
        return;
    list_move_all(&d->list, &d->asking);
    loop_timer_start(d->timer, LOOK_MS, 0);
}

void unknown_commits_add(struct unknown_commits *d, const struct event_row *intent)
{
    if (d->n >= AUDIT_UNSAVED_MAX)
        return;
    struct unknown_commit *one = xcalloc(1, sizeof(*one));
    struct event_row *e = &one->outcome;
    one->mem = arena_new(SIZE_MAX / 4);
    *e = *intent;
    struct str *const texts[] = {&e->tenant, &e->owner,  &e->session_id, &e->transport, &e->carrier,
                                 &e->server, &e->method, &e->tool,       &e->era,       &e->client};
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(one->mem, *texts[i]);
    memcpy(one->intent_mac, intent->mac, sizeof(one->intent_mac));
    e->exec = intent->id;
    e->id = e->seq = 0;
    e->kind = EVENT_OUTCOME;
    e->at_ms = clock_wall_ms();
    e->duration_us = 0;
    e->outcome = STR("refused");
    e->error = STR("The store was lost before the call was sent; nothing ran.");
    e->body = e->record = e->tool_id = STR_NONE;
    e->body_len = -1;
    memset(e->body_sha, 0, sizeof(e->body_sha));
    memset(e->stored_sha, 0, sizeof(e->stored_sha));
    list_push(&d->list, &one->link);
    d->n++;
    if (!d->busy)
        loop_timer_start(d->timer, LOOK_MS, 0);
}

struct unknown_commits *unknown_commits_new(struct audit *a)
{
    struct unknown_commits *d = xcalloc(1, sizeof(*d));
    d->audit = a;
    list_init(&d->list);
    list_init(&d->asking);
    d->timer = loop_timer_new(a->loop, on_look, d);
    return d;
}
