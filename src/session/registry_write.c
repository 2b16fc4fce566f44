/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of sessions.  Each change is one batch on the write lane: the change itself, and the
 * answer to store (Idempotency-Key).  Then the session in memory is updated, before `done` is
 * called. */
#include "session/registry_impl.h"

#include "base/clock.h"
#include "session/session_metrics.h"

static const enum registry_result meanings[] = {
    [VERDICT_OK] = REGISTRY_OK,
    [VERDICT_DUPLICATE] = REGISTRY_DUPLICATE,
    [VERDICT_LIMIT] = REGISTRY_LIMIT,
    [VERDICT_MISSING] = REGISTRY_MISSING,
    [VERDICT_NOT_ACTIVE] = REGISTRY_NOT_ACTIVE,
    [VERDICT_STALE] = REGISTRY_STALE,
    [VERDICT_FAILED] = REGISTRY_FAILED,
};

/* The combined result of the verdicts: the first refusal that is not the consequence of another. */
static enum registry_result meaning_of(const struct write_job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        const struct store_op *op = &job->ops[i];
        if (op->verdict == VERDICT_OK || op->verdict == VERDICT_FAILED)
            continue;
        return op->kind == OP_IDEMPOTENCY_PUT ? REGISTRY_ONCE : meanings[op->verdict];
    }
    return job->ok ? REGISTRY_OK : REGISTRY_FAILED;
}

static void on_written(struct write_job *job)
{
    struct registry_call *c = container_of(job, struct registry_call, write);

    c->result = meaning_of(job);
    if (c->result == REGISTRY_FAILED)
        c->err = job->err;
    if (c->n_plan)
        (void)session_plan_committed(&c->plan, job->ops, c->n_plan, c->result != REGISTRY_FAILED);
    c->n_plan = 0;
    c->next(c);
}

void registry_write(struct registry_call *c, size_t n, void (*written)(struct registry_call *c))
{
    c->next = written;
    if (c->event) {
        c->ops[n - 1].required = true;
        c->ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .who = c->who, .event = c->event};
    }
    if (c->once) {
        c->ops[n - 1].required = true;
        c->ops[n++] = (struct store_op){
            .kind = OP_IDEMPOTENCY_PUT, .who = c->who, .idempotency = c->once, .required = true};
    }
    c->write = (struct write_job){.ops = c->ops,
                                  .n = n,
                                  .grows = c->ops[0].kind == OP_SESSION_CREATE ||
                                           c->ops[0].kind == OP_CONTEXT_PUT,
                                  .done = on_written};
    if (!lane_write(c->home->config.lanes, &c->write))
        registry_fail(c, "too much is waiting for the store; try again shortly");
}

/* The store has replied.  Even after a refusal a cached row may be stale. */
static void change_done(struct registry_call *c)
{
    registry_touch(c, c->row, false);
    c->done(c);
}

static void begin(struct registry_call *c, struct store_op op,
                  void (*written)(struct registry_call *c))
{
    op.who = c->who;
    c->ops[0] = op;
    registry_write(c, 1, written);
}

/* Writes c->plan. */
static void begin_plan(struct registry_call *c, void (*written)(struct registry_call *c))
{
    c->plan.who = c->who;
    c->plan.home = c->home->config.sessions;
    c->n_plan = session_plan_ops(&c->plan, c->mem, c->ops);
    registry_write(c, c->n_plan, written);
}

/* Reads the context, to check that it belongs to the tenant. */
static bool run_context(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    return store_context_get(store, c->who, c->change.context_id, c->mem, &c->context_row,
                             &job->err);
}

static void on_context(struct read_job *job)
{
    struct registry_call *c = container_of(job, struct registry_call, read);

    if (!job->ok) {
        c->err = job->err;
        registry_finish(c, REGISTRY_FAILED);
    } else if (!c->context_row) {
        registry_finish(c, REGISTRY_NO_CONTEXT);
    } else {
        c->next(c);
    }
}

static void check_context(struct registry_call *c, void (*then)(struct registry_call *c))
{
    c->next = then;
    if (!c->change.context_id.p) {
        then(c);
        return;
    }
    c->context_row = NULL;
    c->read = (struct read_job){.run = run_context, .done = on_context};
    if (!lane_lookup(c->home->config.lanes, &c->read))
        registry_fail(c, "too many lookups are waiting; try again shortly");
}

/* Reads the number of counted sessions of the tenant; an error is ignored. */
static bool run_count(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    struct tenant_row *tenant = NULL;

    if (store_tenant_get(store, c->who->tenant, c->mem, &tenant, &job->err) && tenant)
        c->counted = tenant->counted_sessions;
    return true;
}

