/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: the reference for the contract, and the store that tests run on.  It uses
 * arrays and plain loops, so that it can be compared with store.h sentence by sentence.  Texts are
 * freed only when the store is closed.  One mutex protects the store, so the lanes may share it.
 *
 * A failed batch is rolled back whole.  Events are checked before any change and added last.  If an
 * op is required, the arrays are copied first and restored on failure (texts are never changed in
 * place). */
#include "store/memory_impl.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

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

/* mem_events_append() adds the events after all ops of the batch succeeded. */
static enum verdict event_is_in(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    (void)s, (void)op, (void)now_ms;
    return VERDICT_OK;
}

static const struct mem_op own_ops[] = {
    {OP_TRANSPORT_CREATE, transport_create},
    {OP_TRANSPORT_LINK, transport_change},
    {OP_TRANSPORT_TOUCH, transport_change},
    {OP_TRANSPORT_END, transport_change},
    {OP_LINK_PUT, link_put},
    {OP_LINK_END, link_end},
    {OP_EVENT_APPEND, event_is_in},
    {OP_WRITER_RENEW, writer_change},
    {OP_WRITER_END, writer_change},
    {0},
};
static const struct mem_op *op_of[OP_COUNT];

static void add_ops(const struct mem_op *list)
{
    for (; list->run; list++)
        op_of[list->kind] = list;
}

static void register_ops(void)
{
    static const struct mem_op *const lists[] = {
        mem_session_ops, mem_registry_ops, mem_secret_ops,      mem_login_ops,
        mem_tool_ops,    own_ops,          mem_undelivered_ops, mem_size_ops};
    for (size_t i = 0; i < countof(lists); i++)
        add_ops(lists[i]);
}

struct mem_saved {
    size_t n;
    void *rows;
};

/* All arrays that a verb may change; events are not among them. */
static size_t tables_of(struct memory_store *s, struct mem_table ret[MEM_TABLES_MAX])
{
#define TABLE(rows, n)                                                                             \
    {                                                                                              \
        (void **)&s->rows, &s->n, sizeof(*s->rows)                                                 \
    }
    const struct mem_table own[] = {
        TABLE(sessions, n_sessions),
        TABLE(transports, n_transports),
        TABLE(links, n_links),
        TABLE(writers, n_writers),
        TABLE(undelivered, n_undelivered),
        TABLE(tenants, n_tenants),
        TABLE(users, n_users),
        TABLE(keys, n_keys),
        TABLE(tenant_keys, n_tenant_keys),
        TABLE(secrets, n_secrets),
        TABLE(logins, n_logins),
        TABLE(contexts, n_contexts),
        TABLE(idempotency, n_idempotency),
        TABLE(tools, n_tools),
        TABLE(servers, n_servers),
    };
#undef TABLE
    memcpy(ret, own, sizeof(own));
    size_t n = countof(own) + mem_families_tables(s, ret + countof(own));
    assert(n <= MEM_TABLES_MAX);
    return n;
}

static void tables_save(struct memory_store *s, struct mem_saved ret[MEM_TABLES_MAX])
{
    struct mem_table tables[MEM_TABLES_MAX];
    size_t n = tables_of(s, tables);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = *tables[i].n * tables[i].size;
        ret[i] = (struct mem_saved){.n = *tables[i].n, .rows = xmalloc(bytes + 1)};
        if (bytes)
            memcpy(ret[i].rows, *tables[i].rows, bytes);
    }
}

/* The arrays may have moved, but are at least as large as before. */
static void tables_restore(struct memory_store *s, const struct mem_saved saved[MEM_TABLES_MAX])
{
    struct mem_table tables[MEM_TABLES_MAX];
    size_t n = tables_of(s, tables);
    for (size_t i = 0; i < n; i++) {
        *tables[i].n = saved[i].n;
        if (saved[i].n)
            memcpy(*tables[i].rows, saved[i].rows, saved[i].n * tables[i].size);
    }
}

static void tables_release(struct mem_saved saved[MEM_TABLES_MAX])
{
    for (size_t i = 0; i < MEM_TABLES_MAX; i++)
        free(saved[i].rows);
}

