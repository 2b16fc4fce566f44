/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of verbs as one transaction in one round trip:
 *
 *     BEGIN, a statement for each op (events gathered into segments), COMMIT │ answers in order
 *
 * Each statement answers with the verdict of its op.  A required op that is refused raises an
 * exception, and so does a segment with an id that is taken.  PostgreSQL then skips the remaining
 * statements, including COMMIT.  A taken id mostly means that an earlier attempt was committed and
 * its answer was lost.  The batch is then written again one op at a time, without the events that
 * are already stored. */
#include "store/postgres_impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"

/* Attempts for a batch that conflicts with other transactions. */
#define TRIES_MAX 4
#define NO_OP SIZE_MAX
/* Statements besides those of the ops: BEGIN, the numbering of changes, COMMIT.  Events are
 * gathered, so the ops need at most one statement each. */
#define STATEMENTS_MORE 3

struct batch {
    struct pg_store *s;
    struct store_op *ops;
    size_t n;
    int64_t now_ms;
    size_t *sent; /* the op of each sent statement, or NO_OP */
    size_t n_sent;
    bool changes; /* contains changes that other nodes must learn of */
    bool taken;   /* failed: an event's id is taken */
    bool again;   /* failed: conflict with another transaction */
};

static bool prepare_all(struct batch *b, struct error *err)
{
    if (!pg_prepare(b->s, PG_BEGIN, err) || !pg_prepare(b->s, PG_COMMIT, err) ||
        !pg_prepare(b->s, PG_CHANGES_NUMBER, err))
        return false;
    for (size_t i = 0; i < b->n; i++)
        if (!pg_prepare(b->s, pg_verbs[b->ops[i].kind]->statement, err))
            return false;
    return true;
}

static bool send_one(struct batch *b, unsigned which, const struct pg_params *p, size_t op,
                     struct error *err)
{
    if (!pg_pipe_send(b->s, which, p, err))
        return false;
    b->sent[b->n_sent++] = op;
    return true;
}

static void segment_params(struct pg_params *p, const struct segment *segment, int64_t first)
{
    pg_int(p, first);
    pg_int4(p, (int32_t)segment->n);
    pg_bytes(p, buf_str(&segment->records));
    pg_bytes(p, buf_str(&segment->bodies));
}

static bool send_segment(struct batch *b, struct error *err)
{
    struct segment *segment = &b->s->segment;
    struct pg_params p = {0};
    if (segment->n == 0)
        return true;
    segment_params(&p, segment, b->s->segment_first);
    bool ok = send_one(b, PG_EVENTS_APPEND, &p, NO_OP, err);
    segment_reset(segment);
    return ok;
}

static bool gather_event(struct batch *b, const struct event_row *e, struct error *err)
{
    struct segment *segment = &b->s->segment;
    bool follows = segment->n && b->s->segment_first + (int64_t)segment->n == e->id;
    if (segment->n && (!follows || segment_is_full(segment)) && !send_segment(b, err))
        return false;
    if (segment->n == 0)
        b->s->segment_first = e->id;
    segment_add(segment, e);
    return true;
}

static void verb_params(const struct batch *b, const struct store_op *op, struct pg_params *p)
{
    pg_verbs[op->kind]->params(p, op, b->now_ms);
    pg_bool(p, op->required);
}

static bool send_op(struct batch *b, size_t i, struct error *err)
{
    struct store_op *op = &b->ops[i];
    struct pg_params p = {0};
    if (op->kind == OP_EVENT_APPEND) {
        op->verdict = VERDICT_OK;
        return gather_event(b, op->event, err);
    }
    verb_params(b, op, &p);
    return send_one(b, pg_verbs[op->kind]->statement, &p, i, err);
}

static bool send_all(struct batch *b, struct error *err)
{
    bool ok = send_one(b, PG_BEGIN, NULL, NO_OP, err);
    for (size_t i = 0; ok && i < b->n; i++)
        ok = send_op(b, i, err);
    ok = ok && send_segment(b, err) &&
         (!b->changes || send_one(b, PG_CHANGES_NUMBER, NULL, NO_OP, err)) &&
         send_one(b, PG_COMMIT, NULL, NO_OP, err);
    segment_reset(&b->s->segment);
    return ok;
}

