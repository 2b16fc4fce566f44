/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of sessions, transports, links and undelivered results.  Tenant and owner are in every
 * WHERE, so a foreign row and a missing one give the same answer at the same cost. */
#include "store/postgres_impl.h"

#include "base/clock.h"

/* In the order of SESSION_COLUMNS. */
bool pg_read_session(struct pg_row *r, void *to, struct error *err)
{
    struct session_row *row = to;
    row->id = pg_get_uuid(r);
    row->handle = pg_get_bytes(r);
    row->tenant = pg_get_bytes(r);
    row->owner = pg_get_bytes(r);
    row->user_id = pg_get_uuid(r);
    row->edge_mcp_id = pg_get_bytes(r);
    row->client_name = pg_get_bytes(r);
    row->client_type = pg_get_bytes(r);
    row->client_version = pg_get_bytes(r);
    struct str status = pg_peek_bytes(r);
    struct str origin = pg_peek_bytes(r);
    if (!session_status_parse(status, &row->status) || !session_origin_parse(origin, &row->origin))
        return error_set(err, ERR_INTERNAL,
                         "A session row has an unknown status or origin; report it.");
    row->initialized = pg_get_bool(r);
    row->provisional = pg_get_bool(r);
    row->counted = pg_get_bool(r);
    row->carrier = pg_get_bytes(r);
    row->carrier_key = pg_get_bytes(r);
    row->core_session_id = pg_get_bytes(r);
    row->connection_metadata = pg_get_bytes(r);
    row->context_id = pg_get_uuid(r);
    row->sealed_auth = pg_get_bytes(r);
    row->created_ms = pg_get_time(r);
    row->last_activity_ms = pg_get_time(r);
    row->expires_ms = pg_get_time(r);
    row->terminated_ms = pg_get_time(r);
    row->ttl_ms = pg_get_int(r);
    row->termination_reason = pg_get_bytes(r);
    row->tool_count = pg_get_int(r);
    row->tokens_used = pg_get_int(r);
    row->version = pg_get_int(r);
    row->toolsets = pg_get_bytes(r);
    row->sealed_context = pg_get_bytes(r);
    session_row_apply_expiry(row, clock_life_ms());
    return true;
}

/* Reads at most one session and clears the result. */
static bool take_session(PGresult *res, struct arena *mem, struct session_row **ret_row,
                         struct error *err)
{
    struct pg_rows sessions = {
        .read = pg_read_session, .size = sizeof(struct session_row), .mem = mem};
    if (!pg_take_row(res, &sessions, err))
        return false;
    *ret_row = sessions.items;
    return true;
}

static bool one_session(struct pg_store *s, enum pg_statement which, const struct pg_params *p,
                        struct arena *mem, struct session_row **ret_row, struct error *err)
{
    PGresult *res = NULL;
    return pg_query(s, which, p, &res, err) && take_session(res, mem, ret_row, err);
}

/* Adds tenant, owner and tenant_wide: the first parameters of most reads. */
static void add_viewer(struct pg_params *p, const struct principal *who)
{
    pg_text(p, who->tenant);
    pg_text(p, who->owner);
    pg_bool(p, who->tenant_wide);
}

static enum pg_statement find_params(struct pg_params *p, const struct principal *who,
                                     struct str name, bool by_id)
{
    add_viewer(p, who);
    if (by_id)
        pg_uuid(p, name);
    else
        pg_text(p, pg_is_text(name) ? name : STR("")); /* no session has this handle */
    return by_id ? PG_SESSION_BY_ID : PG_SESSION_BY_HANDLE;
}

bool pg_session_by_handle(struct store *s, const struct principal *who, struct str handle,
                          struct arena *mem, struct session_row **ret_row, struct error *err)
{
    struct pg_params p = {0};
    enum pg_statement which = find_params(&p, who, handle, false);
    return one_session(pg_of(s), which, &p, mem, ret_row, err);
}

bool pg_session_by_id(struct store *s, const struct principal *who, struct str id,
                      struct arena *mem, struct session_row **ret_row, struct error *err)
{
    struct pg_params p = {0};
    enum pg_statement which = find_params(&p, who, id, true);
    return one_session(pg_of(s), which, &p, mem, ret_row, err);
}

static bool send_finds(struct pg_store *s, const struct session_find *finds, size_t n,
                       struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct pg_params p = {0};
        enum pg_statement which = find_params(&p, finds[i].who, finds[i].name, finds[i].by_id);
        if (!pg_pipe_send(s, which, &p, err))
            return false;
    }
    return pg_pipe_sync(s, err);
}

/* Takes every result, so that the connection stays in step, and reports the first failure. */
static bool take_finds(struct pg_store *s, struct session_find *finds, size_t n, struct error *err)
{
    struct error ignored;
    bool ok = true;
    for (size_t i = 0; i < n && s->conn; i++) {
        PGresult *res = NULL;
        struct error *told = ok ? err : &ignored;
        if (!pg_pipe_next(s, &res, told)) {
            ok = false;
        } else if (pq.result_status(res) == PGRES_TUPLES_OK) {
            ok = take_session(res, finds[i].mem, &finds[i].row, told) && ok;
        } else {
            ok = pg_failed(s, res, "reading", told) && ok;
            pq.clear(res);
        }
    }
    return s->conn && pg_pipe_synced(s, ok ? err : &ignored) && ok;
}

bool pg_sessions_find(struct store *store, struct session_find *finds, size_t n, struct error *err)
{
    struct pg_store *s = pg_of(store);
    if (!pg_ready(s, err) || !pg_prepare(s, PG_SESSION_BY_HANDLE, err) ||
        !pg_prepare(s, PG_SESSION_BY_ID, err) || !pg_pipe_begin(s, err))
        return false;
    bool ok = send_finds(s, finds, n, err) && take_finds(s, finds, n, err);
    pg_pipe_end(s);
    return ok;
}