static void on_counted(struct read_job *job)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    c->done(c);
}

static void count_tenant(struct registry_call *c)
{
    c->counted = -1;
    c->read = (struct read_job){.run = run_count, .done = on_counted};
    if (!lane_lookup(c->home->config.lanes, &c->read))
        c->done(c);
}

static void created(struct registry_call *c)
{
    const struct session_row *row = &c->change;

    if (c->result == REGISTRY_OK) {
        registry_touch(c, row, false);
        registry_remember(c, row);
        c->found = *row;
        c->row = &c->found;
        count_tenant(c);
        return;
    }
    c->done(c);
}

/* The session and its first document are written together, or neither is. */
static size_t add_context(struct registry_call *c, size_t n)
{
    c->new_context = (struct context_row){
        .id = c->change.context_id,
        .tenant = c->who->tenant,
        .session_id = c->change.id,
        .document = c->first_context,
        .created_ms = c->change.created_ms,
        .updated_ms = c->change.created_ms,
    };
    c->ops[n - 1].required = true;
    c->ops[n] = (struct store_op){
        .kind = OP_CONTEXT_PUT, .who = c->who, .context = &c->new_context, .required = true};
    return n + 1;
}

static void create_now(struct registry_call *c)
{
    c->plan = (struct session_plan){.creates = &c->change,
                                    .max_counted = c->max_counted,
                                    .who = c->who,
                                    .home = c->home->config.sessions};
    c->n_plan = session_plan_ops(&c->plan, c->mem, c->ops);
    registry_write(c, c->first_context.p ? add_context(c, c->n_plan) : c->n_plan, created);
}

void registry_create(struct registry *r, struct registry_call *c, const struct session_row *row,
                     int64_t max_counted)
{
    c->home = r;
    c->change = *row;
    c->change.tenant = c->who->tenant;
    c->change.owner = c->who->owner;
    c->max_counted = max_counted;
    if (c->first_context.p)
        create_now(c);
    else
        check_context(c, create_now);
}

static void patch_now(struct registry_call *c)
{
    c->change.id = c->row->id;
    c->change.version = c->version;
    c->plan = (struct session_plan){.patches = &c->change, .fields = c->fields};
    begin_plan(c, change_done);
}

static void patch_found(struct registry_call *c)
{
    registry_hold_row(c);
    check_context(c, patch_now);
}

void registry_patch(struct registry *r, struct registry_call *c, const struct session_row *change,
                    unsigned fields, int64_t version)
{
    c->change = *change;
    c->fields = fields;
    c->version = version;
    c->next = patch_found;
    if (registry_find(r, c, false))
        patch_found(c);
}

static void ended(struct registry_call *c)
{
    struct registry *r = c->home;
    const struct session_row *row = c->row;

    registry_touch(c, row, false);
    if (c->result == REGISTRY_OK && r->config.on_ended)
        r->config.on_ended(r->config.arg, arena_printf(c->mem, "s:%.*s", STR_ARG(row->id)));
    c->done(c);
}

static void end_found(struct registry_call *c)
{
    registry_hold_row(c);
    c->change.id = c->row->id;
    c->change.tenant = c->row->tenant;
    c->change.created_ms = c->row->created_ms;
    c->plan = (struct session_plan){.ends = &c->change};
    begin_plan(c, ended);
}

void registry_end(struct registry *r, struct registry_call *c, struct str reason)
{
    c->change = (struct session_row){
        .status = SESSION_TERMINATED,
        .termination_reason = reason,
        .terminated_ms = clock_life_ms(),
    };
    c->next = end_found;
    if (registry_find(r, c, false))
        end_found(c);
}

static void used(struct registry_call *c)
{
    if (c->result == REGISTRY_OK)
        sessions_moved(c->home->config.sessions, c->row->tenant, c->row->id, &c->change);
    change_done(c);
}

static void use_found(struct registry_call *c)
{
    registry_hold_row(c);
    c->change.id = c->row->id;
    begin(c, (struct store_op){.kind = OP_SESSION_USE, .session = &c->change}, used);
}

void registry_use(struct registry *r, struct registry_call *c)
{
    c->change = (struct session_row){.last_activity_ms = clock_life_ms()};
    c->next = use_found;
    if (registry_find(r, c, false))
        use_found(c);
}

static void refresh_found(struct registry_call *c)
{
    registry_hold_row(c);
    c->change.id = c->row->id;
    begin(c, (struct store_op){.kind = OP_SESSION_REFRESH, .session = &c->change}, used);
}

