/* SPDX-License-Identifier: Apache-2.0 */
/* Anchors: an event that names the ends of all chains, and a copy of the event in a second sink, so
 * that a cut tail is found.  One anchor at a time:
 *
 *   tick or audit_anchor() → write lane: body from the chain's heads, event committed
 *                          → query lane: line appended to the anchor file, synced → done
 *
 * The query lane writes the file, because no call waits for the copy; the loop never touches the
 * disk. */
#include "audit/audit_impl.h"

#include "audit/event_id.h"
#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"

#include <stdlib.h>

/* Events after the last anchor can be cut off unnoticed.  Under load these are the events of one
 * second. */
#define TICK_MS 1000

struct anchor_waiter {
    struct list link;
    bool next; /* asked while an anchor was being written: served by the next anchor */
    void (*done)(void *arg);
    void *arg;
};

static void anchor_start(struct audit *a);

/* note_bytes counts too: notes without a waiter may be queued ahead of the anchor, and
 * chain_count() does not include them yet. */
static bool is_due(const struct audit *a)
{
    return a->anchor.left || a->note_bytes > 0 || chain_count(a->chain) != a->anchor.covered;
}

/* Calls the callback of every request that waited for this anchor. */
static void finish(struct audit *a)
{
    struct list ready;
    list_init(&ready);
    list_each(&a->anchor.waiting, node)
    {
        struct anchor_waiter *w = list_entry(node, struct anchor_waiter, link);
        if (!w->next) {
            list_remove(node);
            list_push(&ready, node);
        }
        w->next = false;
    }
    bool again = a->anchor.again;
    a->anchor.busy = a->anchor.again = false;
    if (again)
        anchor_start(a);
    for (struct list *node; (node = list_pop(&ready));) {
        struct anchor_waiter *w = list_entry(node, struct anchor_waiter, link);
        w->done(w->arg);
        free(w);
    }
}

static void on_idle(struct loop_task *task)
{
    finish(container_of(task, struct audit, anchor.idle));
}

/* Query lane. */
static bool append_line(struct read_job *job, struct store *store)
{
    (void)store;
    struct audit *a = container_of(job, struct audit, anchor.copy);
    return anchor_file_append(&a->anchor.file, buf_str(&a->anchor.line), &job->err);
}

static void end_one(struct audit *a)
{
    if (a->anchor.left) {
        a->anchor.busy = false;
        anchor_start(a);
        return;
    }
    finish(a);
}

static void on_copied(struct read_job *job)
{
    struct audit *a = container_of(job, struct audit, anchor.copy);
    if (!job->ok)
        audit_failed(a, "anchor copy", &job->err);
    end_one(a);
}

static void copy_line(struct audit *a)
{
    struct anchor *an = &a->anchor;
    buf_reset(&an->line);
    chain_anchor_line(&an->event, &an->line);
    an->copy = (struct read_job){.run = append_line, .done = on_copied};
    if (lane_query(a->lanes, &an->copy))
        return;
    error_set(&an->copy.err, ERR_UNAVAILABLE, "too many queries are waiting");
    audit_failed(a, "anchor copy", &an->copy.err);
    end_one(a);
}

static void on_prepare(struct write_job *job)
{
    struct audit *a = container_of(job, struct audit, anchor.job);
    struct anchor *an = &a->anchor;
    buf_reset(&an->body);
    chain_anchor_body(a->chain, &an->body, &an->left);
    an->event.body = buf_str(&an->body);
    an->event.body_len = (int64_t)an->body.n;
    sha256(an->event.body, an->event.body_sha);
    memcpy(an->event.stored_sha, an->event.body_sha, sizeof(an->event.stored_sha));
}

static void on_written(struct write_job *job)
{
    struct audit *a = container_of(job, struct audit, anchor.job);
    if (!job->ok) {
        audit_failed(a, "anchor", &job->err);
        a->anchor.left = true; /* no head was anchored: the next tick tries again */
        finish(a);
        return;
    }
    a->anchor.covered = event_id_count(a->anchor.event.id);
    if (a->anchor_file)
        copy_line(a);
    else
        end_one(a);
}

static void anchor_start(struct audit *a)
{
    struct anchor *an = &a->anchor;
    an->busy = true;
    an->event = (struct event_row){
        .tenant = STR(CHAIN_SYSTEM_TENANT), .at_ms = clock_wall_ms(), .kind = EVENT_ANCHOR};
    an->op = (struct store_op){.kind = OP_EVENT_APPEND, .event = &an->event};
    an->job = (struct write_job){.ops = &an->op, .n = 1, .prepare = on_prepare, .done = on_written};
    if (is_due(a) && lane_write(a->lanes, &an->job))
        return;
    an->idle.fn = on_idle;
    loop_defer(a->loop, &an->idle);
}

static void on_tick(void *arg)
{
    struct audit *a = arg;
    if (!a->anchor.busy && is_due(a))
        anchor_start(a);
}

void audit_anchor(struct audit *a, void (*done)(void *arg), void *arg)
{
    if (done) {
        struct anchor_waiter *w = xcalloc(1, sizeof(*w));
        *w = (struct anchor_waiter){.next = a->anchor.busy, .done = done, .arg = arg};
        list_push(&a->anchor.waiting, &w->link);
    }
    if (a->anchor.busy)
        a->anchor.again = true;
    else
        anchor_start(a);
}

void audit_forget_anchors(struct audit *a, int64_t before_ms)
{
    a->anchor.file.removed_before_ms = before_ms;
}

void anchor_init(struct audit *a)
{
    list_init(&a->anchor.waiting);
    buf_init(&a->anchor.body, SIZE_MAX / 4); /* CHAIN_ANCHOR_HEADS bounds body and line */
    buf_init(&a->anchor.line, SIZE_MAX / 4);
    anchor_file_init(&a->anchor.file, a->anchor_file);
    a->anchor.left = chain_was_behind(a->chain); /* events of a process that was killed */
    a->tick = loop_timer_new(a->loop, on_tick, a);
    loop_timer_start(a->tick, TICK_MS, TICK_MS);
}

void anchor_release(struct audit *a)
{
    loop_timer_free(a->tick);
    for (struct list *node; (node = list_pop(&a->anchor.waiting));)
        free(list_entry(node, struct anchor_waiter, link));
    buf_release(&a->anchor.body);
    buf_release(&a->anchor.line);
}
