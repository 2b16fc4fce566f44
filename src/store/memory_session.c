/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in the memory store: their verbs, their reads, and the reaper.  The caller of a verb
 * holds the lock; reads take it. */
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
    offsetof(struct session_row, toolsets),
    offsetof(struct session_row, sealed_context),
    offsetof(struct session_row, setup),
    offsetof(struct session_row, lineage),
};
/* The stored row, not a copy; the owner is not checked. */
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

/* As mem_session_of(), or with who->tenant_wide any session of the tenant. */
struct session_row *mem_session_reached(struct memory_store *s, const struct principal *who,
                                        struct str id)
{
    struct session_row *row = session_row_by_id(s, id);
    bool reached = row && str_eq(row->tenant, who->tenant) &&
                   (who->tenant_wide || str_eq(row->owner, who->owner));
    return reached ? row : NULL;
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
        counted += str_eq(s->sessions[i].tenant, op->who->tenant) &&
                   session_row_counts(&s->sessions[i], now_ms);
    return op->max_counted < 0 || counted < op->max_counted;
}

static enum verdict session_create(struct memory_store *s, const struct store_op *op,
                                   int64_t now_ms)
{
    mem_tenant_make(s, op->who->tenant, now_ms);
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

static enum verdict session_promote(struct memory_store *s, const struct store_op *op,
                                    int64_t now_ms)
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
    struct session_row *row = mem_session_reached(s, op->who, op->session->id);
    if (!row || !session_row_is_live(row, now_ms))
        return VERDICT_MISSING;
    row->status = op->session->status;
    row->terminated_ms = op->session->terminated_ms;
    row->termination_reason = arena_dup(s->mem, op->session->termination_reason);
    row->version++;
    return VERDICT_OK;
}

void mem_session_use(struct session_row *row, int64_t at_ms)
{
    int64_t moved = at_ms - row->last_activity_ms;
    if (moved <= 0)
        return;
    row->last_activity_ms = at_ms;
    if (!session_row_is_live(row, at_ms))
        return;
    row->status = SESSION_ACTIVE;
    if (row->ttl_ms == 0 && row->expires_ms) {
        int64_t most = row->created_ms + SESSION_LIFE_MAX_MS;
        int64_t ceiling = most > row->expires_ms ? most : row->expires_ms;
        row->expires_ms = row->expires_ms + moved < ceiling ? row->expires_ms + moved : ceiling;
    }
}

/* The live session `id`; NULL with the verdict when it is missing or not live. */
static struct session_row *live_one(struct memory_store *s, const struct store_op *op,
                                    struct str id, int64_t now_ms, enum verdict *ret)
{
    struct session_row *row = mem_session_reached(s, op->who, id);
    *ret = !row                               ? VERDICT_MISSING
           : session_row_is_live(row, now_ms) ? VERDICT_OK
                                              : VERDICT_NOT_ACTIVE;
    return *ret == VERDICT_OK ? row : NULL;
}

static enum verdict session_touch(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    enum verdict verdict;
    struct session_row *row = live_one(s, op, op->session->id, now_ms, &verdict);
    bool can_wait = row && op->is_in_event && row->status == SESSION_ACTIVE &&
                    (!row->expires_ms || row->expires_ms > now_ms + SESSION_END_NEAR_MS);
    if (row && !can_wait) {
        mem_session_use(row, op->session->last_activity_ms);
        row->status = SESSION_ACTIVE;
        row->version++;
    }
    return verdict;
}

static enum verdict session_patch(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    static const struct {
        enum session_field field;
        size_t offset;
    } texts[] = {
        {FIELD_CLIENT_NAME, offsetof(struct session_row, client_name)},
        {FIELD_CLIENT_TYPE, offsetof(struct session_row, client_type)},
        {FIELD_CLIENT_VERSION, offsetof(struct session_row, client_version)},
        {FIELD_CONNECTION_METADATA, offsetof(struct session_row, connection_metadata)},
        {FIELD_CORE_SESSION_ID, offsetof(struct session_row, core_session_id)},
        {FIELD_CONTEXT_ID, offsetof(struct session_row, context_id)},
        {FIELD_SEALED_AUTH, offsetof(struct session_row, sealed_auth)},
        {FIELD_TOOLSETS, offsetof(struct session_row, toolsets)},
        {FIELD_SETUP, offsetof(struct session_row, setup)},
    };
    enum verdict verdict;
    struct session_row *row = live_one(s, op, op->session->id, now_ms, &verdict);
    if (!row)
        return verdict;
    if (op->session->version && op->session->version != row->version)
        return VERDICT_STALE;
    for (size_t i = 0; i < countof(texts); i++)
        if (op->fields & texts[i].field) {
            const char *from = (const char *)op->session + texts[i].offset;
            struct str *to = (struct str *)((char *)row + texts[i].offset);
            *to = arena_dup(s->mem, *(const struct str *)from);
        }
    if (op->fields & FIELD_INITIALIZED)
        row->initialized = op->session->initialized;
    row->version++;
    return VERDICT_OK;
}

