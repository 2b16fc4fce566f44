/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes whose write failed: the call did happen, so its outcome is not given up while we live.
 * Each is kept with everything it points to and retried, all together, after 100 ms, then less and
 * less often up to every 5 s.  There are never more than calls were in flight when the store went
 * away, because exec_begin() refuses while it is gone (and by count, see AUDIT_KEPT_MAX).  Dies
 * with the process: the next start closes the intent as indeterminate.
 *
 * An event that comes again keeps the number of its first try where the store has it (chain.c), so
 * a commit of unknown fate is never recorded twice.  Loop thread, but for on_prepare. */
#include "audit/audit_impl.h"

#include "base/log.h"

#include <stdlib.h>

#define RETRY_FIRST_MS 100
#define RETRY_LAST_MS 5000

struct kept {
    struct list link; /* in audit.kept */
    struct write_job job;
    struct store_op op;
    struct event_row event;
    struct audit *audit;
    struct arena *mem; /* copies of all that the token pointed to */
    char *redacted;
    struct str body; /* the original, while not sealed */
    enum server_audit mode;
    bool sealed;
};

static void kept_free(struct kept *k)
{
    k->audit->n_kept--;
    arena_free(k->mem);
    free(k->redacted);
    free(k);
}

static void on_prepare(struct write_job *job)
{
    struct kept *k = container_of(job, struct kept, job);
    if (!k->sealed)
        audit_seal_body(k->audit, &k->event, k->body, k->mode, &k->redacted);
    k->sealed = true;
}

/* A round is over when every outcome of it has come back. */
static void end_round(struct audit *a)
{
    if (a->n_retrying > 0 || a->n_kept == 0)
        return;
    loop_timer_start(a->retry, a->retry_ms, 0);
    a->retry_ms = a->retry_ms * 2 < RETRY_LAST_MS ? a->retry_ms * 2 : RETRY_LAST_MS;
}

static void on_written(struct write_job *job)
{
    struct kept *k = container_of(job, struct kept, job);
    struct audit *a = k->audit;
    a->n_retrying--;
    if (job->ok && k->op.verdict == VERDICT_OK) {
        list_remove(&k->link);
        kept_free(k);
        a->retry_ms = RETRY_FIRST_MS;
        if (a->n_kept == 0)
            log_info("every kept outcome is durable");
    }
    end_round(a);
}

static void on_retry(void *arg)
{
    struct audit *a = arg;
    list_each(&a->kept, node)
    {
        struct kept *k = list_entry(node, struct kept, link);
        k->job =
            (struct write_job){.ops = &k->op, .n = 1, .prepare = on_prepare, .done = on_written};
        if (!lane_write(a->lanes, &k->job))
            break;
        a->n_retrying++;
    }
    end_round(a);
}

static void copy_texts(struct kept *k)
{
    struct event_row *e = &k->event;
    struct str *const texts[] = {&e->tenant,  &e->owner,   &e->session_id, &e->transport,
                                 &e->carrier, &e->server,  &e->method,     &e->tool,
                                 &e->era,     &e->outcome, &e->error,      &e->body};
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = arena_dup(k->mem, *texts[i]);
}

void audit_keep_outcome(struct audit *a, const struct exec *x)
{
    struct kept *k = xcalloc(1, sizeof(*k));
    k->audit = a;
    k->mem = arena_new(SIZE_MAX / 4);
    k->event = x->event;
    k->mode = x->mode;
    k->sealed = x->sealed;
    copy_texts(k);
    if (!k->sealed)
        k->body = arena_dup(k->mem, x->body);
    k->op = (struct store_op){.kind = OP_EVENT_APPEND, .event = &k->event};
    list_push(&a->kept, &k->link);
    if (++a->n_kept == 1)
        end_round(a);
}

void kept_init(struct audit *a)
{
    list_init(&a->kept);
    a->retry_ms = RETRY_FIRST_MS;
    a->retry = loop_timer_new(a->loop, on_retry, a);
}

void kept_release(struct audit *a)
{
    if (a->n_kept > 0)
        log_error("outcomes lost with this process; their calls will read indeterminate",
                  LI("outcomes", a->n_kept));
    for (struct list *node; (node = list_pop(&a->kept));)
        kept_free(list_entry(node, struct kept, link));
    loop_timer_free(a->retry);
}
