/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: the reference for the contract, and what tests run on.  Arrays and plain
 * loops, so that it can be read against store.h sentence by sentence; nothing is freed before the
 * store is closed.  One mutex, so the lanes may share it.
 *
 * A batch is rolled back whole without a log: the only thing that can fail in it is an event under
 * a taken id, and events are put in first. */
#include "store/memory_impl.h"

#include <stdlib.h>

#include "base/clock.h"

static const size_t session_texts[] = {
    offsetof(struct session_row, id),
    offsetof(struct session_row, handle),
    offsetof(struct session_row, tenant),
    offsetof(struct session_row, owner),
    offsetof(struct session_row, user_id),
    offsetof(struct session_row, edge_mcp_id),
    offsetof(struct session_row, client_name),
    offsetof(struct session_row, client_type),
    offsetof(struct session_row, client_version),
    offsetof(struct session_row, carrier),
    offsetof(struct session_row, carrier_key),
    offsetof(struct session_row, core_session_id),
    offsetof(struct session_row, connection_metadata),
    offsetof(struct session_row, context_id),
    offsetof(struct session_row, sealed_auth),
    offsetof(struct session_row, termination_reason),
};
static const size_t transport_texts[] = {
    offsetof(struct transport_row, tenant),
    offsetof(struct transport_row, owner),
    offsetof(struct transport_row, endpoint),
    offsetof(struct transport_row, protocol_version),
    offsetof(struct transport_row, initialize_params),
    offsetof(struct transport_row, session_id),
};
static const size_t link_texts[] = {
    offsetof(struct link_row, session_id),
    offsetof(struct link_row, server),
    offsetof(struct link_row, remote_id),
    offsetof(struct link_row, end_reason),
};

void mem_copy_texts(struct arena *mem, void *row, const size_t *offsets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct str *s = (struct str *)((char *)row + offsets[i]);
        *s = arena_dup(mem, *s);
    }
}

void *mem_grow(void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return array;
    *cap = *cap ? 2 * *cap : 16;
    return xrealloc(array, *cap * size);
}

/* The row's own memory, whoever owns it. */
static struct session_row *session_row_by_id(struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_sessions; i++)
        if (str_eq(s->sessions[i].id, id))
            return &s->sessions[i];
    return NULL;
}

struct session_row *mem_session_of(struct memory_store *s, const struct principal *who,
                                   struct str id)
{
    struct session_row *row = session_row_by_id(s, id);
    return row && principal_owns(who, row->tenant, row->owner) ? row : NULL;
}

static bool has_key(const struct session_row *row, const struct principal *who, struct str carrier,
                    struct str key)
{
    return key.p && row->carrier_key.p && principal_owns(who, row->tenant, row->owner) &&
           str_eq(row->carrier, carrier) && str_eq(row->carrier_key, key);
}

static bool session_is_taken(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    const struct session_row *want = op->session;
    for (size_t i = 0; i < s->n_sessions; i++) {
        const struct session_row *row = &s->sessions[i];
        if (str_eq(row->id, want->id) ||
            (str_eq(row->tenant, op->who->tenant) && str_eq(row->handle, want->handle)) ||
            (session_row_is_live(row, now_ms) &&
             has_key(row, op->who, want->carrier, want->carrier_key)))
            return true;
    }
    return false;
}

static bool tenant_has_room(const struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    int64_t counted = 0;
    for (size_t i = 0; i < s->n_sessions; i++)
        counted += s->sessions[i].counted && str_eq(s->sessions[i].tenant, op->who->tenant) &&
                   session_row_is_live(&s->sessions[i], now_ms);
    return op->max_counted < 0 || counted < op->max_counted;
}

