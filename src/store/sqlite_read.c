/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of sessions, transports and links.  Tenant and owner are in every WHERE, so a foreign row
 * and a missing one give the same answer at the same cost. */
#include "store/sqlite_impl.h"

#include "base/clock.h"

/* In the order of SESSION_COLUMNS. */
static bool read_session(struct sq_row *r, void *to, struct error *err)
{
    struct session_row *row = to;
    struct str *texts[] = {&row->id,          &row->handle,      &row->tenant,
                           &row->owner,       &row->user_id,     &row->edge_mcp_id,
                           &row->client_name, &row->client_type, &row->client_version};
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = sq_get_bytes(r);
    struct str status = sq_peek_bytes(r);
    struct str origin = sq_peek_bytes(r);
    if (!session_status_parse(status, &row->status) || !session_origin_parse(origin, &row->origin))
        return error_set(err, ERR_INTERNAL,
                         "A session row has an unknown status or origin; report it.");
    row->initialized = sq_get_int(r);
    row->provisional = sq_get_int(r);
    row->counted = sq_get_int(r);
    row->carrier = sq_get_bytes(r);
    row->carrier_key = sq_get_bytes(r);
    row->core_session_id = sq_get_bytes(r);
    row->connection_metadata = sq_get_bytes(r);
    row->context_id = sq_get_bytes(r);
    row->sealed_auth = sq_get_bytes(r);
    row->created_ms = sq_get_int(r);
    row->last_activity_ms = sq_get_int(r);
    row->expires_ms = sq_get_int(r);
    row->terminated_ms = sq_get_int(r);
    row->ttl_ms = sq_get_int(r);
    row->termination_reason = sq_get_bytes(r);
    row->tool_count = sq_get_int(r);
    row->tokens_used = sq_get_int(r);
    row->version = sq_get_int(r);
    row->toolsets = sq_get_bytes(r);
    row->sealed_context = sq_get_bytes(r);
    session_row_apply_expiry(row, clock_life_ms());
    return true;
}

/* Steps a bound statement for at most one session. */
static bool one_session(struct sqlite_store *s, sqlite3_stmt *st, struct arena *mem,
                        struct session_row **ret_row, struct error *err)
{
    struct sq_rows sessions = {
        .read = read_session, .size = sizeof(struct session_row), .mem = mem};
    if (!sq_read_row(s, st, &sessions, err))
        return false;
    *ret_row = sessions.items;
    return true;
}

static bool session_by(struct sqlite_store *s, enum sq_statement which, const struct principal *who,
                       struct str name, struct arena *mem, struct session_row **ret_row,
                       struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, which, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, who->tenant);
    sq_owner(&b, who);
    sq_text(&b, name);
    return one_session(s, st, mem, ret_row, err);
}

bool sq_session_by_handle(struct store *s, const struct principal *who, struct str handle,
                          struct arena *mem, struct session_row **ret_row, struct error *err)
{
    return session_by(sq_of(s), SQ_SESSION_BY_HANDLE, who, handle, mem, ret_row, err);
}

bool sq_session_by_id(struct store *s, const struct principal *who, struct str id,
                      struct arena *mem, struct session_row **ret_row, struct error *err)
{
    return session_by(sq_of(s), SQ_SESSION_BY_ID, who, id, mem, ret_row, err);
}

bool sq_session_by_key(struct store *store, const struct principal *who, struct str carrier,
                       struct str key, struct arena *mem, struct session_row **ret_row,
                       struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_BY_KEY, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, who->tenant);
    sq_text(&b, who->owner);
    sq_text(&b, carrier);
    sq_text(&b, key);
    sq_int(&b, clock_life_ms());
    return one_session(s, st, mem, ret_row, err);
}

static bool read_transport(struct sq_row *r, void *to, struct error *err unused_arg)
{
    struct transport_row *row = to;
    sq_get_sha(r, row->id_hash);
    row->tenant = sq_get_bytes(r);
    row->owner = sq_get_bytes(r);
    row->endpoint = sq_get_bytes(r);
    row->protocol_version = sq_get_bytes(r);
    row->initialize_params = sq_get_bytes(r);
    row->session_id = sq_get_bytes(r);
    row->created_ms = sq_get_int(r);
    row->last_used_ms = sq_get_int(r);
    row->ended_ms = sq_get_int(r);
    return true;
}

