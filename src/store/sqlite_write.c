/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that write, one function each, called through a table inside one transaction.  Expected
 * refusals (limit, duplicate, missing) are derived from the effect of the statement and become
 * verdicts.  A false return means an unexpected error, and the whole batch is rolled back. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

bool sq_run_verdict(struct sqlite_store *s, sqlite3_stmt *st, struct store_op *op,
                    enum verdict otherwise, struct error *err)
{
    if (!sq_run(s, st, err))
        return false;
    op->verdict = sqlite3_changes(s->db) > 0 ? VERDICT_OK : otherwise;
    return true;
}

bool sq_run_exists(struct sqlite_store *s, sqlite3_stmt *st, bool *ret, struct error *err)
{
    if (!sq_step(s, st, ret, err))
        return false;
    sq_reset(st);
    return true;
}

bool sq_run_refusal(struct sqlite_store *s, sqlite3_stmt *st, struct store_op *op,
                    enum verdict if_there, struct error *err)
{
    bool exists = false;
    if (!sq_run_exists(s, st, &exists, err))
        return false;
    op->verdict = exists ? if_there : VERDICT_MISSING;
    return true;
}

/* Binds hash, tenant and owner, the first parameters of statements on transports. */
static void bind_transport_key(struct sq_bind *b, const struct store_op *op)
{
    sq_blob(b, str_n((const char *)op->transport->id_hash, 32));
    sq_text(b, op->who->tenant);
    sq_text(b, op->who->owner);
}