static enum verdict session_refresh(struct memory_store *s, const struct store_op *op,
                                    int64_t now_ms)
{
    enum verdict verdict;
    struct session_row *row = live_one(s, op, op->session->id, now_ms, &verdict);
    if (row) {
        row->expires_ms = op->session->expires_ms;
        row->ttl_ms = op->session->ttl_ms;
        row->version++;
    }
    return verdict;
}

static enum verdict context_put(struct memory_store *s, const struct store_op *op, int64_t now_ms)
{
    enum verdict verdict;
    struct session_row *row = live_one(s, op, op->context->session_id, now_ms, &verdict);
    if (!row)
        return verdict;
    struct str id = row->context_id.p ? row->context_id : op->context->id;
    verdict = mem_context_write(s, op, id);
    if (verdict == VERDICT_OK && !row->context_id.p) {
        row->context_id = arena_dup(s->mem, id);
        row->version++;
    }
    return verdict;
}

struct session_row *mem_session_copy(const struct session_row *row, struct arena *mem)
{
    if (!row)
        return NULL;
    struct session_row *copy = arena_new_of(mem, struct session_row);
    *copy = *row;
    session_row_apply_expiry(copy, clock_life_ms());
    mem_copy_texts(mem, copy, session_texts, countof(session_texts));
    return copy;
}

static bool session_by_handle(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    const struct session_row *found = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_sessions && !found; i++)
        if (str_eq(s->sessions[i].handle, c->id))
            found = mem_session_reached(s, c->who, s->sessions[i].id);
    c->rows = mem_session_copy(found, c->mem);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool session_by_id(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    c->rows = mem_session_copy(mem_session_reached(s, c->who, c->id), c->mem);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool session_by_key(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    const struct session_row *found = NULL;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_sessions && !found; i++)
        if (session_row_is_live(&s->sessions[i], clock_life_ms()) &&
            has_key(&s->sessions[i], c->who, c->name, c->id))
            found = &s->sessions[i];
    c->rows = mem_session_copy(found, c->mem);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static int newest_first(const void *a, const void *b)
{
    return str_cmp((*(struct session_row *const *)b)->id, (*(struct session_row *const *)a)->id);
}

static bool page_shows(const struct session_filter *f, const struct session_row *row)
{
    struct session_row seen = *row;
    if (f->before.p && str_cmp(row->id, f->before) >= 0)
        return false;
    if (f->client_type.p && (!row->client_type.p || !str_eq(row->client_type, f->client_type)))
        return false;
    session_row_apply_idle(&seen, f->now_ms, f->idle_ms);
    return f->statuses == 0 || f->statuses & 1U << seen.status;
}

static bool sessions_page(struct store *store, struct store_call *c, struct error *err)
{
    const struct session_filter *filter = c->filter;
    struct memory_store *s = mem_of(store);
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    struct session_row **seen = xcalloc(s->n_sessions + 1, sizeof(*seen));
    for (size_t i = 0; i < s->n_sessions; i++) {
        struct session_row *row = &s->sessions[i];
        if (mem_session_reached(s, c->who, row->id) && page_shows(filter, row))
            seen[n++] = row;
    }
    qsort(seen, n, sizeof(*seen), newest_first);
    n = n < c->limit ? n : c->limit;
    struct session_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    for (size_t i = 0; i < n; i++)
        rows[i] = *mem_session_copy(seen[i], c->mem);
    pthread_mutex_unlock(&s->lock);
    free(seen);
    c->rows = rows;
    c->n = n;
    return true;
}

static int oldest_first(const void *a, const void *b)
{
    return str_cmp(((const struct session_row *)a)->id, ((const struct session_row *)b)->id);
}

static bool sessions_named(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct session_row *rows;
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    rows = arena_zalloc(c->mem, (s->n_sessions + 1) * sizeof(*rows));
    for (size_t i = 0; c->name.n && i < s->n_sessions; i++) {
        const struct session_row *row = &s->sessions[i];
        if ((str_starts(row->handle, c->name) || str_starts(row->id, c->name)) &&
            mem_session_reached(s, c->who, row->id))
            rows[n++] = *mem_session_copy(row, c->mem);
    }
    pthread_mutex_unlock(&s->lock);
    qsort(rows, n, sizeof(*rows), oldest_first);
    c->rows = rows;
    c->n = n < c->limit ? n : c->limit;
    return true;
}

static void totals_add(struct session_totals *t, const struct session_row *row, int64_t now_ms)
{
    struct session_row seen = *row;
    session_row_apply_expiry(&seen, now_ms);
    int64_t end_ms = seen.terminated_ms ? seen.terminated_ms : seen.last_activity_ms;
    double minutes = (double)(end_ms - seen.created_ms) / 60000.0;
    t->active_sessions += session_row_is_live(row, now_ms);
    t->total_sessions++;
    t->total_tool_executions += row->tool_count;
    if (__builtin_add_overflow(t->total_tokens_used, row->tokens_used, &t->total_tokens_used))
        t->total_tokens_used = INT64_MAX;
    t->average_session_time_minutes +=
        (minutes - t->average_session_time_minutes) / (double)t->total_sessions;
}

static bool session_totals(struct store *store, struct store_call *c, struct error *err)
{
    struct session_totals *ret = c->ret;
    struct memory_store *s = mem_of(store);
    struct session_totals totals = {0};
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_sessions; i++) {
        const struct session_row *row = &s->sessions[i];
        if (mem_session_reached(s, c->who, row->id) &&
            (row->created_ms >= c->since_ms || row->last_activity_ms >= c->since_ms))
            totals_add(&totals, row, c->now_ms);
    }
    pthread_mutex_unlock(&s->lock);
    *ret = totals;
    return true;
}

