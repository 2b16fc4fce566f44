/* SPDX-License-Identifier: Apache-2.0 */
/* The reads of the registry: totals, executions, contexts, idempotency rows, keys, users, tenants,
 * and changes made by other nodes. */
#include "store/postgres_impl.h"

#include <stdlib.h>

#include "base/clock.h"

static bool session_totals(struct store *s, struct store_call *c, struct error *err)
{
    struct session_totals *ret = c->ret;
    struct session_totals totals = {0};
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, c->who->tenant);
    pg_text(&p, c->who->owner);
    pg_bool(&p, c->who->tenant_wide);
    pg_instant(&p, c->now_ms);
    pg_instant(&p, c->since_ms);
    pg_int(&p, c->since_ms / STORE_TOTALS_STEP_MS);
    if (!pg_page(pg_of(s), PG_TOTALS, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    totals.active_sessions = pg_get_int(&r);
    totals.total_sessions = pg_get_int(&r);
    totals.total_tool_executions = pg_get_int(&r);
    totals.total_tokens_used = pg_get_int(&r);
    int64_t life_ms = pg_get_int(&r);
    if (totals.total_sessions)
        totals.average_session_time_minutes =
            (double)life_ms / (double)totals.total_sessions / 60000.0;
    pq.clear(res);
    *ret = totals;
    return true;
}

/* An execution in the projection: the id of its first event, and of its outcome (0 while open). */
struct ends {
    int64_t exec, outcome;
};

static bool read_ends(struct pg_store *s, const struct pg_params *p, struct arena *mem,
                      struct ends *ends, size_t *ret_n, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_page(s, PG_EXECUTIONS_PAGE, p, &res, err))
        return false;
    for (int i = 0; i < pq.ntuples(res); i++) {
        struct pg_row r = {.res = res, .row = i, .mem = mem};
        if (!execution_uuid_parse(pg_get_uuid(&r), &ends[*ret_n].exec))
            continue;
        ends[(*ret_n)++].outcome = pg_get_int(&r);
    }
    pq.clear(res);
    return true;
}

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct event_row *)a)->id, y = ((const struct event_row *)b)->id;
    return x < y ? -1 : x > y;
}

static const struct event_row *event_among(const struct event_row *events, size_t n, int64_t id)
{
    struct event_row key = {.id = id};
    return n ? bsearch(&key, events, n, sizeof(*events), by_id) : NULL;
}

/* pg_events_of() returns the events sorted by id, each once. */
static bool join_ends(struct pg_store *s, const struct ends *ends, size_t n, bool with_bodies,
                      struct arena *mem, struct execution_row *rows, size_t *ret_n,
                      struct error *err)
{
    int64_t *ids = arena_alloc(mem, (2 * n + 1) * sizeof(*ids));
    struct event_row *events = arena_zalloc(mem, (2 * n + 1) * sizeof(*events));
    size_t n_ids = 0, n_events = 0;
    for (size_t i = 0; i < n; i++) {
        ids[n_ids++] = ends[i].exec;
        if (ends[i].outcome && ends[i].outcome != ends[i].exec)
            ids[n_ids++] = ends[i].outcome;
    }
    if (!pg_events_of(s, ids, n_ids, with_bodies, mem, events, &n_events, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct event_row *first = event_among(events, n_events, ends[i].exec);
        const struct event_row *outcome = event_among(events, n_events, ends[i].outcome);
        if (first)
            store_execution_join(first, outcome, with_bodies, mem, &rows[(*ret_n)++]);
    }
    return true;
}

static bool executions_page(struct store *store, struct store_call *c, struct error *err)
{
    struct pg_store *s = pg_of(store);
    struct execution_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    struct ends *ends = arena_zalloc(c->mem, c->limit * sizeof(*ends));
    struct pg_params p = {0};
    char uuid[EXECUTION_UUID_TEXT];
    size_t n_ends = 0, n = 0;
    execution_uuid(c->after_id, uuid);
    pg_text(&p, c->who->tenant);
    pg_text(&p, c->who->owner);
    pg_bool(&p, c->who->tenant_wide);
    pg_uuid(&p, c->session_id);
    pg_uuid(&p, c->after_id ? str_of(uuid) : STR_NONE);
    pg_int(&p, c->limit);
    if (!read_ends(s, &p, c->mem, ends, &n_ends, err) ||
        !join_ends(s, ends, n_ends, c->flag, c->mem, rows, &n, err))
        return false;
    c->rows = rows;
    c->n = n;
    return true;
}

static bool tool_known(struct store *s, struct store_call *c, struct error *err)
{
    bool *ret = c->ret;
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, c->who->tenant);
    pg_uuid(&p, c->id);
    if (!pg_query(pg_of(s), PG_TOOL_KNOWN, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    *ret = pg_get_bool(&r);
    pq.clear(res);
    return true;
}

const struct verb_handler pg_registry_verbs[] = {
    {VERB_SESSION_TOTALS, session_totals},
    {VERB_TOOL_KNOWN, tool_known},
    {VERB_EXECUTIONS_PAGE, executions_page},
    {0},
};
