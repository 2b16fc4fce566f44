/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the operations of a plan and applies their verdicts; see plan.h. */
#include "session/plan.h"

#include "base/clock.h"
#include "session/session_metrics.h"

static struct store_op end_replaced(const struct session_plan *p, struct arena *mem)
{
    struct session_row *row = arena_new_of(mem, struct session_row);

    *row = (struct session_row){
        .id = p->replaces->id,
        .tenant = p->replaces->tenant,
        .status = SESSION_EXPIRED,
        .created_ms = p->replaces->created_ms,
        .terminated_ms = clock_life_ms(),
        .termination_reason = STR("idle gap"),
    };
    return (struct store_op){.kind = OP_SESSION_END, .who = p->who, .session = row};
}

static struct store_op create_session(const struct session_plan *p, struct arena *mem)
{
    struct session_row *row = arena_new_of(mem, struct session_row);

    session_fill_row(p->session, row);
    /* The lane reads the row while other requests may change the session. */
    row->toolsets = arena_dup(mem, row->toolsets);
    row->setup = arena_dup(mem, row->setup);
    row->connection_metadata = p->connection;
    if (p->session->first && p->session->first->context.p)
        row->context_id = arena_dup(mem, str_of(p->session->first->context_id));
    return (struct store_op){
        .kind = OP_SESSION_CREATE, .who = p->who, .session = row, .max_counted = p->max_counted};
}

/* After the row of the session, because it belongs to that. */
static struct store_op first_context(const struct session_plan *p, struct arena *mem)
{
    struct context_row *row = arena_new_of(mem, struct context_row);
    const struct session *s = p->session;

    *row = (struct context_row){
        .id = arena_dup(mem, str_of(s->first->context_id)),
        .tenant = s->tenant,
        .session_id = s->id,
        .document = arena_dup(mem, s->first->context),
        .created_ms = s->created_ms,
        .updated_ms = s->created_ms,
    };
    return (struct store_op){.kind = OP_CONTEXT_PUT, .who = p->who, .context = row};
}

/* A lifetime that its template gave it counts from the creation. */
static int64_t promoted_until(const struct session_plan *p)
{
    const struct session *s = p->session;
    int64_t until = s->created_ms + s->ttl_ms;

    if (!s->ttl_ms)
        return s->last_used_ms + p->life_ms;
    return !s->provisional && s->expires_ms > until ? s->expires_ms : until;
}

static struct store_op promote_session(const struct session_plan *p, struct arena *mem)
{
    struct session_row *row = arena_new_of(mem, struct session_row);

    row->id = p->session->id;
    row->expires_ms = promoted_until(p);
    return (struct store_op){
        .kind = OP_SESSION_PROMOTE, .who = p->who, .session = row, .max_counted = p->max_counted};
}

static struct store_op bind_transport(const struct session_plan *p, struct arena *mem)
{
    struct transport_row *row = arena_new_of(mem, struct transport_row);

    transport_fill_row(p->binds, row);
    row->session_id = p->session->id;
    return (struct store_op){.kind = OP_TRANSPORT_LINK, .who = p->who, .transport = row};
}

size_t session_plan_ops(const struct session_plan *p, struct arena *mem, struct store_op *ops)
{
    size_t n = 0;

    if (p->session)
        session_touch(p->session);
    if (p->replaces) {
        session_touch(p->replaces);
        ops[n++] = end_replaced(p, mem);
    }
    if (p->session && !p->session->stored) {
        ops[n++] = create_session(p, mem);
        if (p->session->first && p->session->first->context.p)
            ops[n++] = first_context(p, mem);
    }
    if (p->session && p->promotes)
        ops[n++] = promote_session(p, mem);
    if (p->creates)
        ops[n++] = (struct store_op){.kind = OP_SESSION_CREATE,
                                     .who = p->who,
                                     .session = p->creates,
                                     .max_counted = p->max_counted};
    if (p->patches)
        ops[n++] = (struct store_op){
            .kind = OP_SESSION_PATCH, .who = p->who, .session = p->patches, .fields = p->fields};
    if (p->binds)
        ops[n++] = bind_transport(p, mem);
    if (p->ends)
        ops[n++] = (struct store_op){.kind = OP_SESSION_END, .who = p->who, .session = p->ends};
    return n;
}

static bool makes_session(enum op_kind kind)
{
    return kind == OP_SESSION_CREATE || kind == OP_SESSION_PROMOTE;
}

static void measure(const struct store_op *op)
{
    const struct session_row *row = op->session;

    if (makes_session(op->kind) && op->verdict == VERDICT_LIMIT)
        session_metric_create_failed(CREATE_OVER_LIMIT);
    else if (op->kind == OP_SESSION_CREATE && op->verdict == VERDICT_OK)
        session_report_created(row);
    else if (op->kind == OP_SESSION_END && op->verdict == VERDICT_OK)
        session_report_ended(row->id, row->tenant, row->status, row->termination_reason,
                             row->terminated_ms - row->created_ms);
}

/* Applies one committed operation to the session in memory. */
static void follow_op(struct session_plan *p, const struct store_op *op)
{
    struct session *s = p->session;

    if (op->kind == OP_SESSION_END && p->ends && op->verdict == VERDICT_OK)
        sessions_ended(p->home, op->session->tenant, op->session->id);
    else if (s && op->kind == OP_SESSION_CREATE && op->verdict == VERDICT_OK) {
        s->stored = true;
        session_first_free(s->first);
        s->first = NULL;
    } else if (s && op->kind == OP_SESSION_PROMOTE && op->verdict == VERDICT_OK) {
        s->provisional = false;
        s->counted = true;
        s->expires_ms = op->session->expires_ms;
    }
}

/* Two refusals count as OK: another process may have ended the replaced session, and another
 * request of this process may have created the row of a shared session. */
static bool is_fine(const struct session_plan *p, const struct store_op *op)
{
    if (op->kind == OP_CONTEXT_PUT) /* refused only beside a refused session */
        return true;
    if (op->kind == OP_SESSION_END)
        return !p->ends || op->verdict == VERDICT_OK;
    if (op->kind == OP_SESSION_CREATE && p->session)
        return op->verdict == VERDICT_OK ||
               (op->verdict == VERDICT_DUPLICATE && p->session->stored);
    return op->verdict == VERDICT_OK;
}

enum verdict session_plan_committed(struct session_plan *p, const struct store_op *ops, size_t n,
                                    bool ok)
{
    enum verdict first = VERDICT_OK, bound = VERDICT_FAILED;

    if (!ok) {
        if (p->creates || (p->session && !p->session->stored))
            session_metric_create_failed(CREATE_STORE_FAILED);
        return VERDICT_FAILED;
    }
    for (size_t i = 0; i < n; i++) {
        measure(&ops[i]);
        follow_op(p, &ops[i]);
        if (ops[i].kind == OP_TRANSPORT_LINK)
            bound = ops[i].verdict;
        if (first == VERDICT_OK && !is_fine(p, &ops[i]))
            first = ops[i].verdict;
    }
    if (p->replaces)
        session_forget(p->replaces);
    if (p->binds && first != VERDICT_LIMIT) {
        transport_link(p->binds, p->session);
        p->binds->link_stored = bound == VERDICT_OK;
    }
    session_plan_release(p);
    return first;
}

void session_plan_release(struct session_plan *p)
{
    session_unref(p->replaces);
    *p = (struct session_plan){0};
}