static bool is_before(const struct session_row *a, const struct session_row *b)
{
    return !b || a->last_activity_ms < b->last_activity_ms;
}

/* The active session with the oldest last use, among sessions not used after until_ms; or NULL. */
static struct session_row *first_unused(struct memory_store *s, int64_t until_ms)
{
    struct session_row *first = NULL;
    for (size_t i = 0; i < s->n_sessions; i++) {
        struct session_row *row = &s->sessions[i];
        if (row->status == SESSION_ACTIVE && row->last_activity_ms <= until_ms &&
            is_before(row, first))
            first = row;
    }
    return first;
}

/* The active or idle session with the earliest last use after from_ms, or NULL. */
static struct session_row *first_ahead(struct memory_store *s, int64_t from_ms)
{
    struct session_row *first = NULL;
    for (size_t i = 0; i < s->n_sessions; i++) {
        struct session_row *row = &s->sessions[i];
        bool open = row->status == SESSION_ACTIVE || row->status == SESSION_IDLE;
        if (open && row->last_activity_ms > from_ms && is_before(row, first))
            first = row;
    }
    return first;
}

/* The active or idle session that passed its end first, or NULL. */
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

static void drop_context(struct memory_store *s, struct str id)
{
    for (size_t i = 0; i < s->n_sessions; i++)
        if (str_eq(s->sessions[i].context_id, id))
            return;
    for (size_t i = 0; i < s->n_contexts; i++)
        if (str_eq(s->contexts[i].id, id)) {
            s->contexts[i] = s->contexts[--s->n_contexts];
            return;
        }
}

/* Deletes the sessions that ended before over_ms and are not held. */
static size_t delete_over(struct memory_store *s, int64_t over_ms, unsigned batch)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_sessions && n < batch;) {
        struct session_row *row = &s->sessions[i];
        struct str context_id = row->context_id;
        if ((row->status != SESSION_EXPIRED && row->status != SESSION_TERMINATED) ||
            row->terminated_ms > over_ms || mem_families_keep(s, row)) {
            i++;
            continue;
        }
        *row = s->sessions[--s->n_sessions];
        if (context_id.p)
            drop_context(s, context_id);
        n++;
    }
    return n;
}

struct reaped mem_sessions_reap(struct memory_store *s, const struct reap_request *what)
{
    int64_t now_ms = what->now_ms;
    struct reaped done = {0};
    struct session_row *row;
    for (; done.clamped < what->batch && (row = first_ahead(s, now_ms + SESSION_FUTURE_MS));
         done.clamped++) {
        if (row->expires_ms)
            row->expires_ms -= row->last_activity_ms - now_ms;
        row->last_activity_ms = now_ms;
        if (row->created_ms > now_ms)
            row->created_ms = now_ms;
        row->version++;
    }
    for (; done.expired < what->batch && (row = first_past(s, now_ms)); done.expired++) {
        session_row_apply_expiry(row, now_ms);
        row->version++;
        if (what->ret_lived_ms)
            what->ret_lived_ms[done.expired] = row->terminated_ms - row->created_ms;
    }
    for (; what->idle_ms > 0 && done.idled < what->batch &&
           (row = first_unused(s, now_ms - what->idle_ms));
         done.idled++)
        /* Readers see no change, so the version stays. */
        row->status = SESSION_IDLE;
    if (what->over_ms > 0)
        done.deleted = delete_over(s, what->over_ms, what->batch);
    return done;
}

const struct mem_op mem_session_ops[] = {
    {OP_SESSION_CREATE, session_create}, {OP_SESSION_PROMOTE, session_promote},
    {OP_SESSION_END, session_end},       {OP_SESSION_USE, session_touch},
    {OP_SESSION_PATCH, session_patch},   {OP_SESSION_REFRESH, session_refresh},
    {OP_CONTEXT_PUT, context_put},       {0},
};

const struct verb_handler mem_session_verbs[] = {
    {VERB_SESSION_BY_HANDLE, session_by_handle},
    {VERB_SESSION_BY_ID, session_by_id},
    {VERB_SESSION_BY_KEY, session_by_key},
    {VERB_SESSIONS_PAGE, sessions_page},
    {VERB_SESSIONS_NAMED, sessions_named},
    {VERB_SESSION_TOTALS, session_totals},
    {0},
};
