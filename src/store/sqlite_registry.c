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

bool sq_context_put(struct sq_batch *batch, struct store_op *op, struct error *err)
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

static bool read_context(struct sq_row *r, void *to, struct error *err unused_arg)
{
    struct context_row *row = to;
    row->id = sq_get_bytes(r);
    row->tenant = sq_get_bytes(r);
    row->document = sq_get_bytes(r);
    row->version = sq_get_int(r);
    row->created_ms = sq_get_int(r);
    row->updated_ms = sq_get_int(r);
    return true;
}

bool sq_context_get(struct store *store, const struct principal *who, struct str id,
                    struct arena *mem, struct context_row **ret_row, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows contexts = {
        .read = read_context, .size = sizeof(struct context_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, SQ_CONTEXT_GET, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, who->tenant);
    sq_text(&b, id);
    sq_text(&b, who->owner);
    sq_int(&b, who->tenant_wide);
    if (!sq_read_row(s, st, &contexts, err))
        return false;
    *ret_row = contexts.items;
    return true;
}

bool sq_idempotency_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct idempotency_row *i = op->idempotency;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_IDEMPOTENCY_PUT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    sq_text(&b, i->key);
    sq_blob(&b, str_n((const char *)i->request_sha, sizeof(i->request_sha)));
    sq_int(&b, i->status);
    sq_text(&b, i->headers);
    sq_blob(&b, i->body);
    sq_int(&b, i->created_ms);
    sq_int(&b, i->expires_ms);
    sq_int(&b, batch->now_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool read_answer(struct sq_row *r, void *to, struct error *err unused_arg)
{
    struct idempotency_row *row = to;
    row->tenant = sq_get_bytes(r);
    row->owner = sq_get_bytes(r);
    row->key = sq_get_bytes(r);
    sq_get_sha(r, row->request_sha);
    row->status = (int)sq_get_int(r);
    row->headers = sq_get_bytes(r);
    row->body = sq_get_bytes(r);
    row->created_ms = sq_get_int(r);
    row->expires_ms = sq_get_int(r);
    return true;
}

bool sq_idempotency_get(struct store *store, const struct principal *who, struct str key,
                        struct arena *mem, struct idempotency_row **ret_row, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows answers = {
        .read = read_answer, .size = sizeof(struct idempotency_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, SQ_IDEMPOTENCY_GET, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, who->tenant);
    sq_text(&b, who->owner);
    sq_text(&b, key);
    sq_int(&b, clock_life_ms());
    if (!sq_read_row(s, st, &answers, err))
        return false;
    *ret_row = answers.items;
    return true;
}

bool sq_tool_known(struct store *store, const struct principal *who, struct str tool_id, bool *ret,
                   struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    sqlite3_stmt *st = sq_prepare(s, SQ_TOOL_KNOWN, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, who->tenant);
    sq_text(&b, tool_id);
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
bool sq_session_totals(struct store *store, const struct principal *who, int64_t now_ms,
                       int64_t since_ms, struct session_totals *ret, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    bool row = false;
    sqlite3_stmt *st =
        sq_prepare(s, who->tenant_wide ? SQ_TOTALS_OF_TENANT : SQ_TOTALS_OF_OWNER, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, who->tenant);
    sq_text(&b, who->owner);
    sq_int(&b, since_ms / STORE_TOTALS_STEP_MS);
    sq_int(&b, now_ms);
    if (!sq_step(s, st, &row, err))
        return false;
    read_totals(st, ret);
    sq_reset(st);
    return true;
}

/* Always empty: one process owns the file. */
bool sq_changes(struct store *store, int64_t after, unsigned limit, struct arena *mem,
                struct change_row **ret_rows, size_t *ret_n, struct error *err)
{
    (void)store, (void)after, (void)limit, (void)err;
    *ret_rows = arena_new_of(mem, struct change_row);
    *ret_n = 0;
    return true;
}
