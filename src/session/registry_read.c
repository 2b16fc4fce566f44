/* SPDX-License-Identifier: Apache-2.0 */
/* Pages and totals, on the query lane.  They first wait for the fold of earlier events, so a client
 * sees its own latest changes in a list. */
#include "session/registry_impl.h"

#include "base/clock.h"

static void on_read(struct read_job *job)
{
    struct registry_call *c = container_of(job, struct registry_call, read);

    if (!job->ok)
        c->err = job->err;
    registry_finish(c, job->ok ? REGISTRY_OK : REGISTRY_FAILED);
}

static void query(struct registry_call *c, bool (*run)(struct read_job *job, struct store *store))
{
    c->read = (struct read_job){.run = run, .done = on_read};
    if (!lane_query(c->home->config.lanes, &c->read))
        registry_fail(c, "too many queries are waiting; try again shortly");
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    struct session_row *rows = NULL;

    if (!store_sessions_page(store, c->who, &c->filter, c->limit, c->mem, &rows, &c->n, &job->err))
        return false;
    for (size_t i = 0; i < c->n; i++) {
        session_row_apply_expiry(&rows[i], c->filter.now_ms);
        session_row_apply_idle(&rows[i], c->filter.now_ms, c->filter.idle_ms);
    }
    c->rows = rows;
    return true;
}

static void list_folded(struct registry_call *c)
{
    query(c, run_list);
}

void registry_list(struct registry *r, struct registry_call *c, const struct session_filter *filter,
                   unsigned limit)
{
    c->home = r;
    c->filter = *filter;
    c->limit = limit;
    c->n = 0;
    c->next = list_folded;
    registry_after_fold(c, STR_NONE);
}

static bool run_totals(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    return store_session_totals(store, c->who, clock_life_ms(), c->since_ms, &c->totals, &job->err);
}

static void totals_folded(struct registry_call *c)
{
    query(c, run_totals);
}

void registry_totals(struct registry *r, struct registry_call *c, int64_t since_ms)
{
    c->home = r;
    c->since_ms = since_ms;
    c->next = totals_folded;
    registry_after_fold(c, STR_NONE);
}

static bool run_executions(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    struct execution_row *rows = NULL;

    if (!store_executions_page(store, c->who, c->row->id, c->before, c->with_bodies, c->limit,
                               c->mem, &rows, &c->n, &job->err))
        return false;
    c->executions = rows;
    return true;
}

static void executions_folded(struct registry_call *c)
{
    query(c, run_executions);
}

static void executions_found(struct registry_call *c)
{
    registry_hold_row(c);
    c->next = executions_folded;
    registry_after_fold(c, c->row->handle);
}

void registry_executions(struct registry *r, struct registry_call *c, int64_t before,
                         bool with_bodies, unsigned limit)
{
    c->before = before;
    c->with_bodies = with_bodies;
    c->limit = limit;
    c->n = 0;
    c->next = executions_found;
    if (registry_find(r, c, false))
        executions_found(c);
}

static bool run_stored_answer(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    struct idempotency_row *row = NULL;

    if (!store_idempotency_get(store, c->who, c->text, c->mem, &row, &job->err))
        return false;
    c->stored_answer = row;
    return true;
}

void registry_stored_answer(struct registry *r, struct registry_call *c, struct str key)
{
    c->home = r;
    c->text = key;
    c->stored_answer = NULL;
    c->read = (struct read_job){.run = run_stored_answer, .done = on_read};
    if (!lane_lookup(r->config.lanes, &c->read))
        registry_fail(c, "too many lookups are waiting; try again shortly");
}
