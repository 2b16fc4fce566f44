/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that write, one function each, called through a table inside one transaction.  Refusals
 * that are part of normal life (limit, duplicate, missing) are read off what the statement did and
 * become verdicts; a false return means something nobody expected, and the whole batch is rolled
 * back. */
#include "store/sqlite_impl.h"

#include <stdlib.h>

#include "base/clock.h"

/* One batch in flight. */
struct batch {
    struct sqlite_store *s;
    int64_t now_ms;
};

typedef bool verb_fn(struct batch *b, struct store_op *op, struct error *err);

/* Runs a bound statement; OK when it changed a row, `otherwise` when it changed none. */
static bool run_verdict(struct batch *b, sqlite3_stmt *st, struct store_op *op,
                        enum verdict otherwise, struct error *err)
{
    if (!sq_run(b->s, st, err))
        return false;
    op->verdict = sqlite3_changes(b->s->db) > 0 ? VERDICT_OK : otherwise;
    return true;
}

/* Runs a bound statement and tells whether it gave a row. */
static bool run_exists(struct sqlite_store *s, sqlite3_stmt *st, bool *ret, struct error *err)
{
    if (!sq_step(s, st, ret, err))
        return false;
    sq_reset(st);
    return true;
}

/* Live counted sessions of the tenant; *ret is -1 when there is no such tenant yet. */
static bool tenant_counted(struct sqlite_store *s, struct str tenant, int64_t *ret,
                           struct error *err)
{
    bool row = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_TENANT_COUNTED, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    if (!sq_step(s, st, &row, err))
        return false;
    *ret = row ? sqlite3_column_int64(st, 0) : -1;
    sq_reset(st);
    return true;
}

/* Tenants come into being with their first session; who may be one is not the store's to decide. */
static bool tenant_ensure(struct batch *batch, struct str tenant, struct error *err)
{
    int64_t counted = 0;
    if (!tenant_counted(batch->s, tenant, &counted, err))
        return false;
    if (counted >= 0)
        return true;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TENANT_ADD, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    sq_int(&b, batch->now_ms);
    return sq_run(batch->s, st, err);
}

/* Is there room for one more counted session?  Sessions past their end are put to rest first when
 * it depends on them. */
static bool tenant_has_room(struct batch *batch, const struct store_op *op, bool *ret,
                            struct error *err)
{
    int64_t counted = 0;
    if (op->max_counted < 0) {
        *ret = true;
        return true;
    }
    if (!tenant_counted(batch->s, op->who->tenant, &counted, err))
        return false;
    if (counted >= op->max_counted) {
        sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_LAPSE_TENANT, err);
        if (!st)
            return false;
        struct sq_bind b = {.st = st};
        sq_text(&b, op->who->tenant);
        sq_int(&b, batch->now_ms);
        if (!sq_run(batch->s, st, err) || !tenant_counted(batch->s, op->who->tenant, &counted, err))
            return false;
    }
    *ret = counted < op->max_counted;
    return true;
}

/* A key whose session passed its end is free again. */
static bool lapse_key(struct batch *batch, const struct store_op *op, struct error *err)
{
    if (!op->session->carrier_key.p)
        return true;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_LAPSE_KEY, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    sq_text(&b, op->session->carrier);
    sq_text(&b, op->session->carrier_key);
    sq_int(&b, batch->now_ms);
    return sq_run(batch->s, st, err);
}

static bool session_is_taken(struct batch *batch, const struct store_op *op, bool *ret,
                             struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_TAKEN, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->session->handle);
    sq_text(&b, op->who->owner);
    sq_text(&b, op->session->carrier);
    sq_text(&b, op->session->carrier_key);
    sq_text(&b, op->session->id);
    return run_exists(batch->s, st, ret, err);
}

static void bind_session(struct sq_bind *b, const struct session_row *r,
                         const struct principal *who)
{
    const struct str texts[] = {r->id,          r->handle,      who->tenant,
                                who->owner,     r->user_id,     r->edge_mcp_id,
                                r->client_name, r->client_type, r->client_version};
    for (size_t i = 0; i < countof(texts); i++)
        sq_text(b, texts[i]);
    sq_text(b, str_of(session_status_name(r->status)));
    sq_text(b, str_of(session_origin_name(r->origin)));
    sq_int(b, r->initialized);
    sq_int(b, r->provisional);
    sq_int(b, r->counted);
    sq_text(b, r->carrier);
    sq_text(b, r->carrier_key);
    sq_text(b, r->core_session_id);
    sq_text(b, r->connection_metadata);
    sq_text(b, r->context_id);
    sq_blob(b, r->sealed_auth);
    sq_int(b, r->created_ms);
    sq_int(b, r->last_activity_ms);
    sq_time(b, r->expires_ms);
    sq_time(b, r->terminated_ms);
    sq_int(b, r->ttl_ms);
    sq_text(b, r->termination_reason);
    sq_int(b, r->tool_count);
    sq_int(b, r->tokens_used);
    sq_int(b, r->version ? r->version : 1);
}

