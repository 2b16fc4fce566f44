/* SPDX-License-Identifier: Apache-2.0 */
/* Work that one node does for all nodes: finding lost executions, and reaping.  The reaper takes a
 * lease, so that only one of several nodes reaps. */
#include "store/postgres_impl.h"

#include "base/clock.h"

#include <stdio.h>

/* Changes of session totals merged at a time; takes some 40 ms of the write lane. */
#define SUMS_BATCH 10000

/* Events whose sizes are counted at a time. */
#define SIZES_BATCH 4096

/* How long rows of mcp.changes are kept. */
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

static bool open_intents(struct store *store, struct store_call *c, struct error *err)
{
    struct pg_store *s = pg_of(store);
    struct event_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    int64_t *ids = arena_zalloc(c->mem, c->limit * sizeof(*ids));
    size_t n_ids = 0, n = 0;
    if (!pg_fold_all(store, c->now_ms, err) ||
        !read_open(s, c->now_ms, c->after_id, c->limit, c->mem, ids, &n_ids, err) ||
        !pg_events_of(s, ids, n_ids, false, c->mem, rows, &n, err))
        return false;
    c->rows = rows;
    c->n = n;
    return true;
}

static bool take_lease(struct pg_store *s, const struct reap_request *what, bool *ret,
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

/* Each of these statements takes a time and a number of rows; PG_REAP_AHEAD takes a second time. */
static bool reap_rows(struct pg_store *s, enum pg_statement which, int64_t until_ms,
                      const struct reap_request *what, size_t *ret_n, struct error *err)
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

static bool reap_sessions(struct pg_store *s, const struct reap_request *what, struct reaped *ret,
                          struct error *err)
{
    int64_t now_ms = what->now_ms;
    return reap_rows(s, PG_REAP_AHEAD, now_ms, what, &ret->clamped, err) &&
           reap_rows(s, PG_REAP_PAST, now_ms, what, &ret->expired, err) &&
           (what->idle_ms <= 0 ||
            reap_rows(s, PG_REAP_UNUSED, now_ms - what->idle_ms, what, &ret->idled, err)) &&
           (what->over_ms <= 0 ||
            reap_rows(s, PG_REAP_OVER, what->over_ms, what, &ret->deleted, err));
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

/* Tables with rows of sessions are checked a number of sessions at a time, from where the last
 * round stopped. */
#define NO_SESSION "00000000-0000-0000-0000-000000000000"

/* *ret is the last of the next `batch` sessions after `after`, or "" when no session follows.  An
 * empty `after` is set to the beginning.  *ret_all: no more sessions follow. */
static bool find_upto(struct pg_store *s, unsigned which, char after[UUID_TEXT], unsigned batch,
                      char ret[UUID_TEXT], bool *ret_all, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    if (!after[0])
        snprintf(after, UUID_TEXT, "%s", NO_SESSION);
    pg_uuid(&p, str_of(after));
    pg_int(&p, batch);
    if (!pg_query(s, which, &p, &res, err))
        return false;
    struct str last = STR("");
    *ret_all = true;
    if (pq.ntuples(res) > 0) {
        struct pg_row r = {.res = res};
        last = pg_peek_bytes(&r);
        *ret_all = pg_get_int(&r) < batch;
    }
    snprintf(ret, UUID_TEXT, "%.*s", (int)last.n, last.p);
    pq.clear(res);
    return true;
}

static bool reap_family(struct pg_store *s, const struct postgres_family *f, char after[UUID_TEXT],
                        unsigned batch, struct error *err)
{
    char upto[UUID_TEXT];
    struct pg_params p = {0};
    PGresult *res = NULL;
    bool all = false;
    if (!f->upto)
        return true;
    if (!find_upto(s, f->upto, after, batch, upto, &all, err))
        return false;
    if (upto[0]) {
        pg_uuid(&p, str_of(after));
        pg_uuid(&p, str_of(upto));
        if (!pg_query(s, f->over, &p, &res, err))
            return false;
        pq.clear(res);
    }
    snprintf(after, UUID_TEXT, "%s", all ? NO_SESSION : upto);
    return true;
}

static bool reap_families(struct pg_store *s, unsigned batch, struct error *err)
{
    size_t n;
    const struct store_family *const *families = store_families(&n);
    for (size_t i = 0; i < n; i++)
        if (!reap_family(s, families[i]->postgres, s->families_after[i], batch, err))
            return false;
    return true;
}

static bool reap_links(struct pg_store *s, const struct reap_request *what, struct reaped *ret,
                       struct error *err)
{
    struct pg_rows links = {.type = &sql_link, .mem = what->mem};
    char upto[UUID_TEXT];
    struct pg_params p = {0};
    bool all = false;
    if (!what->links)
        return true;
    if (!find_upto(s, PG_LINKS_UPTO, s->links_after, what->links, upto, &all, err))
        return false;
    if (upto[0]) {
        pg_uuid(&p, str_of(s->links_after));
        pg_uuid(&p, str_of(upto));
        pg_int(&p, what->writer);
        pg_instant(&p, what->now_ms);
        if (!pg_read_rows(s, PG_LINKS_REAP, &p, &links, err))
            return false;
    }
    snprintf(s->links_after, sizeof(s->links_after), "%s", all ? NO_SESSION : upto);
    ret->links = links.items;
    ret->n_links = links.n;
    ret->more_links = !all;
    return true;
}

/* Each statement is its own transaction.  Rows that it did not reach wait for the next round. */
static bool reap(struct store *store, struct store_call *c, struct error *err)
{
    const struct reap_request *what = c->filter;
    struct reaped *ret = c->ret;
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
        !reap_families(s, what->batch, err) ||
        !reap_rows(s, PG_REAP_CHANGES, now_ms - CHANGES_KEPT_MS, what, &n, err) ||
        !pg_sizes_count(s, SIZES_BATCH, &done.left, err) ||
        !reap_links(s, what, &done, err)) /* last: a later failure would lose its report */
        return false;
    *ret = done;
    return true;
}

const struct verb_handler pg_reap_verbs[] = {
    {VERB_OPEN_INTENTS, open_intents},
    {VERB_REAP, reap},
    {0},
};