static bool transport_create(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct transport_row *t = op->transport;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TRANSPORT_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_bind_row(&b, &sql_transport, t, op->who);
    if (!sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = sq_prepare(batch->s, SQ_TRANSPORT_EXISTS, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_blob(&b, str_n((const char *)t->id_hash, 32));
    return sq_run_refusal(batch->s, st, op, VERDICT_DUPLICATE, err);
}

static bool transport_link(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TRANSPORT_LINK, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_transport_key(&b, op);
    sq_text(&b, op->transport->session_id);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool transport_touch(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TRANSPORT_TOUCH, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_transport_key(&b, op);
    sq_int(&b, op->transport->last_used_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool transport_end(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TRANSPORT_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_transport_key(&b, op);
    sq_time(&b, op->transport->ended_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

/* Binds session, server, tenant and owner, the first parameters of both statements on links. */
static void bind_link_key(struct sq_bind *b, const struct store_op *op)
{
    sq_text(b, op->link->session_id);
    sq_text(b, op->link->server);
    sq_text(b, op->who->tenant);
    sq_text(b, op->who->owner);
}

static bool link_put(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LINK_PUT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_bind_row(&b, &sql_link, op->link, NULL);
    sq_text(&b, op->who->tenant);
    sq_text(&b, op->who->owner);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool link_end(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_LINK_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    bind_link_key(&b, op);
    sq_time(&b, op->link->ended_ms);
    sq_text(&b, op->link->end_reason);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool writer_change(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    bool renew = op->kind == OP_WRITER_RENEW;
    sqlite3_stmt *st = sq_prepare(batch->s, renew ? SQ_WRITER_RENEW : SQ_WRITER_END, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, op->writer->number);
    sq_int(&b, renew ? op->writer->lease_until_ms : op->writer->ended_ms);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static bool event_append(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    op->verdict = VERDICT_OK;
    return sq_event_append(batch->s, op->event, err);
}

const struct sq_op sq_write_ops[] = {
    {OP_TRANSPORT_CREATE, transport_create},
    {OP_TRANSPORT_LINK, transport_link},
    {OP_TRANSPORT_TOUCH, transport_touch},
    {OP_TRANSPORT_END, transport_end},
    {OP_LINK_PUT, link_put},
    {OP_LINK_END, link_end},
    {OP_EVENT_APPEND, event_append},
    {OP_WRITER_RENEW, writer_change},
    {OP_WRITER_END, writer_change},
    {0},
};

static bool apply_all(struct sqlite_store *s, struct store_op *ops, size_t n, struct error *err)
{
    struct sq_batch batch = {.s = s, .now_ms = clock_life_ms()};
    if (n == 0) {
        sqlite3_stmt *st = sq_prepare(s, SQ_PROBE, err);
        return st && sq_run(s, st, err);
    }
    for (size_t i = 0; i < n; i++)
        if (!sq_ops[ops[i].kind](&batch, &ops[i], err) || store_op_is_refused(&ops[i], err))
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
    if (!exclusive && !row->previous.p)
        return true;
    st = sq_prepare(s, SQ_WRITERS_LAPSE, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_int(&b, row->started_ms);
    sq_int(&b, *ret_number);
    sq_text(&b, exclusive ? STR_NONE : row->previous);
    return sq_run(s, st, err);
}

static bool writer_start(struct store *store, struct store_call *c, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    int64_t number = 0;
    if (!sq_begin(s, err))
        return false;
    if (!writer_insert(s, c->writer, c->flag, &number, err)) {
        sq_rollback(s);
        return false;
    }
    if (!sq_commit(s, err))
        return false;
    c->writer->number = number;
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

/* SQLite changes all rows before it returns the first. */
static bool expire(struct sqlite_store *s, const struct reap_request *what, size_t *ret_n,
                   struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_REAP, err);
    size_t n = 0;
    bool row = true;
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, what->now_ms);
    sq_int(&b, what->batch);
    for (; row; n += row) {
        if (!sq_step(s, st, &row, err))
            return false;
        struct sq_row r = {.st = st};
        if (row && what->ret_lived_ms)
            what->ret_lived_ms[n] = sq_get_int(&r);
    }
    sq_reset(st);
    *ret_n = n;
    return true;
}

static bool pull_back(struct sqlite_store *s, const struct reap_request *what, size_t *ret_n,
                      struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_PULL_BACK, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, what->now_ms);
    sq_int(&b, what->now_ms + SESSION_FUTURE_MS);
    sq_int(&b, what->batch);
    if (!sq_run(s, st, err))
        return false;
    *ret_n = (size_t)sqlite3_changes(s->db);
    return true;
}

static bool reap_sessions(struct sqlite_store *s, const struct reap_request *what,
                          struct reaped *ret, struct error *err)
{
    return pull_back(s, what, &ret->clamped, err) && expire(s, what, &ret->expired, err) &&
           (what->idle_ms <= 0 || reap_rows(s, SQ_SESSION_IDLE, what->now_ms - what->idle_ms,
                                            what->batch, &ret->idled, err)) &&
           (what->over_ms <= 0 ||
            reap_rows(s, SQ_SESSION_DELETE_OVER, what->over_ms, what->batch, &ret->deleted, err));
}

/* The reaper checks tables with rows of sessions, a number of sessions at a time, and continues
 * there in the next round.  A live session costs it only one lookup.  *ret is the last of the next
 * `batch` sessions after `after`, or "" when no session follows.  *ret_all: no more sessions
 * follow. */
static bool reap_upto(struct sqlite_store *s, unsigned which, const char *after, unsigned batch,
                      char ret[UUID_TEXT], bool *ret_all, struct error *err)
{
    bool found = false;
    sqlite3_stmt *st = sq_prepare(s, which, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, str_of(after));
    sq_int(&b, batch);
    if (!sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    struct str last = sq_peek_bytes(&r);
    *ret_all = sq_get_int(&r) < batch;
    snprintf(ret, UUID_TEXT, "%.*s", (int)last.n, last.p ? last.p : "");
    sq_reset(st);
    return true;
}

static bool reap_links(struct sqlite_store *s, const struct reap_request *what, struct reaped *ret,
                       struct error *err)
{
    char upto[UUID_TEXT];
    bool all = false;
    if (!what->links)
        return true;
    if (!reap_upto(s, SQ_LINKS_UPTO, s->links_after, what->links, upto, &all, err))
        return false;
    sqlite3_stmt *st = sq_prepare(s, SQ_LINKS_REAP, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, str_of(s->links_after));
    sq_text(&b, str_of(upto));
    struct sq_rows links = {.type = &sql_link, .mem = what->mem};
    if (!sq_read_rows(s, st, SIZE_MAX, &links, err))
        return false;
    ret->links = links.items;
    ret->n_links = links.n;
    snprintf(s->links_after, sizeof(s->links_after), "%s", all ? "" : upto);
    ret->more_links = !all;
    return true;
}

static bool reap_family(struct sqlite_store *s, const struct sqlite_family *f,
                        char after[UUID_TEXT], unsigned batch, struct error *err)
{
    char upto[UUID_TEXT];
    bool all = false;
    if (!f->upto)
        return true;
    if (!reap_upto(s, f->upto, after, batch, upto, &all, err))
        return false;
    sqlite3_stmt *st = sq_prepare(s, f->over, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, str_of(after));
    sq_text(&b, str_of(upto));
    if (!sq_run(s, st, err))
        return false;
    snprintf(after, UUID_TEXT, "%s", all ? "" : upto);
    return true;
}

static bool reap_families(struct sqlite_store *s, unsigned batch, struct error *err)
{
    size_t n;
    const struct store_family *const *families = store_families(&n);
    for (size_t i = 0; i < n; i++)
        if (!reap_family(s, families[i]->sqlite, s->families_after[i], batch, err))
            return false;
    return true;
}

static bool reap_rest(struct sqlite_store *s, int64_t now_ms, unsigned batch, struct error *err)
{
    size_t ignored = 0;
    return reap_rows(s, SQ_TRANSPORT_REAP_ENDED, 0, batch, &ignored, err) &&
           reap_rows(s, SQ_TRANSPORT_REAP_IDLE, now_ms - TRANSPORT_IDLE_MS, batch, &ignored, err) &&
           reap_rows(s, SQ_UNDELIVERED_REAP, now_ms, batch, &ignored, err) &&
           reap_rows(s, SQ_IDEMPOTENCY_REAP, now_ms, batch, &ignored, err) &&
           reap_rows(s, SQ_LOGINS_REAP, now_ms, batch, &ignored, err) &&
           reap_families(s, batch, err);
}

/* Events whose sizes are counted in one batch; takes some 10 ms of the write lane. */
#define REAP_SIZES 4096

static bool reap(struct store *store, struct store_call *c, struct error *err)
{
    const struct reap_request *what = c->filter;
    struct reaped *ret = c->ret;
    struct sqlite_store *s = sq_of(store);
    struct reaped done = {0};
    for (bool left = true; left;)
        if (!store_fold(store, 2000, &left, err))
            return false;
    if (!sq_begin(s, err))
        return false;
    if (!reap_sessions(s, what, &done, err) || !reap_rest(s, what->now_ms, what->batch, err) ||
        !reap_links(s, what, &done, err) || !sq_sizes_count(s, REAP_SIZES, &done.left, err)) {
        sq_rollback(s);
        return false;
    }
    if (!sq_commit(s, err))
        return false;
    *ret = done;
    return true;
}

const struct verb_handler sq_write_verbs[] = {
    {VERB_WRITER_START, writer_start},
    {VERB_REAP, reap},
    {0},
};