static bool session_create(struct batch *batch, struct store_op *op, struct error *err)
{
    bool room = true;
    bool taken = false;
    if (!tenant_ensure(batch, op->who->tenant, err) || !lapse_key(batch, op, err))
        return false;
    if (op->session->counted && !tenant_has_room(batch, op, &room, err))
        return false;
    if (!room) {
        if (!session_is_taken(batch, op, &taken, err))
            return false;
        op->verdict = taken ? VERDICT_DUPLICATE : VERDICT_LIMIT;
        return true;
    }
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_session(&b, op->session, op->who);
    return run_verdict(batch, st, op, VERDICT_DUPLICATE, err);
}

struct name_state {
    bool found, named, counted, live;
};

static bool session_state(struct batch *batch, const struct store_op *op, struct name_state *ret,
                          struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_STATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->session->id);
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    sq_int(&b, batch->now_ms);
    if (!sq_step(batch->s, st, &ret->found, err))
        return false;
    struct sq_row r = {.st = st};
    ret->named = ret->found && sq_get_int(&r);
    ret->counted = ret->found && sq_get_int(&r);
    ret->live = ret->found && sq_get_int(&r);
    sq_reset(st);
    return true;
}

static bool session_name(struct batch *batch, struct store_op *op, struct error *err)
{
    struct name_state state;
    bool room = true;
    if (!session_state(batch, op, &state, err))
        return false;
    if (!state.found || !state.live || state.named) {
        op->verdict = !state.found  ? VERDICT_MISSING
                      : !state.live ? VERDICT_NOT_ACTIVE
                                    : VERDICT_OK;
        return true;
    }
    if (!state.counted && !tenant_has_room(batch, op, &room, err))
        return false;
    if (!room) {
        op->verdict = VERDICT_LIMIT;
        return true;
    }
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_NAME, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->session->id);
    sq_time(&b, op->session->expires_ms);
    return run_verdict(batch, st, op, VERDICT_MISSING, err);
}

static bool session_end(struct batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SESSION_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, op->session->id);
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    sq_text(&b, str_of(session_status_name(op->session->status)));
    sq_time(&b, op->session->terminated_ms);
    sq_text(&b, op->session->termination_reason);
    sq_int(&b, batch->now_ms);
    return run_verdict(batch, st, op, VERDICT_MISSING, err);
}

/* Hash, tenant and owner begin every statement on transports. */
static void bind_transport_key(struct sq_bind *b, const struct store_op *op)
{
    sq_blob(b, str_n((const char *)op->transport->id_hash, 32));
    sq_text(b, op->who->tenant);
    sq_text(b, op->who->owner);
}