static enum verdict session_create(struct memory_store *s, const struct store_op *op,
                                   int64_t now_ms)
{
    if (session_is_taken(s, op, now_ms))
        return VERDICT_DUPLICATE;
    if (op->session->counted && !tenant_has_room(s, op, now_ms))
        return VERDICT_LIMIT;
    s->sessions =
        mem_grow(s->sessions, s->n_sessions, &s->cap_sessions, sizeof(struct session_row));
    struct session_row *row = &s->sessions[s->n_sessions++];
    *row = *op->session;
    row->tenant = op->who->tenant;
    row->owner = op->who->owner;
    row->version = row->version ? row->version : 1;
    mem_copy_texts(s->mem, row, session_texts, countof(session_texts));
    return VERDICT_OK;
}

static enum verdict session_name(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct session_row *row = mem_session_of(s, op->who, op->session->id);
    if (!row)
        return VERDICT_MISSING;
    if (!session_row_is_live(row, now_ms))
        return VERDICT_NOT_ACTIVE;
    if (row->counted && !row->provisional)
        return VERDICT_OK;
    if (!row->counted && !tenant_has_room(s, op, now_ms))
        return VERDICT_LIMIT;
    row->counted = true;
    row->provisional = false;
    row->version++;
    if (op->session->expires_ms)
        row->expires_ms = op->session->expires_ms;
    return VERDICT_OK;
}

static enum verdict session_end(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct session_row *row = mem_session_of(s, op->who, op->session->id);
    if (!row || !session_row_is_live(row, now_ms))
        return VERDICT_MISSING;
    row->status = op->session->status;
    row->terminated_ms = op->session->terminated_ms;
    row->termination_reason = arena_dup(s->mem, op->session->termination_reason);
    row->version++;
    return VERDICT_OK;
}

static struct transport_row *transport_by_hash(struct memory_store *s, const uint8_t id_hash[32])
{
    for (size_t i = 0; i < s->n_transports; i++)
        if (memcmp(s->transports[i].id_hash, id_hash, 32) == 0)
            return &s->transports[i];
    return NULL;
}

struct transport_row *mem_transport_of(struct memory_store *s, const struct principal *who,
                                       const uint8_t id_hash[32])
{
    struct transport_row *row = transport_by_hash(s, id_hash);
    return row && !row->ended_ms && principal_owns(who, row->tenant, row->owner) ? row : NULL;
}

static enum verdict transport_create(struct memory_store *s, const struct store_op *op,
                                     int64_t now_ms)
{
    (void)now_ms;
    if (transport_by_hash(s, op->transport->id_hash))
        return VERDICT_DUPLICATE;
    if (op->transport->session_id.p && !mem_session_of(s, op->who, op->transport->session_id))
        return VERDICT_MISSING;
    s->transports =
        mem_grow(s->transports, s->n_transports, &s->cap_transports, sizeof(struct transport_row));
    struct transport_row *row = &s->transports[s->n_transports++];
    *row = *op->transport;
    row->tenant = op->who->tenant;
    row->owner = op->who->owner;
    mem_copy_texts(s->mem, row, transport_texts, countof(transport_texts));
    return VERDICT_OK;
}

static enum verdict transport_change(struct memory_store *s, const struct store_op *op,
                                     int64_t now_ms)
{
    struct transport_row *row = mem_transport_of(s, op->who, op->transport->id_hash);
    (void)now_ms;
    if (!row)
        return VERDICT_MISSING;
    if (op->kind == OP_TRANSPORT_LINK) {
        if (!mem_session_of(s, op->who, op->transport->session_id))
            return VERDICT_MISSING;
        row->session_id = arena_dup(s->mem, op->transport->session_id);
    } else if (op->kind == OP_TRANSPORT_END) {
        row->ended_ms = op->transport->ended_ms;
    } else if (op->transport->last_used_ms > row->last_used_ms) {
        row->last_used_ms = op->transport->last_used_ms;
    }
    return VERDICT_OK;
}

static struct link_row *link_by_key(struct memory_store *s, struct str session_id,
                                    struct str server)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (str_eq(s->links[i].session_id, session_id) && str_eq(s->links[i].server, server))
            return &s->links[i];
    return NULL;
}