/* Sets the verdict, or the cause of the failure, from a failed statement. */
static bool refused(struct batch *b, struct store_op *op, const PGresult *res, struct error *err)
{
    const char *state = pq.result_error_field(res, PG_DIAG_SQLSTATE);
    if (op && state && strncmp(state, "HF00", 4) == 0) {
        op->verdict = (enum verdict)(state[4] - '0');
        return !store_op_is_refused(op, err);
    }
    b->taken = pg_has_state(res, "HF100");
    b->again = pg_has_state(res, "40001") || pg_has_state(res, "40P01");
    if (b->taken)
        return error_set(err, ERR_INTERNAL, "An event id is taken; report it.");
    return pg_failed(b->s, res, "writing", err);
}

static bool take_answer(struct batch *b, struct store_op *op, const PGresult *res,
                        struct error *err)
{
    ExecStatusType status = pq.result_status(res);
    if (status == PGRES_TUPLES_OK && op) {
        struct pg_row r = {.res = res};
        op->verdict = (enum verdict)pg_get_int(&r);
        if (op->verdict == VERDICT_OK && pg_verbs[op->kind]->take)
            pg_verbs[op->kind]->take(&r, op);
    }
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || refused(b, op, res, err);
}

/* Takes all results, even after a failure, so that the connection stays in step. */
static bool take_answers(struct batch *b, bool ok, struct error *err)
{
    for (size_t i = 0; b->s->conn && i < b->n_sent; i++) {
        struct error ignored;
        PGresult *res = NULL;
        if (!pg_pipe_next(b->s, &res, ok ? err : &ignored))
            return false;
        if (ok)
            ok = take_answer(b, b->sent[i] == NO_OP ? NULL : &b->ops[b->sent[i]], res, err);
        pq.clear(res);
    }
    return ok;
}

/* One attempt.  A batch that cannot be sent whole is not committed, because COMMIT is sent last. */
static bool write_once(struct batch *b, struct error *err)
{
    struct error ignored;
    b->n_sent = 0;
    b->taken = b->again = false;
    if (!prepare_all(b, err) || !pg_pipe_begin(b->s, err))
        return false;
    bool ok = send_all(b, err);
    if (b->s->conn && !pg_pipe_sync(b->s, ok ? err : &ignored))
        ok = false;
    ok = take_answers(b, ok, err) && ok;
    if (b->s->conn && !pg_pipe_synced(b->s, ok ? err : &ignored))
        ok = false;
    pg_pipe_end(b->s);
    if (!ok)
        pg_rollback(b->s);
    return ok;
}

/* If the id is taken, it must be taken by this same event: a commit of unknown outcome may be
 * repeated, but one event never hides another. */
static bool append_carefully(struct batch *b, const struct event_row *e, struct error *err)
{
    struct pg_params p = {0};
    struct event_row stored;
    bool found = false;
    PGresult *res = NULL;
    if (!pg_event_at(b->s, e->id, &res, &stored, &found, err))
        return false;
    bool same = found && memcmp(stored.mac, e->mac, sizeof(stored.mac)) == 0;
    pq.clear(res);
    if (found)
        return same || event_id_is_taken(e, err);
    segment_add(&b->s->segment, e);
    segment_params(&p, &b->s->segment, e->id);
    bool ok = pg_run(b->s, PG_EVENTS_APPEND, &p, &res, err);
    segment_reset(&b->s->segment);
    if (ok)
        pq.clear(res);
    return ok;
}

static bool write_one_carefully(struct batch *b, struct store_op *op, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    if (op->kind == OP_EVENT_APPEND) {
        op->verdict = VERDICT_OK;
        return append_carefully(b, op->event, err);
    }
    pg_verbs[op->kind]->params(&p, op, b->now_ms);
    pg_bool(&p, false); /* checked below instead of raised by the statement */
    if (!pg_run(b->s, pg_verbs[op->kind]->statement, &p, &res, err))
        return false;
    bool ok = take_answer(b, op, res, err);
    pq.clear(res);
    return ok && !store_op_is_refused(op, err);
}