static bool write_batch(struct store *store, struct store_op *ops, size_t n, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct mem_saved before[MEM_TABLES_MAX] = {0};
    bool undoable = false;
    for (size_t i = 0; i < n; i++)
        undoable = undoable || ops[i].required;
    pthread_mutex_lock(&s->lock);
    bool ok = mem_events_check(s, ops, n, err);
    undoable = undoable && ok;
    if (undoable)
        tables_save(s, before);
    for (size_t i = 0; ok && i < n; i++) {
        ops[i].verdict = op_of[ops[i].kind]->run(s, &ops[i], clock_life_ms());
        ok = !store_op_is_refused(&ops[i], err);
    }
    if (ok)
        mem_events_append(s, ops, n);
    else if (undoable)
        tables_restore(s, before);
    if (undoable)
        tables_release(before);
    pthread_mutex_unlock(&s->lock);
    return ok;
}

static bool transport_get(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct transport_row *copy = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    const struct transport_row *found = mem_transport_of(s, c->who, c->hash);
    if (found) {
        copy = arena_new_of(c->mem, struct transport_row);
        *copy = *found;
        mem_copy_texts(c->mem, copy, transport_texts, countof(transport_texts));
    }
    c->rows = copy;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static int by_server(const void *a, const void *b)
{
    return str_cmp(((const struct link_row *)a)->server, ((const struct link_row *)b)->server);
}

static bool links_of(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct link_row *rows = arena_zalloc(c->mem, s->n_links * sizeof(*rows) + 1);
    bool owned = mem_session_of(s, c->who, c->session_id) != NULL;
    for (size_t i = 0; i < s->n_links && owned; i++)
        if (str_eq(s->links[i].session_id, c->session_id)) {
            rows[n] = s->links[i];
            mem_copy_texts(c->mem, &rows[n++], link_texts, countof(link_texts));
        }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), by_server);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool writer_start(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_writers; i++)
        if ((c->flag || str_eq(s->writers[i].uuid, c->writer->previous)) &&
            s->writers[i].lease_until_ms > c->writer->started_ms)
            s->writers[i].lease_until_ms = c->writer->started_ms;
    s->writers = mem_grow(s->writers, s->n_writers, &s->cap_writers, sizeof(struct writer_row));
    s->writers[s->n_writers] = *c->writer;
    s->writers[s->n_writers].uuid = arena_dup(s->mem, c->writer->uuid);
    s->writers[s->n_writers].node = arena_dup(s->mem, c->writer->node);
    s->writers[s->n_writers].previous = STR_NONE;
    c->writer->number = s->writers[s->n_writers].number = (int64_t)s->n_writers + 1;
    s->n_writers++;
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool counts(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct store_counts found = {0};
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_sessions; i++)
        found.sessions_active += session_row_is_live(&s->sessions[i], clock_life_ms());
    for (size_t i = 0; i < s->n_transports; i++)
        found.transports += s->transports[i].ended_ms == 0;
    for (size_t i = 0; i < s->n_execs; i++)
        found.executions_open += !s->execs[i].closed;
    found.sessions_total = (int64_t)s->n_sessions;
    found.events = (int64_t)s->n_events;
    pthread_mutex_unlock(&s->lock);
    *(struct store_counts *)c->ret = found;
    return true;
}

/* Deletes up to `batch` transports that ended, or that were last used at `until_ms` or before. */
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

static const struct session_row *session_by_id(const struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_sessions; i++)
        if (str_eq(s->sessions[i].id, id))
            return &s->sessions[i];
    return NULL;
}

bool mem_session_is_over(const struct memory_store *s, struct str id)
{
    const struct session_row *row = session_by_id(s, id);
    return !row || (row->status != SESSION_ACTIVE && row->status != SESSION_IDLE);
}

