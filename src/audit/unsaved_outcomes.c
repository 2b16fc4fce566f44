/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes that could not be written.  The call was executed, so its outcome is retried for as long
 * as the process lives.  Each outcome is copied with everything it points to.  All are retried
 * together: after 100 ms, then at growing intervals up to 5 s.  Their number is at most the number
 * of calls in flight when the store failed, because exec_begin() refuses new calls until the store
 * is back, and when AUDIT_UNSAVED_MAX outcomes wait.
 *
 *                      with a spool
 *     job failed ──▶ being spooled ──▶ waiting (in audit.unsaved) ⇄ being retried ──▶ durable
 *           └──────────────────────────────┘
 *                     without a spool
 *
 * Without a spool, unsaved outcomes are lost with the process, and the next start closes their
 * intents as indeterminate.  With a spool, they are on the local disk before the call is answered,
 * and the next start writes them to the store first (drain.c).
 *
 * A retried event keeps the number of its first try if the store already has it (chain.c), so an
 * outcome is never recorded twice.  Everything runs on the loop thread, except on_prepare(). */
#include "audit/audit_impl.h"

#include "base/log.h"

#include <stdlib.h>

#define RETRY_FIRST_MS 100
#define RETRY_LAST_MS 5000
#define LOOK_MS 100 /* with a spool: interval of checks whether the store is back */

struct unsaved_outcome {
    struct list link; /* in audit.unsaved */
    struct write_job job;
    struct store_op ops[2]; /* the undelivered result, if any, then the event */
    size_t n_ops;
    struct event_row event;
    struct undelivered_row undelivered; /* id 0: no undelivered result */
    struct principal who;               /* owner of the undelivered result */
    struct audit *audit;
    struct arena *mem; /* copies of everything that the token pointed to */
    char *redacted;
    struct str body; /* the original bytes, until sealed */
    struct own_secrets own;
    struct body_rule rule;
    bool sealed;
    bool spooled;
    struct spool_put put;
    struct exec *token; /* waits until the outcome is spooled */
    void (*done)(struct exec *x, const struct error *err);
};

static void unsaved_outcome_free(struct unsaved_outcome *k)
{
    k->audit->n_unsaved--;
    metric_set(k->audit->waiting, (int64_t)k->audit->n_unsaved);
    arena_free(k->mem);
    own_secrets_unref(&k->own);
    free(k->redacted);
    free(k);
}

static void on_prepare(struct write_job *job)
{
    struct unsaved_outcome *k = container_of(job, struct unsaved_outcome, job);
    if (!k->sealed)
        audit_seal_event(k->audit, k->audit->redactor, &k->own, &k->event, k->body, k->rule,
                         &k->redacted);
    k->sealed = true;
}

/* Ends the round once every outcome in it has been answered. */
static void end_round(struct audit *a)
{
    if (a->n_retrying > 0 || list_empty(&a->unsaved))
        return;
    loop_timer_start(a->retry, a->retry_ms, 0);
    a->retry_ms = a->retry_ms * 2 < RETRY_LAST_MS ? a->retry_ms * 2 : RETRY_LAST_MS;
}

static void on_written(struct write_job *job)
{
    struct unsaved_outcome *k = container_of(job, struct unsaved_outcome, job);
    struct audit *a = k->audit;
    a->n_retrying--;
    if (job->ok && k->ops[k->n_ops - 1].verdict == VERDICT_OK) {
        list_remove(&k->link);
        if (k->spooled)
            spooler_take(a->spooler, k->event.exec);
        unsaved_outcome_free(k);
        a->retry_ms = RETRY_FIRST_MS;
        if (a->n_unsaved == 0)
            log_info("every unsaved outcome is now durable");
    }
    end_round(a);
}

static void start_round(struct audit *a)
{
    loop_timer_stop(a->retry);
    list_each(&a->unsaved, node)
    {
        struct unsaved_outcome *k = list_entry(node, struct unsaved_outcome, link);
        k->job = (struct write_job){
            .ops = k->ops, .n = k->n_ops, .prepare = on_prepare, .done = on_written};
        if (!lane_write(a->lanes, &k->job))
            break;
        a->n_retrying++;
    }
    end_round(a);
}

/* With a spool, waits until the lanes are healthy: the write lane notices by itself when the store
 * is back, and retrying every outcome before that would only keep it busy. */
static void on_retry(void *arg)
{
    struct audit *a = arg;
    if (a->spooler && !lanes_healthy(a->lanes))
        loop_timer_start(a->retry, LOOK_MS, 0);
    else
        start_round(a);
}

bool unsaved_outcomes_go_first(struct audit *a)
{
    if (!a->spooler)
        return true;
    if (a->n_spooling > 0 || !lanes_healthy(a->lanes))
        return false;
    if (a->n_unsaved > 0 && a->n_retrying == 0)
        start_round(a);
    return true;
}