/* Writes the ops one by one and skips events that are already stored. */
static bool write_carefully(struct batch *b, struct error *err)
{
    bool ok = pg_exec_text(b->s, "BEGIN", "beginning", NULL, err);
    for (size_t i = 0; ok && i < b->n; i++)
        ok = write_one_carefully(b, &b->ops[i], err);
    ok =
        ok && pg_exec_text(b->s, "SELECT mcp.hf_changes_number(); COMMIT", "committing", NULL, err);
    if (!ok)
        pg_rollback(b->s);
    return ok;
}

static bool probe(struct pg_store *s, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_query(s, PG_PROBE, NULL, &res, err))
        return false;
    pq.clear(res);
    return true;
}

static bool write_batch(struct batch *b, struct error *err)
{
    bool ok = false;
    for (int i = 0; i < TRIES_MAX; i++) {
        ok = write_once(b, err);
        if (ok || !b->s->conn || !b->again)
            break;
    }
    if (!ok && b->taken && b->s->conn)
        ok = write_carefully(b, err);
    if (ok && fault_hits("store.committed"))
        return pg_disconnect(b->s, "fault injected after the commit", err);
    return ok;
}

/* Verbs that may add a row to mcp.changes; such rows are numbered before the commit. */
static const bool announces_change[OP_COUNT] = {
    [OP_SECRET_PUT] = true,    [OP_SECRET_REMOVE] = true, [OP_SESSION_END] = true,
    [OP_KEY_REVOKE] = true,    [OP_USER_PASSWORD] = true, [OP_USER_END] = true,
    [OP_LOGIN_CREATE] = true,  [OP_LOGIN_ROTATE] = true,  [OP_LOGIN_REVOKE] = true,
    [OP_LOGINS_REVOKE] = true, [OP_SESSION_PATCH] = true, [OP_TRANSPORT_END] = true,
};

bool pg_write(struct store *store, struct store_op *ops, size_t n, struct error *err)
{
    struct pg_store *s = pg_of(store);
    struct batch b = {.s = s, .ops = ops, .n = n, .now_ms = clock_life_ms()};
    if (s->read_only)
        return error_set(err, ERR_INTERNAL, "A read-only store was asked to write; report it.");
    if (n == 0)
        return probe(s, err);
    if (!pg_ready(s, err))
        return false;
    if (fault_hits("store.commit"))
        return pg_disconnect(s, "fault injected", err);
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind == OP_EVENT_APPEND)
            pg_fold_later(s, ops[i].event->id >> EVENT_WRITER_SHIFT);
        b.changes |= announces_change[ops[i].kind] || store_op_infos[ops[i].kind].announces;
    }
    b.sent = xcalloc(n + STATEMENTS_MORE, sizeof(*b.sent));
    bool ok = write_batch(&b, err);
    free(b.sent);
    return ok;
}

static bool writer_insert(struct pg_store *s, const struct writer_row *row, bool exclusive,
                          int64_t *ret_number, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, row->uuid);
    pg_text(&p, row->node);
    pg_instant(&p, row->started_ms);
    pg_instant(&p, row->lease_until_ms);
    pg_time(&p, row->ended_ms);
    if (!pg_run(s, PG_WRITER_INSERT, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    *ret_number = pg_get_int(&r);
    pq.clear(res);
    if (!exclusive && !row->previous.p)
        return true;
    p = (struct pg_params){0};
    pg_instant(&p, row->started_ms);
    pg_int(&p, *ret_number);
    pg_text(&p, exclusive ? STR_NONE : row->previous);
    if (!pg_run(s, PG_WRITERS_LAPSE, &p, &res, err))
        return false;
    pq.clear(res);
    return true;
}

static bool writer_start(struct store *store, struct store_call *c, struct error *err)
{
    struct pg_store *s = pg_of(store);
    int64_t number = 0;
    if (!pg_ready(s, err))
        return false;
    bool ok = pg_exec_text(s, "BEGIN", "beginning", NULL, err) &&
              writer_insert(s, c->writer, c->flag, &number, err) &&
              pg_exec_text(s, "COMMIT", "committing", NULL, err);
    if (!ok) {
        pg_rollback(s);
        return false;
    }
    c->writer->number = number;
    return true;
}

const struct verb_handler pg_write_verbs[] = {
    {VERB_WRITER_START, writer_start},
    {0},
};