void registry_refresh(struct registry *r, struct registry_call *c, int64_t expires_ms,
                      int64_t ttl_ms)
{
    c->change = (struct session_row){.expires_ms = expires_ms, .ttl_ms = ttl_ms};
    c->next = refresh_found;
    if (registry_find(r, c, false))
        refresh_found(c);
}

/* Records. */

static void drop_secrets(struct registry_call *c)
{
    known_unref(c->own.session);
    c->own.session = NULL;
}

static void recorded(struct audit_record *record)
{
    struct registry_call *c = record->user;

    drop_secrets(c);
    c->result = meaning_of(&record->job);
    if (c->result == REGISTRY_FAILED)
        c->err = record->job.err;
    if (c->result == REGISTRY_OK) {
        sessions_moved(c->home->config.sessions, c->row->tenant, c->row->id, &c->change);
        for (size_t i = 0; i < c->n_reported; i++)
            session_metric_executed(c->row->tenant, c->reported[i].tool, c->reported[i].tokens);
    }
    c->done(c);
}

static void record_now(struct registry_call *c)
{
    struct store_op once = {
        .kind = OP_IDEMPOTENCY_PUT, .who = c->who, .idempotency = c->once, .required = true};
    struct audit_record_what what = {
        .who = c->who,
        .session = c->row,
        .at_ms = c->change.last_activity_ms,
        .reported = c->reported,
        .n = c->n_reported,
        .own = c->own,
        .extra = c->once ? &once : NULL,
        .n_extra = c->once ? 1 : 0,
    };

    registry_touch(c, c->row, true); /* before a fold can be requested that misses this event */
    c->record = audit_record_new(c->home->config.audit, &what, c->mem);
    c->record->user = c;
    c->record->done = recorded;
    c->record->job.grows = true;
    if (!lane_write(c->home->config.lanes, &c->record->job)) {
        drop_secrets(c);
        registry_fail(c, "too much is waiting for the store; try again shortly");
    }
}

static void on_secrets(struct secrets_job *j)
{
    struct registry_call *c = j->user;

    if (!j->ok) {
        c->err = j->err;
        registry_finish(c, REGISTRY_FAILED);
        return;
    }
    c->own.session = j->known;
    record_now(c);
}

/* The reported texts may contain the secrets of the session.  A session in memory has its current
 * credentials. */
static void know_secrets(struct registry_call *c)
{
    const struct session_row *row = c->row;
    const struct session *s = sessions_by_id(c->home->config.sessions, row->tenant, row->id);
    struct secrets_texts texts = {row->tenant, row->id, row->sealed_auth, row->sealed_context};

    if (s)
        texts = secrets_texts_of(s);
    if (likely(!texts.auth.p && !texts.context.p)) {
        record_now(c);
        return;
    }
    struct secrets_job *j = arena_new_of(c->mem, struct secrets_job);
    j->done = on_secrets;
    j->user = c;
    if (!secrets_find(c->home->config.secrets, &texts, j))
        return;
    if (j->ok)
        on_secrets(j);
    else
        registry_fail(c, j->err.text);
}

static bool run_tools(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);

    c->tools_known = true;
    for (size_t i = 0; i < c->n_reported && c->tools_known; i++)
        if (c->reported[i].tool_id.p &&
            !store_tool_known(store, c->who, c->reported[i].tool_id, &c->tools_known, &job->err))
            return false;
    return true;
}

static void on_tools(struct read_job *job)
{
    struct registry_call *c = container_of(job, struct registry_call, read);

    if (!job->ok) {
        c->err = job->err;
        registry_finish(c, REGISTRY_FAILED);
    } else if (!c->tools_known) {
        registry_finish(c, REGISTRY_NO_TOOL);
    } else {
        know_secrets(c);
    }
}

static void record_found(struct registry_call *c)
{
    bool names_tools = false;

    registry_hold_row(c);
    for (size_t i = 0; i < c->n_reported; i++)
        names_tools = names_tools || c->reported[i].tool_id.p;
    if (!names_tools) {
        know_secrets(c);
        return;
    }
    c->read = (struct read_job){.run = run_tools, .done = on_tools};
    if (!lane_lookup(c->home->config.lanes, &c->read))
        registry_fail(c, "too many lookups are waiting; try again shortly");
}

void registry_record(struct registry *r, struct registry_call *c,
                     const struct reported_execution *reported, size_t n)
{
    c->reported = reported;
    c->n_reported = n;
    c->change = (struct session_row){.last_activity_ms = clock_life_ms()};
    c->next = record_found;
    if (registry_find(r, c, false))
        record_found(c);
}
