/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, idempotency rows, tools and totals in SQLite. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

struct context_state {
    bool found, live, unnamed, foreign;
    int64_t version; /* 0: there is no document yet */
};

static bool context_state(struct sq_batch *batch, const struct store_op *op,
                          struct context_state *ret, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_CONTEXT_STATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->context->session_id);
    sq_text(&b, op->who->tenant);
    sq_owner(&b, op->who);
    sq_int(&b, batch->now_ms);
    sq_text(&b, op->context->id);
    if (!sq_step(batch->s, st, &ret->found, err))
        return false;
    if (ret->found) {
        struct sq_row r = {.st = st};
        ret->live = sq_get_int(&r);
        ret->unnamed = sq_get_int(&r);
        ret->version = sq_get_int(&r);
        ret->foreign = sq_get_int(&r);
    }
    sq_reset(st);
    return true;
}

static bool context_write(struct sq_batch *batch, const struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_CONTEXT_PUT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->context->session_id);
    sq_text(&b, op->context->id);
    sq_text(&b, op->context->document);
    sq_int(&b, op->context->created_ms);
    sq_int(&b, op->context->updated_ms);
    return sq_run(batch->s, st, err);
}

static bool session_take_context(struct sq_batch *batch, const struct store_op *op,
                                 struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_CONTEXT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->context->session_id);
    sq_text(&b, op->context->id);
    return sq_run(batch->s, st, err);
}

static bool context_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    struct context_state state = {0};
    int64_t expected = op->context->version;
    if (!context_state(batch, op, &state, err))
        return false;
    op->verdict = !state.found                                 ? VERDICT_MISSING
                  : !state.live                                ? VERDICT_NOT_ACTIVE
                  : state.foreign                              ? VERDICT_DUPLICATE
                  : expected >= 0 && expected != state.version ? VERDICT_STALE
                                                               : VERDICT_OK;
    if (op->verdict != VERDICT_OK)
        return true;
    return context_write(batch, op, err) &&
           (!state.unnamed || session_take_context(batch, op, err));
}

static bool idempotency_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_IDEMPOTENCY_PUT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_bind_row(&b, &sql_idempotency, op->idempotency, op->who);
    sq_int(&b, batch->now_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool tool_known(struct store *store, struct store_call *c, struct error *err)
{
    bool *ret = c->ret;
    struct sqlite_store *s = sq_of(store);
    sqlite3_stmt *st = sq_prepare(s, SQ_TOOL_KNOWN, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, c->who->tenant);
    sq_text(&b, c->id);
    return sq_run_exists(s, st, ret, err);
}

/* Joins the two halves of a sum; at most INT64_MAX. */
static int64_t joined(int64_t high, int64_t low)
{
    int64_t sum;
    return __builtin_mul_overflow(high, INT64_C(1) << 32, &sum) ||
                   __builtin_add_overflow(sum, low, &sum)
               ? INT64_MAX
               : sum;
}

static void read_totals(sqlite3_stmt *st, struct session_totals *ret)
{
    struct sq_row r = {.st = st};
    ret->total_sessions = sq_get_int(&r);
    ret->active_sessions = sq_get_int(&r);
    ret->total_tool_executions = sq_get_int(&r);
    int64_t high = sq_get_int(&r), low = sq_get_int(&r);
    ret->total_tokens_used = joined(high, low);
    int64_t lived_ms = sq_get_int(&r);
    ret->average_session_time_minutes =
        ret->total_sessions ? (double)lived_ms / (double)ret->total_sessions / 60000.0 : 0;
}

/* Has no page deadline: right after very many sessions passed their end, counting those that the
 * reaper has not ended yet may take long. */
static bool session_totals(struct store *store, struct store_call *c, struct error *err)
{
    struct session_totals *ret = c->ret;
    struct sqlite_store *s = sq_of(store);
    bool row = false;
    sqlite3_stmt *st =
        sq_prepare(s, c->who->tenant_wide ? SQ_TOTALS_OF_TENANT : SQ_TOTALS_OF_OWNER, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, c->who->tenant);
    sq_text(&b, c->who->owner);
    sq_int(&b, c->since_ms / STORE_TOTALS_STEP_MS);
    sq_int(&b, c->now_ms);
    if (!sq_step(s, st, &row, err))
        return false;
    read_totals(st, ret);
    sq_reset(st);
    return true;
}

/* Always empty: one process owns the file. */
static bool changes(struct store *store, struct store_call *c, struct error *err)
{
    (void)store, (void)c->after_id, (void)c->limit, (void)err;
    c->rows = arena_new_of(c->mem, struct change_row);
    c->n = 0;
    return true;
}

const struct sq_op sq_registry_ops[] = {
    {OP_CONTEXT_PUT, context_put},
    {OP_IDEMPOTENCY_PUT, idempotency_put},
    {0},
};

const struct verb_handler sq_registry_verbs[] = {
    {VERB_SESSION_TOTALS, session_totals},
    {VERB_TOOL_KNOWN, tool_known},
    {VERB_CHANGES, changes},
    {0},
};
