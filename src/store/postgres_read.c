/* SPDX-License-Identifier: Apache-2.0 */
/* Several sessions in one round trip, and the counts. */
#include "store/postgres_impl.h"

#include "base/clock.h"

static struct store_call call_of(const struct session_find *find)
{
    return (struct store_call){find->by_id ? VERB_SESSION_BY_ID : VERB_SESSION_BY_HANDLE,
                               .who = find->who, .id = find->name};
}

static bool prepare_finds(struct pg_store *s, const struct session_find *finds, size_t n,
                          struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct store_call one = call_of(&finds[i]);
        struct pg_params p = {0};
        if (!pg_prepare(s, pg_read_params(&p, &one), err))
            return false;
    }
    return true;
}

static bool send_finds(struct pg_store *s, const struct session_find *finds, size_t n,
                       struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct store_call one = call_of(&finds[i]);
        struct pg_params p = {0};
        unsigned which = pg_read_params(&p, &one);
        if (!pg_pipe_send(s, which, &p, err))
            return false;
    }
    return pg_pipe_sync(s, err);
}

static bool take_session(PGresult *res, struct session_find *find, struct error *err)
{
    struct pg_rows sessions = {.type = &sql_session, .mem = find->mem};
    if (!pg_take_rows(res, 1, &sessions, err))
        return false;
    find->row = sessions.n ? sessions.items : NULL;
    return true;
}

/* Takes every result, so that the connection stays in step, and reports the first failure. */
static bool take_finds(struct pg_store *s, struct session_find *finds, size_t n, struct error *err)
{
    struct error ignored;
    bool ok = true;
    for (size_t i = 0; i < n && s->conn; i++) {
        PGresult *res = NULL;
        struct error *reported = ok ? err : &ignored;
        if (!pg_pipe_next(s, &res, reported)) {
            ok = false;
        } else if (pq.result_status(res) == PGRES_TUPLES_OK) {
            ok = take_session(res, &finds[i], reported) && ok;
        } else {
            ok = pg_failed(s, res, "reading", reported) && ok;
            pq.clear(res);
        }
    }
    return s->conn && pg_pipe_synced(s, ok ? err : &ignored) && ok;
}

static bool sessions_find(struct store *store, struct store_call *c, struct error *err)
{
    struct pg_store *s = pg_of(store);
    if (!pg_ready(s, err) || !prepare_finds(s, c->finds, c->n, err) || !pg_pipe_begin(s, err))
        return false;
    bool ok = send_finds(s, c->finds, c->n, err) && take_finds(s, c->finds, c->n, err);
    pg_pipe_end(s);
    return ok;
}

static bool counts(struct store *s, struct store_call *c, struct error *err)
{
    struct store_counts *ret = c->ret;
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_instant(&p, clock_life_ms());
    if (!pg_query(pg_of(s), PG_COUNTS, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    ret->sessions_active = pg_get_int(&r);
    ret->sessions_total = pg_get_int(&r);
    ret->transports = pg_get_int(&r);
    ret->events = pg_get_int(&r);
    ret->executions_open = pg_get_int(&r);
    pq.clear(res);
    return true;
}

const struct verb_handler pg_read_verbs[] = {
    {VERB_COUNTS, counts},
    {VERB_SESSIONS_FIND, sessions_find},
    {0},
};
