/* SPDX-License-Identifier: Apache-2.0 */
/* The reads of the registry: totals, executions, contexts, idempotency rows, keys, users, tenants,
 * and changes made by other nodes. */
#include "store/postgres_impl.h"

#include <stdlib.h>

#include "base/clock.h"

bool pg_session_totals(struct store *s, const struct principal *who, int64_t now_ms,
                       int64_t since_ms, struct session_totals *ret, struct error *err)
{
    struct session_totals totals = {0};
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    pg_bool(&p, who->tenant_wide);
    pg_instant(&p, now_ms);
    pg_instant(&p, since_ms);
    pg_int(&p, since_ms / STORE_TOTALS_STEP_MS);
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

bool pg_executions_page(struct store *store, const struct principal *who, struct str session_id,
                        int64_t before, bool with_bodies, unsigned limit, struct arena *mem,
                        struct execution_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_store *s = pg_of(store);
    struct execution_row *rows = arena_zalloc(mem, limit * sizeof(*rows));
    struct ends *ends = arena_zalloc(mem, limit * sizeof(*ends));
    struct pg_params p = {0};
    char uuid[EXECUTION_UUID_TEXT];
    size_t n_ends = 0, n = 0;
    execution_uuid(before, uuid);
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    pg_bool(&p, who->tenant_wide);
    pg_uuid(&p, session_id);
    pg_uuid(&p, before ? str_of(uuid) : STR_NONE);
    pg_int(&p, limit);
    if (!read_ends(s, &p, mem, ends, &n_ends, err) ||
        !join_ends(s, ends, n_ends, with_bodies, mem, rows, &n, err))
        return false;
    *ret_rows = rows;
    *ret_n = n;
    return true;
}

static bool read_context(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct context_row *row = to;
    row->id = pg_get_uuid(r);
    row->tenant = pg_get_bytes(r);
    row->document = pg_get_bytes(r);
    row->version = pg_get_int(r);
    row->created_ms = pg_get_time(r);
    row->updated_ms = pg_get_time(r);
    return true;
}

bool pg_context_get(struct store *s, const struct principal *who, struct str id, struct arena *mem,
                    struct context_row **ret_row, struct error *err)
{
    struct pg_rows contexts = {
        .read = read_context, .size = sizeof(struct context_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, who->tenant);
    pg_uuid(&p, id);
    pg_text(&p, who->owner);
    pg_bool(&p, who->tenant_wide);
    if (!pg_read_row(pg_of(s), PG_CONTEXT_GET, &p, &contexts, err))
        return false;
    *ret_row = contexts.items;
    return true;
}

static bool read_answer(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct idempotency_row *row = to;
    row->tenant = pg_get_bytes(r);
    row->owner = pg_get_bytes(r);
    row->key = pg_get_bytes(r);
    pg_get_sha(r, row->request_sha);
    row->status = (int)pg_get_int(r);
    row->headers = pg_get_bytes(r);
    row->body = pg_get_bytes(r);
    row->created_ms = pg_get_time(r);
    row->expires_ms = pg_get_time(r);
    return true;
}

bool pg_idempotency_get(struct store *s, const struct principal *who, struct str key,
                        struct arena *mem, struct idempotency_row **ret_row, struct error *err)
{
    struct pg_rows answers = {
        .read = read_answer, .size = sizeof(struct idempotency_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    pg_bytes(&p, key);
    pg_instant(&p, clock_life_ms());
    if (!pg_read_row(pg_of(s), PG_IDEMPOTENCY_GET, &p, &answers, err))
        return false;
    *ret_row = answers.items;
    return true;
}

bool pg_tool_known(struct store *s, const struct principal *who, struct str tool_id, bool *ret,
                   struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, who->tenant);
    pg_uuid(&p, tool_id);
    if (!pg_query(pg_of(s), PG_TOOL_KNOWN, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    *ret = pg_get_bool(&r);
    pq.clear(res);
    return true;
}

static bool read_key(struct pg_row *r, void *to, struct error *err)
{
    struct key_row *row = to;
    row->id = pg_get_bytes(r);
    row->tenant = pg_get_bytes(r);
    row->user_id = pg_get_uuid(r);
    row->name = pg_get_bytes(r);
    if (!role_parse(pg_peek_bytes(r), &row->role))
        return error_set(err, ERR_INTERNAL, "A key has an unknown role; report it.");
    pg_get_sha(r, row->hash);
    row->scopes = pg_get_bytes(r);
    row->created_ms = pg_get_time(r);
    row->expires_ms = pg_get_time(r);
    row->revoked_ms = pg_get_time(r);
    row->last_used_ms = pg_get_time(r);
    return true;
}

bool pg_key_get(struct store *s, struct str id, struct arena *mem, struct key_row **ret_row,
                struct error *err)
{
    struct pg_rows keys = {.read = read_key, .size = sizeof(struct key_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, pg_is_text(id) ? id : STR("")); /* no key has this id */
    if (!pg_read_row(pg_of(s), PG_KEY_GET, &p, &keys, err))
        return false;
    *ret_row = keys.items;
    return true;
}

bool pg_keys_page(struct store *s, struct str tenant, struct str after, unsigned limit,
                  struct arena *mem, struct key_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows keys = {.read = read_key, .size = sizeof(struct key_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, tenant);
    pg_text(&p, after);
    pg_int(&p, limit);
    if (!pg_read_page(pg_of(s), PG_KEYS_PAGE, &p, &keys, err))
        return false;
    *ret_rows = keys.items;
    *ret_n = keys.n;
    return true;
}

static bool read_user(struct pg_row *r, void *to, struct error *err)
{
    struct user_row *row = to;
    row->id = pg_get_uuid(r);
    row->tenant = pg_get_bytes(r);
    row->name = pg_get_bytes(r);
    if (!role_parse(pg_peek_bytes(r), &row->role))
        return error_set(err, ERR_INTERNAL, "A user has an unknown role; report it.");
    row->issuer = pg_get_bytes(r);
    row->created_ms = pg_get_time(r);
    row->ended_ms = pg_get_time(r);
    row->password = pg_get_bytes(r);
    row->failed_logins = pg_get_int(r);
    row->locked_until_ms = pg_get_time(r);
    return true;
}

bool pg_read_user(struct pg_store *s, enum pg_statement which, const struct pg_params *p,
                  struct arena *mem, struct user_row **ret_row, struct error *err)
{
    struct pg_rows users = {.read = read_user, .size = sizeof(struct user_row), .mem = mem};
    if (!pg_read_row(s, which, p, &users, err))
        return false;
    *ret_row = users.items;
    return true;
}

bool pg_user_get(struct store *s, struct str id, struct arena *mem, struct user_row **ret_row,
                 struct error *err)
{
    struct pg_params p = {0};
    pg_uuid(&p, id);
    return pg_read_user(pg_of(s), PG_USER_GET, &p, mem, ret_row, err);
}

static bool read_tenant(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct tenant_row *row = to;
    row->id = pg_get_bytes(r);
    row->created_ms = pg_get_time(r);
    row->counted_sessions = pg_get_int(r);
    return true;
}

bool pg_tenant_get(struct store *s, struct str id, struct arena *mem, struct tenant_row **ret_row,
                   struct error *err)
{
    struct pg_rows tenants = {.read = read_tenant, .size = sizeof(struct tenant_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, pg_is_text(id) ? id : STR("")); /* no tenant has this id */
    pg_instant(&p, clock_life_ms());
    if (!pg_read_row(pg_of(s), PG_TENANT_GET, &p, &tenants, err))
        return false;
    *ret_row = tenants.items;
    return true;
}

bool pg_tenants_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                     struct tenant_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows tenants = {.read = read_tenant, .size = sizeof(struct tenant_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, after);
    pg_instant(&p, clock_life_ms());
    pg_int(&p, limit);
    if (!pg_read_page(pg_of(s), PG_TENANTS_PAGE, &p, &tenants, err))
        return false;
    *ret_rows = tenants.items;
    *ret_n = tenants.n;
    return true;
}

static bool read_change(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct change_row *row = to;
    row->id = pg_get_int(r);
    row->kind = (enum change_kind)pg_get_int(r);
    row->tenant = pg_get_bytes(r);
    row->name = pg_get_bytes(r);
    return true;
}

bool pg_changes(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                struct change_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows changes = {.read = read_change, .size = sizeof(struct change_row), .mem = mem};
    struct pg_params p = {0};
    pg_int(&p, after);
    pg_int(&p, limit);
    if (!pg_read_rows(pg_of(s), after < 0 ? PG_CHANGES_NEWEST : PG_CHANGES, &p, &changes, err))
        return false;
    *ret_rows = changes.items;
    *ret_n = changes.n;
    return true;
}