bool sq_transport_get(struct store *store, const struct principal *who, const uint8_t id_hash[32],
                      struct arena *mem, struct transport_row **ret_row, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows transports = {
        .read = read_transport, .size = sizeof(struct transport_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, SQ_TRANSPORT_GET, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_blob(&b, str_n((const char *)id_hash, 32));
    sq_text(&b, who->tenant);
    sq_text(&b, who->owner);
    if (!sq_read_row(s, st, &transports, err))
        return false;
    *ret_row = transports.items;
    return true;
}

static void read_link(struct sq_row *r, struct link_row *row)
{
    row->session_id = sq_get_bytes(r);
    row->server = sq_get_bytes(r);
    row->writer = sq_get_int(r);
    row->remote_id = sq_get_bytes(r);
    row->opened_ms = sq_get_int(r);
    row->ended_ms = sq_get_int(r);
    row->end_reason = sq_get_bytes(r);
}

bool sq_read_links(struct sqlite_store *s, sqlite3_stmt *st, struct arena *mem,
                   struct link_row **ret_rows, size_t *ret_n, struct error *err)
{
    size_t n = 0;
    size_t cap = 8;
    struct link_row *rows = arena_zalloc(mem, cap * sizeof(*rows));
    for (bool row = true;; n++) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        if (n == cap) {
            struct link_row *more = arena_zalloc(mem, 2 * cap * sizeof(*rows));
            memcpy(more, rows, cap * sizeof(*rows));
            rows = more;
            cap *= 2;
        }
        struct sq_row r = {.st = st, .mem = mem};
        read_link(&r, &rows[n]);
    }
    sq_reset(st);
    *ret_rows = rows;
    *ret_n = n;
    return true;
}

bool sq_links_of(struct store *store, const struct principal *who, struct str session_id,
                 struct arena *mem, struct link_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    sqlite3_stmt *st = sq_prepare(s, SQ_LINKS_OF, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, who->tenant);
    sq_text(&b, who->owner);
    sq_text(&b, session_id);
    return sq_read_links(s, st, mem, ret_rows, ret_n, err);
}

static bool read_sessions(struct sqlite_store *s, sqlite3_stmt *st, unsigned limit,
                          struct arena *mem, struct session_row **ret_rows, size_t *ret_n,
                          struct error *err)
{
    struct sq_rows sessions = {
        .read = read_session, .size = sizeof(struct session_row), .mem = mem};
    if (!sq_read_rows(s, st, limit, &sessions, err))
        return false;
    *ret_rows = sessions.items;
    *ret_n = sessions.n;
    return true;
}

bool sq_sealed_page(struct store *store, struct str after, unsigned limit, struct arena *mem,
                    struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    sqlite3_stmt *st = sq_prepare(s, SQ_SEALED_PAGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, after.p ? after : STR(""));
    sq_int(&b, limit);
    return read_sessions(s, st, limit, mem, ret_rows, ret_n, err);
}

/* If only live or only ended sessions are requested, reads no others. */
static enum sq_statement page_statement(const struct principal *who, unsigned statuses)
{
    static const unsigned live = 1U << SESSION_ACTIVE | 1U << SESSION_IDLE;
    static const unsigned ended = 1U << SESSION_EXPIRED | 1U << SESSION_TERMINATED;
    bool wide = who->tenant_wide;
    if (!(statuses & ended) && statuses)
        return wide ? SQ_LIVE_OF_TENANT : SQ_LIVE_OF_OWNER;
    if (!(statuses & live) && statuses)
        return wide ? SQ_ENDED_OF_TENANT : SQ_ENDED_OF_OWNER;
    return wide ? SQ_SESSIONS_OF_TENANT : SQ_SESSIONS_OF_OWNER;
}

bool sq_sessions_page(struct store *store, const struct principal *who,
                      const struct session_filter *filter, unsigned limit, struct arena *mem,
                      struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    sqlite3_stmt *st = sq_prepare(s, page_statement(who, filter->statuses), err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, who->tenant);
    sq_text(&b, who->owner);
    sq_text(&b, filter->before.p ? filter->before : STR("\x7f")); /* sorts after every UUID */
    sq_int(&b, limit);
    sq_text(&b, filter->client_type);
    sq_int(&b, filter->statuses);
    sq_int(&b, filter->now_ms);
    sq_int(&b, filter->idle_ms);
    sq_page_begin(s);
    bool ok = read_sessions(s, st, limit, mem, ret_rows, ret_n, err);
    sq_page_end(s);
    return ok;
}

static bool tail_walk(struct sqlite_store *s, int64_t writer,
                      void (*each)(void *arg, const struct event_row *e), void *arg,
                      struct error *err)
{
    int64_t watermark = 0;
    struct sq_events c;
    struct event_row e;
    bool found = true;
    if (!sq_watermark(s, writer, &watermark, err) ||
        !sq_events_open(s, &c, SQ_EVENTS_UP, watermark + 1, sq_last_id_of(writer), false, err))
        return false;
    for (;;) {
        if (!sq_events_next(&c, &e, &found, err))
            return false;
        if (!found)
            break;
        each(arg, &e);
    }
    sq_events_close(&c);
    return true;
}

bool sq_tails_walk(struct sqlite_store *s, void (*each)(void *arg, const struct event_row *e),
                   void *arg, struct error *err)
{
    for (int64_t id = 0;;) {
        if (!sq_event_next(s, id, &id, err))
            return false;
        if (id == 0)
            return true;
        if (!tail_walk(s, id >> EVENT_WRITER_SHIFT, each, arg, err))
            return false;
        id = ((id >> EVENT_WRITER_SHIFT) + 1) << EVENT_WRITER_SHIFT;
    }
}

static void count_event(void *arg, const struct event_row *e unused_arg)
{
    (*(int64_t *)arg)++;
}

static bool count_all(struct sqlite_store *s, struct store_counts *ret, struct error *err)
{
    int64_t tails = 0;
    bool row = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_COUNTS, err);
    if (!st || !sq_tails_walk(s, count_event, &tails, err))
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, clock_life_ms());
    if (!sq_step(s, st, &row, err))
        return false;
    struct sq_row r = {.st = st};
    ret->sessions_active = sq_get_int(&r);
    ret->sessions_total = sq_get_int(&r);
    ret->transports = sq_get_int(&r);
    ret->events = sq_get_int(&r) + tails;
    ret->executions_open = sq_get_int(&r);
    sq_reset(st);
    return true;
}

bool sq_counts(struct store *store, struct store_counts *ret, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct store_counts counts = {0};
    if (!sq_begin_read(s, err))
        return false;
    bool ok = count_all(s, &counts, err);
    sq_end_read(s);
    if (ok)
        *ret = counts;
    return ok;
}
