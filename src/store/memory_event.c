/* SPDX-License-Identifier: Apache-2.0 */
/* Events, their fold and their chains in the memory store.  Events and executions are sorted by id.
 * Each event records whether it was folded. */
#include "store/memory_impl.h"

#include "base/clock.h"

#include <stdlib.h>

static const size_t event_texts[] = {
    offsetof(struct event_row, tenant),     offsetof(struct event_row, owner),
    offsetof(struct event_row, session_id), offsetof(struct event_row, transport),
    offsetof(struct event_row, carrier),    offsetof(struct event_row, server),
    offsetof(struct event_row, method),     offsetof(struct event_row, tool),
    offsetof(struct event_row, era),        offsetof(struct event_row, outcome),
    offsetof(struct event_row, error),      offsetof(struct event_row, tool_id),
    offsetof(struct event_row, client),     offsetof(struct event_row, body),
};

/* Index of the first event with an id of at least `id`. */
static size_t event_place(const struct memory_store *s, int64_t id)
{
    size_t low = 0;
    size_t high = s->n_events;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->events[mid].row.id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static const struct event_row *event_by_id(const struct memory_store *s, int64_t id)
{
    size_t i = event_place(s, id);
    return i < s->n_events && s->events[i].row.id == id ? &s->events[i].row : NULL;
}

static void event_insert(struct memory_store *s, const struct event_row *e)
{
    size_t i = event_place(s, e->id);
    s->events = mem_grow(s->events, s->n_events, &s->cap_events, sizeof(struct mem_event));
    memmove(&s->events[i + 1], &s->events[i], (s->n_events - i) * sizeof(struct mem_event));
    s->n_events++;
    s->events[i] = (struct mem_event){.row = *e};
    s->events[i].row.record = STR_NONE; /* the caller owns those bytes */
    mem_copy_texts(s->mem, &s->events[i].row, event_texts, countof(event_texts));
    if (i < s->first_unfolded)
        s->first_unfolded = i;
}

static bool id_is_free_or_same(const struct event_row *taken, const struct event_row *e,
                               struct error *err)
{
    return !taken || memcmp(taken->mac, e->mac, 32) == 0 || event_id_is_taken(e, err);
}

bool mem_events_check(const struct memory_store *s, const struct store_op *ops, size_t n,
                      struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind != OP_EVENT_APPEND)
            continue;
        if (!id_is_free_or_same(event_by_id(s, ops[i].event->id), ops[i].event, err))
            return false;
        for (size_t j = 0; j < i; j++)
            if (ops[j].kind == OP_EVENT_APPEND && ops[j].event->id == ops[i].event->id &&
                !id_is_free_or_same(ops[j].event, ops[i].event, err))
                return false;
    }
    return true;
}

void mem_events_append(struct memory_store *s, const struct store_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ops[i].kind == OP_EVENT_APPEND && !event_by_id(s, ops[i].event->id))
            event_insert(s, ops[i].event);
}

static void event_copy(struct event_row *to, const struct event_row *from, bool with_body,
                       struct arena *mem)
{
    *to = *from;
    if (!with_body)
        to->body = STR_NONE;
    mem_copy_texts(mem, to, event_texts, countof(event_texts));
}

static size_t open_page(const struct memory_store *s, const struct event_filter *f, unsigned limit,
                        struct arena *mem, struct event_row *rows)
{
    struct open_set open = {0};
    size_t n = 0;
    for (size_t i = 0; i < s->n_events; i++)
        if (!s->events[i].removed)
            open_set_note(&open, &s->events[i].row);
    open_set_filter(&open, f);
    for (size_t i = 0; i < open.n_opened && n < limit; i++) {
        const struct event_row *e = event_by_id(s, open.opened[i]);
        if (event_filter_matches(f, e))
            event_copy(&rows[n++], e, f->with_bodies, mem);
    }
    open_set_release(&open);
    return n;
}