static enum verdict link_put(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    (void)now_ms;
    if (!mem_session_of(s, op->who, op->link->session_id))
        return VERDICT_MISSING;
    struct link_row *row = link_by_key(s, op->link->session_id, op->link->server);
    if (!row) {
        s->links = mem_grow(s->links, s->n_links, &s->cap_links, sizeof(struct link_row));
        row = &s->links[s->n_links++];
    }
    *row = *op->link;
    mem_copy_texts(s->mem, row, link_texts, countof(link_texts));
    return VERDICT_OK;
}

static enum verdict link_end(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    struct link_row *row = link_by_key(s, op->link->session_id, op->link->server);
    (void)now_ms;
    if (!row || row->ended_ms || !mem_session_of(s, op->who, op->link->session_id))
        return VERDICT_MISSING;
    row->writer = 0;
    row->ended_ms = op->link->ended_ms;
    row->end_reason = arena_dup(s->mem, op->link->end_reason);
    return VERDICT_OK;
}

static enum verdict writer_change(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    int64_t number = op->writer->number;
    (void)now_ms;
    if (number < 1 || (size_t)number > s->n_writers || s->writers[number - 1].ended_ms)
        return VERDICT_MISSING;
    if (op->kind == OP_WRITER_RENEW)
        s->writers[number - 1].lease_until_ms = op->writer->lease_until_ms;
    else
        s->writers[number - 1].ended_ms = op->writer->ended_ms;
    return VERDICT_OK;
}

static enum verdict event_is_in(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    (void)s, (void)op, (void)now_ms;
    return VERDICT_OK;
}

static enum verdict (*const verbs[OP_COUNT])(struct memory_store *, const struct store_op *,
                                             int64_t) = {
    [OP_SESSION_CREATE] = session_create,
    [OP_SESSION_NAME] = session_name,
    [OP_SESSION_END] = session_end,
    [OP_TRANSPORT_CREATE] = transport_create,
    [OP_TRANSPORT_LINK] = transport_change,
    [OP_TRANSPORT_TOUCH] = transport_change,
    [OP_TRANSPORT_END] = transport_change,
    [OP_LINK_PUT] = link_put,
    [OP_LINK_END] = link_end,
    [OP_EVENT_APPEND] = event_is_in,
    [OP_WRITER_RENEW] = writer_change,
    [OP_WRITER_END] = writer_change,
    [OP_UNDELIVERED_PUT] = mem_undelivered_put,
    [OP_UNDELIVERED_TAKE] = mem_undelivered_take,
};

static bool write_batch(struct store *store, struct store_op *ops, size_t n, struct error *err)
{
    struct memory_store *s = mem_of(store);
    pthread_mutex_lock(&s->lock);
    bool ok = mem_events_append(s, ops, n, err);
    for (size_t i = 0; ok && i < n; i++)
        ops[i].verdict = verbs[ops[i].kind](s, &ops[i], clock_life_ms());
    pthread_mutex_unlock(&s->lock);
    return ok;
}

/* A copy in the caller's memory, as it is to be seen now. */
static struct session_row *session_copy(const struct session_row *row, struct arena *mem)
{
    if (!row)
        return NULL;
    struct session_row *copy = arena_new_of(mem, struct session_row);
    *copy = *row;
    session_row_settle(copy, clock_life_ms());
    mem_copy_texts(mem, copy, session_texts, countof(session_texts));
    return copy;
}