bool pg_session_by_key(struct store *s, const struct principal *who, struct str carrier,
                       struct str key, struct arena *mem, struct session_row **ret_row,
                       struct error *err)
{
    struct pg_params p = {0};
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    pg_text(&p, carrier);
    pg_bytes(&p, key);
    pg_instant(&p, clock_life_ms());
    return one_session(pg_of(s), PG_SESSION_BY_KEY, &p, mem, ret_row, err);
}

static bool read_transport(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct transport_row *row = to;
    pg_get_sha(r, row->id_hash);
    row->tenant = pg_get_bytes(r);
    row->owner = pg_get_bytes(r);
    row->endpoint = pg_get_bytes(r);
    row->protocol_version = pg_get_bytes(r);
    row->initialize_params = pg_get_bytes(r);
    row->session_id = pg_get_uuid(r);
    row->created_ms = pg_get_time(r);
    row->last_used_ms = pg_get_time(r);
    row->ended_ms = pg_get_time(r);
    return true;
}

bool pg_transport_get(struct store *s, const struct principal *who, const uint8_t id_hash[32],
                      struct arena *mem, struct transport_row **ret_row, struct error *err)
{
    struct pg_rows transports = {
        .read = read_transport, .size = sizeof(struct transport_row), .mem = mem};
    struct pg_params p = {0};
    pg_sha(&p, id_hash);
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    if (!pg_read_row(pg_of(s), PG_TRANSPORT_GET, &p, &transports, err))
        return false;
    *ret_row = transports.items;
    return true;
}

bool pg_read_link(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct link_row *row = to;
    row->session_id = pg_get_uuid(r);
    row->server = pg_get_bytes(r);
    row->writer = pg_get_int(r);
    row->remote_id = pg_get_bytes(r);
    row->opened_ms = pg_get_time(r);
    row->ended_ms = pg_get_time(r);
    row->end_reason = pg_get_bytes(r);
    return true;
}

bool pg_links_of(struct store *s, const struct principal *who, struct str session_id,
                 struct arena *mem, struct link_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows links = {.read = pg_read_link, .size = sizeof(struct link_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    pg_uuid(&p, session_id);
    if (!pg_read_rows(pg_of(s), PG_LINKS_OF, &p, &links, err))
        return false;
    *ret_rows = links.items;
    *ret_n = links.n;
    return true;
}

/* A session that is shown as active or idle is also stored as active or idle, so a page of only
 * these statuses reads live rows only. */
static enum pg_statement page_of(const struct principal *who, unsigned statuses)
{
    bool live = statuses && !(statuses & ~(1U << SESSION_ACTIVE | 1U << SESSION_IDLE));
    if (live)
        return who->tenant_wide ? PG_SESSIONS_LIVE_OF_TENANT : PG_SESSIONS_LIVE_OF_OWNER;
    return who->tenant_wide ? PG_SESSIONS_OF_TENANT : PG_SESSIONS_OF_OWNER;
}

bool pg_sessions_page(struct store *s, const struct principal *who,
                      const struct session_filter *filter, unsigned limit, struct arena *mem,
                      struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows sessions = {
        .read = pg_read_session, .size = sizeof(struct session_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    pg_uuid(&p, filter->before);
    pg_int(&p, limit);
    pg_int4(&p, (int32_t)filter->statuses);
    pg_instant(&p, filter->now_ms);
    pg_int(&p, filter->idle_ms);
    pg_text(&p, filter->client_type);
    if (!pg_read_page(pg_of(s), page_of(who, filter->statuses), &p, &sessions, err))
        return false;
    *ret_rows = sessions.items;
    *ret_n = sessions.n;
    return true;
}

static bool read_undelivered(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct undelivered_row *row = to;
    row->id = pg_get_int(r);
    row->tenant = pg_get_bytes(r);
    row->owner = pg_get_bytes(r);
    row->session_id = pg_get_uuid(r);
    pg_get_sha(r, row->digest);
    row->exec = pg_get_int(r);
    row->created_ms = pg_get_time(r);
    row->expires_ms = pg_get_time(r);
    row->sealed_len = pg_get_int(r);
    row->sealed = pg_get_bytes(r);
    return true;
}

bool pg_undelivered_get(struct store *s, const struct principal *who, int64_t id, struct arena *mem,
                        struct undelivered_row **ret_row, struct error *err)
{
    struct pg_rows results = {
        .read = read_undelivered, .size = sizeof(struct undelivered_row), .mem = mem};
    struct pg_params p = {0};
    pg_int(&p, id);
    pg_text(&p, who->tenant);
    pg_text(&p, who->owner);
    pg_instant(&p, clock_life_ms());
    if (!pg_read_row(pg_of(s), PG_UNDELIVERED_GET, &p, &results, err))
        return false;
    *ret_row = results.items;
    return true;
}

bool pg_undelivered_page(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                         struct undelivered_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows results = {
        .read = read_undelivered, .size = sizeof(struct undelivered_row), .mem = mem};
    struct pg_params p = {0};
    pg_int(&p, after);
    pg_instant(&p, clock_life_ms());
    pg_int(&p, limit);
    if (!pg_read_page(pg_of(s), PG_UNDELIVERED_PAGE, &p, &results, err))
        return false;
    *ret_rows = results.items;
    *ret_n = results.n;
    return true;
}

bool pg_counts(struct store *s, struct store_counts *ret, struct error *err)
{
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