static bool events_page(struct store *store, struct store_call *c, struct error *err)
{
    const struct event_filter *f = c->filter;
    struct memory_store *s = mem_of(store);
    struct event_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    if (f->open)
        n = open_page(s, f, c->limit, c->mem, rows);
    for (size_t i = 0; !f->open && i < s->n_events && n < c->limit; i++) {
        const struct mem_event *e = &s->events[f->newest_first ? s->n_events - 1 - i : i];
        if (!e->removed && event_filter_matches(f, &e->row))
            event_copy(&rows[n++], &e->row, f->with_bodies, c->mem);
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool chain_heads(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct chain_head *heads = NULL;
    size_t n = 0;
    size_t cap = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_events; i++) {
        const struct event_row *e = &s->events[i].row;
        int64_t writer = e->id >> EVENT_WRITER_SHIFT;
        size_t k = 0;
        while (k < n && (heads[k].writer != writer || !str_eq(heads[k].tenant, e->tenant)))
            k++;
        if (k == n) {
            heads = mem_grow(heads, n++, &cap, sizeof(*heads));
            heads[k].tenant = arena_dup(c->mem, e->tenant);
        }
        heads[k].writer = writer;
        heads[k].seq = e->seq;
        heads[k].last_id = e->id;
        memcpy(heads[k].mac, e->mac, 32);
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = arena_zalloc(c->mem, n * sizeof(*heads) + 1);
    if (n) {
        qsort(heads, n, sizeof(*heads), chain_head_order);
        memcpy(c->rows, heads, n * sizeof(*heads));
    }
    c->n = n;
    free(heads);
    return true;
}

/* Finds the execution `id`, or with `make` adds it.  *ret_new: it was added. */
static struct mem_exec *exec_of(struct memory_store *s, int64_t id, bool make, bool *ret_new)
{
    size_t i = s->n_execs;
    *ret_new = false;
    while (i > 0 && s->execs[i - 1].id > id)
        i--;
    if (i > 0 && s->execs[i - 1].id == id)
        return &s->execs[i - 1];
    if (!make)
        return NULL;
    s->execs = mem_grow(s->execs, s->n_execs, &s->cap_execs, sizeof(struct mem_exec));
    memmove(&s->execs[i + 1], &s->execs[i], (s->n_execs - i) * sizeof(struct mem_exec));
    s->n_execs++;
    s->execs[i] = (struct mem_exec){.id = id};
    *ret_new = true;
    return &s->execs[i];
}

static void use_session(struct memory_store *s, const struct event_row *e, bool executed)
{
    for (size_t i = 0; e->session_id.p && i < s->n_sessions; i++) {
        struct session_row *row = &s->sessions[i];
        if (!str_eq(row->id, e->session_id) || !str_eq(row->tenant, e->tenant))
            continue;
        row->tool_count += executed;
        if (e->tokens > 0)
            row->tokens_used =
                row->tokens_used < INT64_MAX - e->tokens ? row->tokens_used + e->tokens : INT64_MAX;
        mem_session_use(row, clock_life_of_wall(e->at_ms));
        return;
    }
}

static void count_event(struct memory_store *s, const struct event_row *e, bool is_undone)
{
    struct counted_names names = {0};
    struct arena *mem = arena_new(1 << 16);
    struct counted_call call = counted_call_of(e, counted_labels_of(&names, mem, e));
    call.is_undone = is_undone;
    mem_families_count(s, &call);
    map_release(&names.map);
    arena_free(mem);
}

static void close_exec(struct memory_store *s, struct mem_exec *x, const struct event_row *e)
{
    if (x && x->closed && !x->indeterminate)
        return;
    count_event(s, e, false);
    if (x && x->closed)
        count_event(s, event_by_id(s, x->outcome), true);
    if (!x)
        return;
    x->closed = true;
    x->outcome = e->id;
    x->indeterminate = str_eq(e->outcome, STR("indeterminate"));
}

static void fold_event(struct memory_store *s, const struct event_row *e)
{
    bool is_new = false;
    int64_t id = e->exec ? e->exec : e->id;
    if (e->kind == EVENT_INTENT)
        exec_of(s, id, true, &is_new);
    else if (e->kind == EVENT_RECORD)
        close_exec(s, exec_of(s, id, true, &is_new), e);
    else if (e->kind == EVENT_OUTCOME) /* a refused call without an intent never ran */
        close_exec(s, exec_of(s, id, !str_eq(e->outcome, STR("refused")), &is_new), e);
    else if (e->kind == EVENT_NOTE)
        count_event(s, e, false);
    else
        return;
    use_session(s, e, is_new);
}

static bool fold_some(struct memory_store *s, size_t max)
{
    while (s->first_unfolded < s->n_events) {
        struct mem_event *e = &s->events[s->first_unfolded];
        if (!e->folded) {
            if (max-- == 0)
                return true;
            e->folded = true;
            fold_event(s, &e->row);
        }
        s->first_unfolded++;
    }
    return false;
}

void mem_fold_all(struct memory_store *s)
{
    fold_some(s, SIZE_MAX);
}

static bool fold(struct store *store, struct store_call *c, struct error *err)
{
    bool *ret_left = c->ret;
    struct memory_store *s = mem_of(store);
    (void)err;
    pthread_mutex_lock(&s->lock);
    *ret_left = fold_some(s, c->limit ? c->limit : 1);
    pthread_mutex_unlock(&s->lock);
    return true;
}

static bool writer_has_ended(const struct memory_store *s, int64_t number, int64_t now_ms)
{
    if (number < 1 || (size_t)number > s->n_writers)
        return true;
    const struct writer_row *w = &s->writers[number - 1];
    return w->ended_ms || w->lease_until_ms <= now_ms;
}

static bool open_intents(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct event_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    mem_fold_all(s);
    for (size_t i = 0; i < s->n_execs && n < c->limit; i++) {
        const struct mem_exec *x = &s->execs[i];
        if (!x->closed && x->id > c->after_id &&
            writer_has_ended(s, x->id >> EVENT_WRITER_SHIFT, c->now_ms))
            event_copy(&rows[n++], event_by_id(s, x->id), false, c->mem);
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

/* True when the event is an entry of its own in the session's list of executions. */
static bool begins_execution(const struct mem_event *e)
{
    return e->folded && !e->removed && (e->row.kind == EVENT_INTENT || e->row.kind == EVENT_RECORD);
}

static bool executions_page(struct store *store, struct store_call *c, struct error *err)
{
    struct memory_store *s = mem_of(store);
    struct execution_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0;
    (void)err;
    pthread_mutex_lock(&s->lock);
    bool reached = mem_session_reached(s, c->who, c->session_id) != NULL;
    for (size_t i = s->n_events; reached && i-- > 0 && n < c->limit;) {
        const struct event_row *e = &s->events[i].row;
        bool is_new = false;
        if (!begins_execution(&s->events[i]) || (c->after_id && e->id >= c->after_id) ||
            !e->session_id.p || !str_eq(e->session_id, c->session_id) ||
            !str_eq(e->tenant, c->who->tenant))
            continue;
        const struct mem_exec *x = exec_of(s, e->id, false, &is_new);
        const struct event_row *outcome = x && x->outcome ? event_by_id(s, x->outcome) : NULL;
        store_execution_join(e, outcome, c->flag, c->mem, &rows[n++]);
    }
    pthread_mutex_unlock(&s->lock);
    c->rows = rows;
    c->n = n;
    return true;
}

static bool tool_known(struct store *store, struct store_call *c, struct error *err)
{
    bool *ret = c->ret;
    struct memory_store *s = mem_of(store);
    bool known = false;
    (void)err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_events && !known; i++) {
        const struct event_row *e = &s->events[i].row;
        char uuid[TOOL_UUID_TEXT];
        if (!s->events[i].folded || e->kind != EVENT_INTENT || !e->server.p || !e->tool.p ||
            !str_eq(e->tenant, c->who->tenant))
            continue;
        tool_uuid(e->tenant, e->server, e->tool, uuid);
        known = str_eq(c->id, str_of(uuid));
    }
    pthread_mutex_unlock(&s->lock);
    *ret = known;
    return true;
}

const struct verb_handler mem_event_verbs[] = {
    {VERB_EVENTS_PAGE, events_page},
    {VERB_CHAIN_HEADS, chain_heads},
    {VERB_FOLD, fold},
    {VERB_OPEN_INTENTS, open_intents},
    {VERB_EXECUTIONS_PAGE, executions_page},
    {VERB_TOOL_KNOWN, tool_known},
    {0},
};