static bool session_by_handle(struct store *store, const struct principal *who, struct str handle,
                              struct arena *mem, struct session_row **ret_row, struct error *err)
{
    struct memory_store *s = mem_of(store);
    const struct session_row *found = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_sessions && !found; i++)
        if (principal_owns(who, s->sessions[i].tenant, s->sessions[i].owner) &&
            str_eq(s->sessions[i].handle, handle))
            found = &s->sessions[i];
    *ret_row = session_copy(found, mem);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool session_by_id(struct store *store, const struct principal *who, struct str id,
                          struct arena *mem, struct session_row **ret_row, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    *ret_row = session_copy(mem_session_of(s, who, id), mem);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool session_by_key(struct store *store, const struct principal *who, struct str carrier,
                           struct str key, struct arena *mem, struct session_row **ret_row,
                           struct error *err)
{
    struct memory_store *s = mem_of(store);
    const struct session_row *found = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_sessions && !found; i++)
        if (session_row_is_live(&s->sessions[i], clock_life_ms()) &&
            has_key(&s->sessions[i], who, carrier, key))
            found = &s->sessions[i];
    *ret_row = session_copy(found, mem);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool transport_get(struct store *store, const struct principal *who,
                          const uint8_t id_hash[32], struct arena *mem,
                          struct transport_row **ret_row, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct transport_row *copy = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct transport_row *found = mem_transport_of(s, who, id_hash);
    if (found) {
        copy = arena_new_of(mem, struct transport_row);
        *copy = *found;
        mem_copy_texts(mem, copy, transport_texts, countof(transport_texts));
    }
    *ret_row = copy;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static int by_server(const void *a, const void *b)
{
    return str_cmp(((const struct link_row *)a)->server, ((const struct link_row *)b)->server);
}

static bool links_of(struct store *store, const struct principal *who, struct str session_id,
                     struct arena *mem, struct link_row **ret_rows, size_t *ret_n,
                     struct error *err)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct link_row *rows = arena_zalloc(mem, s->n_links * sizeof(*rows) + 1);
    bool owned = mem_session_of(s, who, session_id) != NULL;
    for (size_t i = 0; i < s->n_links && owned; i++)
        if (str_eq(s->links[i].session_id, session_id)) {
            rows[n] = s->links[i];
            mem_copy_texts(mem, &rows[n++], link_texts, countof(link_texts));
        }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), by_server);
    *ret_rows = rows;
    *ret_n = n;
    return true;
}

static int newest_first(const void *a, const void *b)
{
    return str_cmp((*(struct session_row *const *)b)->id, (*(struct session_row *const *)a)->id);
}

static bool sessions_page(struct store *store, const struct principal *who,
                          const struct session_filter *filter, unsigned limit, struct arena *mem,
                          struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct str before = filter->before;
    struct memory_store *s = mem_of(store);
    bool all = who->tenant_wide;
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct session_row **seen = xcalloc(s->n_sessions + 1, sizeof(*seen));
    for (size_t i = 0; i < s->n_sessions; i++) {
        struct session_row *row = &s->sessions[i];
        if (str_eq(row->tenant, who->tenant) && (all || str_eq(row->owner, who->owner)) &&
            (!before.p || str_cmp(row->id, before) < 0))
            seen[n++] = row;
    }
    qsort(seen, n, sizeof(*seen), newest_first);
    n = n < limit ? n : limit;
    struct session_row *rows = arena_zalloc(mem, limit * sizeof(*rows));
    for (size_t i = 0; i < n; i++)
        rows[i] = *session_copy(seen[i], mem);
    pthread_mutex_unlock(&s->lock);
    free(seen);
    *ret_rows = rows;
    *ret_n = n;
    return true;
}

