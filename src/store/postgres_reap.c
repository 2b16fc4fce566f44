/* SPDX-License-Identifier: Apache-2.0 */
/* What one node does for all: finding what was lost, and putting to rest what is over.  Reaping is
 * done under a lease, so that of several nodes one does it. */
#include "store/postgres_impl.h"

#include "base/clock.h"


/* Changes of session totals that are merged at a time: some 40 ms of the write lane. */
#define SUMS_BATCH 10000

/* What changed is told for so long. */
#define CHANGES_KEPT_MS (INT64_C(3600) * 1000)

static bool read_open(struct pg_store *s, int64_t now_ms, int64_t after, unsigned limit,
                      struct arena *mem, int64_t *ids, size_t *ret_n, struct error *err)
{
    char uuid[EXECUTION_UUID_TEXT];
    struct pg_params p = {0};
    PGresult *res = NULL;
    execution_uuid(after, uuid);
    pg_instant(&p, now_ms);
    pg_uuid(&p, str_of(uuid));
    pg_int(&p, limit);
    if (!pg_query(s, PG_OPEN_INTENTS, &p, &res, err))
        return false;
    for (int i = 0; i < pq.ntuples(res); i++) {
        struct pg_row r = {.res = res, .row = i, .mem = mem};
        if (execution_uuid_parse(pg_get_uuid(&r), &ids[*ret_n]))
            (*ret_n)++;
    }
    pq.clear(res);
    return true;
}

bool pg_open_intents(struct store *store, int64_t now_ms, int64_t after, unsigned limit,
                     struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                     struct error *err)
{
    struct pg_store *s = pg_of(store);
    struct event_row *rows = arena_zalloc(mem, limit * sizeof(*rows));
    int64_t *ids = arena_zalloc(mem, limit * sizeof(*ids));
    size_t n_ids = 0, n = 0;
    if (!pg_fold_all(store, now_ms, err) ||
        !read_open(s, now_ms, after, limit, mem, ids, &n_ids, err) ||
        !pg_events_of(s, ids, n_ids, false, mem, rows, &n, err))
        return false;
    *ret_rows = rows;
    *ret_n = n;
    return true;
}

static bool take_lease(struct pg_store *s, const struct reap_what *what, bool *ret,
                       struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_int(&p, what->writer);
    pg_instant(&p, what->lease_until_ms);
    pg_instant(&p, what->now_ms);
    if (!pg_query(s, PG_LEASE, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    *ret = pg_get_bool(&r);
    pq.clear(res);
    return true;
}

/* Each of these takes a time and a number of rows; one takes another time. */
static bool reap_rows(struct pg_store *s, enum pg_statement which, int64_t until_ms,
                      const struct reap_what *what, size_t *ret_n, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_instant(&p, until_ms);
    pg_int(&p, what->batch);
    if (which == PG_REAP_AHEAD)
        pg_instant(&p, what->now_ms + SESSION_FUTURE_MS);
    if (!pg_query(s, which, &p, &res, err))
        return false;
    for (int i = 0; which == PG_REAP_PAST && what->ret_lived_ms && i < pq.ntuples(res); i++)
        what->ret_lived_ms[i] = pg_get_int(&(struct pg_row){.res = res, .row = i});
    uint64_t n = 0;
    if (str_to_u64(str_of(pq.cmd_tuples(res)), SIZE_MAX, &n))
        *ret_n = (size_t)n;
    pq.clear(res);
    return true;
}

static bool reap_sessions(struct pg_store *s, const struct reap_what *what, struct reaped *ret,
                          struct error *err)
{
    int64_t now_ms = what->now_ms;
    return reap_rows(s, PG_REAP_AHEAD, now_ms, what, &ret->pulled_back, err) &&
           reap_rows(s, PG_REAP_PAST, now_ms, what, &ret->expired, err) &&
           (what->idle_ms <= 0 ||
            reap_rows(s, PG_REAP_UNUSED, now_ms - what->idle_ms, what, &ret->idled, err));
}

static bool merge_sums(struct pg_store *s, bool *ret_left, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_int(&p, SUMS_BATCH);
    if (!pg_query(s, PG_SUMS_MERGE, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    *ret_left = pg_get_int(&r) >= SUMS_BATCH;
    pq.clear(res);
    return true;
}

/* Each statement is a transaction of its own: what one did not get to waits for the next round. */
bool pg_reap(struct store *store, const struct reap_what *what, struct reaped *ret,
             struct error *err)
{
    struct pg_store *s = pg_of(store);
    struct reaped done = {0};
    int64_t now_ms = what->now_ms;
    bool mine = false;
    size_t n = 0;
    if (!take_lease(s, what, &mine, err))
        return false;
    if (!mine) {
        *ret = (struct reaped){.is_elsewhere = true};
        return true;
    }
    if (!pg_fold_all(store, now_ms, err) || !reap_sessions(s, what, &done, err) ||
        !merge_sums(s, &done.left, err) ||
        !reap_rows(s, PG_REAP_TRANSPORTS_ENDED, now_ms, what, &n, err) ||
        !reap_rows(s, PG_REAP_TRANSPORTS_IDLE, now_ms - TRANSPORT_IDLE_MS, what, &n, err) ||
        !reap_rows(s, PG_REAP_UNDELIVERED, now_ms, what, &n, err) ||
        !reap_rows(s, PG_REAP_IDEMPOTENCY, now_ms, what, &n, err) ||
        !reap_rows(s, PG_REAP_LOGINS, now_ms, what, &n, err) ||
        !pg_document_reads_reap(s, what->batch, err) ||
        !reap_rows(s, PG_REAP_CHANGES, now_ms - CHANGES_KEPT_MS, what, &n, err))
        return false;
    *ret = done;
    return true;
}