static void wait_for_store(struct unsaved_outcome *k)
{
    struct audit *a = k->audit;
    k->n_ops = 0;
    if (k->undelivered.id != 0)
        k->ops[k->n_ops++] = (struct store_op){
            .kind = OP_UNDELIVERED_PUT, .who = &k->who, .undelivered = &k->undelivered};
    k->ops[k->n_ops++] = (struct store_op){.kind = OP_EVENT_APPEND, .event = &k->event};
    bool first = list_empty(&a->unsaved);
    list_push(&a->unsaved, &k->link);
    if (first)
        end_round(a);
}

/* Returns the op that stores the undelivered result, from the ops that were to be committed with
 * the outcome. */
static struct store_op *undelivered_of(struct exec *x)
{
    for (size_t i = 0; i + 1 < x->job.n; i++)
        if (x->ops[i].kind == OP_UNDELIVERED_PUT)
            return &x->ops[i];
    return NULL;
}

static void on_spooled(struct spool_put *put, const struct error *err)
{
    struct unsaved_outcome *k = container_of(put, struct unsaved_outcome, put);
    k->audit->n_spooling--;
    k->spooled = err == NULL;
    k->sealed = put->sealed;
    if (put->sealed) {
        k->event = put->one.event;
        k->redacted = put->redacted;
    }
    struct exec *token = k->token;
    k->token = NULL;
    if (err) {
        audit_failed(k->audit, "spooled outcome", err);
        k->undelivered.id = 0; /* its owner learns that the result was not stored */
    } else if (k->undelivered.id != 0) {
        undelivered_of(token)->verdict = VERDICT_OK;
    }
    wait_for_store(k);
    k->done(token, err);
}

static void put_to_spool(struct unsaved_outcome *k, const struct exec *x)
{
    k->put = (struct spool_put){.one = {.event = k->event, .undelivered = k->undelivered},
                                .body = k->body,
                                .own = k->own,
                                .rule = k->rule,
                                .sealed = k->sealed,
                                .done = on_spooled};
    memcpy(k->put.one.intent_mac, x->intent_mac, sizeof(x->intent_mac));
    k->audit->n_spooling++;
    spooler_put(k->audit->spooler, &k->put);
}

static void copy_texts(struct unsaved_outcome *k)
{
    struct event_row *e = &k->event;
    struct str *const texts[] = {&e->tenant, &e->owner,  &e->session_id, &e->transport, &e->carrier,
                                 &e->server, &e->method, &e->tool,       &e->era,       &e->outcome,
                                 &e->error,  &e->body,   &e->tool_id,    &e->client};
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(k->mem, *texts[i]);
}

/* Sealed bytes are copied too: their owner frees them when the call has ended. */
static void copy_undelivered(struct unsaved_outcome *k, struct exec *x)
{
    const struct store_op *op = undelivered_of(x);
    struct undelivered_row *u = &k->undelivered;
    if (!op)
        return;
    *u = *op->undelivered;
    u->tenant = k->event.tenant;
    u->owner = k->event.owner;
    u->session_id = arena_dup(k->mem, u->session_id);
    u->sealed = arena_dup(k->mem, u->sealed);
    k->who = (struct principal){.tenant = u->tenant, .owner = u->owner};
}

void audit_retry_outcome(struct audit *a, struct exec *x,
                         void (*done)(struct exec *x, const struct error *err))
{
    struct unsaved_outcome *k = xcalloc(1, sizeof(*k));
    k->audit = a;
    k->mem = arena_new(SIZE_MAX / 4);
    if (!x->sealed && x->own.credential.p)
        arena_wipe_later(k->mem);
    k->event = x->event;
    k->rule = (struct body_rule){x->mode, x->max_body};
    k->sealed = x->sealed;
    copy_texts(k);
    if (!k->sealed) {
        k->body = arena_dup(k->mem, x->body);
        k->own = x->own;
        own_secrets_ref(&k->own);
        k->own.credential = arena_dup(k->mem, x->own.credential);
    }
    metric_set(a->waiting, (int64_t)++a->n_unsaved);
    if (a->spooler) {
        k->token = x;
        k->done = done;
        copy_undelivered(k, x);
        put_to_spool(k, x);
    } else {
        wait_for_store(k);
        done(x, &x->job.err);
    }
}

void unsaved_outcomes_init(struct audit *a)
{
    list_init(&a->unsaved);
    a->retry_ms = RETRY_FIRST_MS;
    a->retry = loop_timer_new(a->loop, on_retry, a);
}

void unsaved_outcomes_release(struct audit *a)
{
    size_t lost = 0, spooled = 0;
    for (struct list *node; (node = list_pop(&a->unsaved));) {
        struct unsaved_outcome *k = list_entry(node, struct unsaved_outcome, link);
        *(k->spooled ? &spooled : &lost) += 1;
        unsaved_outcome_free(k);
    }
    if (lost > 0)
        log_error(
            "outcomes are lost with this process; their calls will be recorded as indeterminate",
            LI("outcomes", lost));
    if (spooled > 0)
        log_warn("outcomes wait in spool.db; the next start writes them to the store",
                 LI("outcomes", spooled));
    loop_timer_free(a->retry);
}