static bool transport_create(struct batch *batch, struct store_op *op, struct error *err)
{
    const struct transport_row *t = op->transport;
    bool exists = false;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TRANSPORT_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_transport_key(&b, op);
    sq_text(&b, t->endpoint);
    sq_text(&b, t->protocol_version);
    sq_blob(&b, t->initialize_params);
    sq_text(&b, t->session_id);
    sq_int(&b, t->created_ms);
    sq_int(&b, t->last_used_ms);
    sq_time(&b, t->ended_ms);
    if (!run_verdict(batch, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = sq_prepare(batch->s, SQ_TRANSPORT_EXISTS, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_blob(&b, str_n((const char *)t->id_hash, 32));
    if (!run_exists(batch->s, st, &exists, err))
        return false;
    op->verdict = exists ? VERDICT_DUPLICATE : VERDICT_MISSING;
    return true;
}

static bool transport_link(struct batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TRANSPORT_LINK, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_transport_key(&b, op);
    sq_text(&b, op->transport->session_id);
    return run_verdict(batch, st, op, VERDICT_MISSING, err);
}

static bool transport_touch(struct batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TRANSPORT_TOUCH, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_transport_key(&b, op);
    sq_int(&b, op->transport->last_used_ms);
    return run_verdict(batch, st, op, VERDICT_MISSING, err);
}

static bool transport_end(struct batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TRANSPORT_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_transport_key(&b, op);
    sq_time(&b, op->transport->ended_ms);
    return run_verdict(batch, st, op, VERDICT_MISSING, err);
}

/* Session, server, tenant and owner begin both statements on links. */
static void bind_link_key(struct sq_bind *b, const struct store_op *op)
{
    sq_text(b, op->link->session_id);
    sq_text(b, op->link->server);
    sq_text(b, op->who->tenant);
    sq_text(b, op->who->owner);
}

static bool link_put(struct batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LINK_PUT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_link_key(&b, op);
    sq_int(&b, op->link->writer);
    sq_text(&b, op->link->remote_id);
    sq_int(&b, op->link->opened_ms);
    sq_time(&b, op->link->ended_ms);
    sq_text(&b, op->link->end_reason);
    return run_verdict(batch, st, op, VERDICT_MISSING, err);
}

static bool link_end(struct batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LINK_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_link_key(&b, op);
    sq_time(&b, op->link->ended_ms);
    sq_text(&b, op->link->end_reason);
    return run_verdict(batch, st, op, VERDICT_MISSING, err);
}

static bool writer_change(struct batch *batch, struct store_op *op, struct error *err)
{
    bool renew = op->kind == OP_WRITER_RENEW;
    sqlite3_stmt *st = sq_prepare(batch->s, renew ? SQ_WRITER_RENEW : SQ_WRITER_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, op->writer->number);
    sq_int(&b, renew ? op->writer->lease_until_ms : op->writer->ended_ms);
    return run_verdict(batch, st, op, VERDICT_MISSING, err);
}

static bool event_append(struct batch *batch, struct store_op *op, struct error *err)
{
    op->verdict = VERDICT_OK;
    return sq_event_append(batch->s, op->event, err);
}

static bool undelivered_put(struct batch *batch, struct store_op *op, struct error *err)
{
    return sq_undelivered_put(batch->s, op, err);
}

static bool undelivered_take(struct batch *batch, struct store_op *op, struct error *err)
{
    return sq_undelivered_take(batch->s, op, batch->now_ms, err);
}

static verb_fn *const verbs[OP_COUNT] = {
    [OP_SESSION_CREATE] = session_create,
    [OP_SESSION_NAME] = session_name,
    [OP_SESSION_END] = session_end,
    [OP_TRANSPORT_CREATE] = transport_create,
    [OP_TRANSPORT_LINK] = transport_link,
    [OP_TRANSPORT_TOUCH] = transport_touch,
    [OP_TRANSPORT_END] = transport_end,
    [OP_LINK_PUT] = link_put,
    [OP_LINK_END] = link_end,
    [OP_EVENT_APPEND] = event_append,
    [OP_WRITER_RENEW] = writer_change,
    [OP_WRITER_END] = writer_change,
    [OP_UNDELIVERED_PUT] = undelivered_put,
    [OP_UNDELIVERED_TAKE] = undelivered_take,
};

static bool apply_all(struct sqlite_store *s, struct store_op *ops, size_t n, struct error *err)
{
    struct batch batch = {.s = s, .now_ms = clock_life_ms()};
    if (n == 0) {
        sqlite3_stmt *st = sq_prepare(s, SQ_PROBE, err);
        return st && sq_run(s, st, err);
    }
    for (size_t i = 0; i < n; i++)
        if (!verbs[ops[i].kind](&batch, &ops[i], err))
            return false;
    return sq_events_flush(s, err);
}

bool sq_write(struct store *store, struct store_op *ops, size_t n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    if (!sq_begin(s, err))
        return false;
    if (!apply_all(s, ops, n, err)) {
        sq_rollback(s);
        return false;
    }
    return sq_commit(s, err);
}

static bool writer_insert(struct sqlite_store *s, const struct writer_row *row, bool exclusive,
                          int64_t *ret_number, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_WRITER_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->uuid);
    sq_text(&b, row->node);
    sq_int(&b, row->started_ms);
    sq_int(&b, row->lease_until_ms);
    sq_time(&b, row->ended_ms);
    if (!sq_run(s, st, err))
        return false;
    *ret_number = sqlite3_last_insert_rowid(s->db);
    if (!exclusive)
        return true;
    st = sq_prepare(s, SQ_WRITERS_LAPSE, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_int(&b, row->started_ms);
    sq_int(&b, *ret_number);
    return sq_run(s, st, err);
}

bool sq_writer_start(struct store *store, struct writer_row *row, bool exclusive, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    int64_t number = 0;
    if (!sq_begin(s, err))
        return false;
    if (!writer_insert(s, row, exclusive, &number, err)) {
        sq_rollback(s);
        return false;
    }
    if (!sq_commit(s, err))
        return false;
    row->number = number;
    return true;
}

static bool reap_rows(struct sqlite_store *s, enum sq_statement which, int64_t until_ms,
                      unsigned batch, size_t *ret_n, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, which, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    if (until_ms)
        sq_int(&b, until_ms);
    sq_int(&b, batch);
    if (!sq_run(s, st, err))
        return false;
    *ret_n = (size_t)sqlite3_changes(s->db);
    return true;
}

bool sq_reap(struct store *store, const struct reap_what *what, struct reaped *ret,
             struct error *err)
{
    int64_t now_ms = what->now_ms;
    unsigned batch = what->batch;
    struct sqlite_store *s = sq_of(store);
    size_t expired = 0;
    size_t ignored = 0;
    for (bool left = true; left;)
        if (!sq_fold(store, 2000, &left, err))
            return false;
    if (!sq_begin(s, err))
        return false;
    if (!reap_rows(s, SQ_SESSION_REAP, now_ms, batch, &expired, err) ||
        !reap_rows(s, SQ_TRANSPORT_REAP_ENDED, 0, batch, &ignored, err) ||
        !reap_rows(s, SQ_TRANSPORT_REAP_IDLE, now_ms - TRANSPORT_IDLE_MS, batch, &ignored, err) ||
        !reap_rows(s, SQ_UNDELIVERED_REAP, now_ms, batch, &ignored, err)) {
        sq_rollback(s);
        return false;
    }
    if (!sq_commit(s, err))
        return false;
    *ret = (struct reaped){.expired = expired};
    return true;
}