static void drop_links(struct memory_store *s, const struct reap_request *what, struct reaped *ret)
{
    if (!what->links)
        return;
    ret->links = arena_zalloc(what->mem, s->n_links * sizeof(struct link_row) + 1);
    for (size_t i = s->n_links; i-- > 0;) {
        const struct session_row *row = session_by_id(s, s->links[i].session_id);
        struct link_row *link = &ret->links[ret->n_links];
        if (!mem_session_is_over(s, s->links[i].session_id))
            continue;
        if (ret->n_links == what->links) {
            ret->more_links = true;
            return;
        }
        *link = s->links[i];
        if (row && row->origin == ORIGIN_DERIVED)
            link->remote_id = STR_NONE;
        mem_copy_texts(what->mem, link, link_texts, countof(link_texts));
        s->links[i] = s->links[--s->n_links];
        ret->n_links++;
    }
}

static void reap_families(struct memory_store *s)
{
    size_t n;
    const struct memory_family *const *families = memory_families(&n);
    for (size_t i = 0; i < n; i++)
        if (families[i]->reap)
            families[i]->reap(s);
}

static bool reap(struct store *store, struct store_call *c, struct error *err)
{
    const struct reap_request *what = c->filter;
    struct reaped *ret = c->ret;
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    mem_fold_all(s);
    *ret = mem_sessions_reap(s, what);
    drop_transports(s, true, 0, what->batch);
    drop_transports(s, false, what->now_ms - TRANSPORT_IDLE_MS, what->batch);
    mem_undelivered_reap(s, what->now_ms, what->batch);
    mem_idempotency_reap(s, what->now_ms, what->batch);
    mem_logins_reap(s, what->now_ms, what->batch);
    reap_families(s);
    drop_links(s, what, ret);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static void close_memory(struct store *store)
{
    struct memory_store *s = mem_of(store);
    mem_families_release(s);
    pthread_mutex_destroy(&s->lock);
    arena_free(s->mem);
    free(s->sessions);
    free(s->transports);
    free(s->links);
    free(s->writers);
    free(s->undelivered);
    free(s->tenants);
    free(s->users);
    free(s->keys);
    free(s->tenant_keys);
    free(s->secrets);
    free(s->tools);
    free(s->servers);
    free(s->logins);
    free(s->contexts);
    free(s->idempotency);
    free(s->events);
    free(s->execs);
    free(s);
}

static const struct verb_handler own_verbs[] = {
    {VERB_TRANSPORT_GET, transport_get},
    {VERB_LINKS_OF, links_of},
    {VERB_WRITER_START, writer_start},
    {VERB_COUNTS, counts},
    {VERB_REAP, reap},
    {VERB_SESSIONS_FIND, store_find_each},
    {0},
};

static store_handler *handlers[VERB_COUNT];

static void register_families(void)
{
    size_t n;
    const struct memory_family *const *families = memory_families(&n);
    for (size_t i = 0; i < n; i++) {
        add_ops(families[i]->ops);
        store_handlers_add(handlers, families[i]->verbs);
    }
    for (size_t i = 0; i < OP_COUNT; i++)
        assert(op_of[i] || !store_op_infos[i].name);
    for (size_t i = 0; i < VERB_COUNT; i++)
        assert(handlers[i] || !store_verbs[i].name);
}

static void register_verbs(void)
{
    register_ops();
    store_handlers_add(handlers, own_verbs);
    store_handlers_add(handlers, mem_session_verbs);
    store_handlers_add(handlers, mem_registry_verbs);
    store_handlers_add(handlers, mem_secret_verbs);
    store_handlers_add(handlers, mem_login_verbs);
    store_handlers_add(handlers, mem_tool_verbs);
    store_handlers_add(handlers, mem_event_verbs);
    store_handlers_add(handlers, mem_undelivered_verbs);
    store_handlers_add(handlers, mem_size_verbs);
    register_families();
}

static bool call_verb(struct store *store, struct store_call *c, struct error *err)
{
    return handlers[c->verb](store, c, err);
}

static const struct store_ops memory_ops = {
    .name = "memory",
    .close = close_memory,
    .write = write_batch,
    .call = call_verb,
};

bool store_open_memory(struct store **ret, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_verbs);
    struct memory_store *s = xcalloc(1, sizeof(*s));
    (void)err;
    s->base.ops = &memory_ops;
    s->mem = arena_new(SIZE_MAX);
    mem_families_init(s);
    pthread_mutex_init(&s->lock, NULL);
    mem_tenant_make(s, STR("default"), 0);
    *ret = &s->base;
    return true;
}