static bool writer_start(struct store *store, struct writer_row *row, bool exclusive,
                         struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; exclusive && i < s->n_writers; i++)
        if (s->writers[i].lease_until_ms > row->started_ms)
            s->writers[i].lease_until_ms = row->started_ms;
    s->writers = mem_grow(s->writers, s->n_writers, &s->cap_writers, sizeof(struct writer_row));
    s->writers[s->n_writers] = *row;
    s->writers[s->n_writers].uuid = arena_dup(s->mem, row->uuid);
    s->writers[s->n_writers].node = arena_dup(s->mem, row->node);
    row->number = s->writers[s->n_writers].number = (int64_t)s->n_writers + 1;
    s->n_writers++;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool counts(struct store *store, struct store_counts *ret, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct store_counts c = {0};
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_sessions; i++)
        c.sessions_active += session_row_is_live(&s->sessions[i], clock_life_ms());
    for (size_t i = 0; i < s->n_transports; i++)
        c.transports += s->transports[i].ended_ms == 0;
    for (size_t i = 0; i < s->n_execs; i++)
        c.executions_open += !s->execs[i].closed;
    c.sessions_total = (int64_t)s->n_sessions;
    c.events = (int64_t)s->n_events;
    pthread_mutex_unlock(&s->lock);
    *ret = c;
    return true;
}

/* The live session that passed its end first, or NULL. */
static struct session_row *first_past(struct memory_store *s, int64_t now_ms)
{
    struct session_row *first = NULL;
    for (size_t i = 0; i < s->n_sessions; i++) {
        struct session_row *row = &s->sessions[i];
        bool past = (row->status == SESSION_ACTIVE || row->status == SESSION_IDLE) &&
                    !session_row_is_live(row, now_ms);
        if (past && (!first || row->expires_ms < first->expires_ms))
            first = row;
    }
    return first;
}

/* Takes away up to `batch` transports that ended, or that idled until `until_ms`. */
static void drop_transports(struct memory_store *s, bool ended, int64_t until_ms, unsigned batch)
{
    for (; batch; batch--) {
        struct transport_row *first = NULL;
        for (size_t i = 0; i < s->n_transports; i++) {
            struct transport_row *row = &s->transports[i];
            bool dead =
                ended ? row->ended_ms != 0 : !row->ended_ms && row->last_used_ms <= until_ms;
            if (dead && (!first || row->last_used_ms < first->last_used_ms))
                first = row;
        }
        if (!first)
            return;
        *first = s->transports[--s->n_transports];
    }
}

static bool reap(struct store *store, const struct reap_what *what, struct reaped *ret,
                 struct error *err)
{
    int64_t now_ms = what->now_ms;
    unsigned batch = what->batch;
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    mem_fold_all(s);
    for (struct session_row *row; n < batch && (row = first_past(s, now_ms)); n++) {
        session_row_settle(row, now_ms);
        row->version++;
    }
    drop_transports(s, true, 0, batch);
    drop_transports(s, false, now_ms - TRANSPORT_IDLE_MS, batch);
    mem_undelivered_reap(s, now_ms, batch);
    pthread_mutex_unlock(&s->lock);
    *ret = (struct reaped){.expired = n};
    return true;
}

static void close_memory(struct store *store)
{
    struct memory_store *s = mem_of(store);
    pthread_mutex_destroy(&s->lock);
    arena_free(s->mem);
    free(s->sessions);
    free(s->transports);
    free(s->links);
    free(s->writers);
    free(s->undelivered);
    free(s->events);
    free(s->execs);
    free(s);
}

static const struct store_ops memory_ops = {
    .name = "memory",
    .close = close_memory,
    .write = write_batch,
    .session_by_handle = session_by_handle,
    .session_by_id = session_by_id,
    .session_by_key = session_by_key,
    .transport_get = transport_get,
    .links_of = links_of,
    .sessions_page = sessions_page,
    .undelivered_get = mem_undelivered_get,
    .undelivered_page = mem_undelivered_page,
    .events_page = mem_events_page,
    .chain_heads = mem_chain_heads,
    .writer_start = writer_start,
    .open_intents = mem_open_intents,
    .fold = mem_fold,
    .counts = counts,
    .reap = reap,
};

bool store_open_memory(struct store **ret, struct error *err)
{
    struct memory_store *s = xcalloc(1, sizeof(*s));
    (void)err;
    s->base.ops = &memory_ops;
    s->mem = arena_new(SIZE_MAX);
    pthread_mutex_init(&s->lock, NULL);
    *ret = &s->base;
    return true;
}
