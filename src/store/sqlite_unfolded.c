/* SPDX-License-Identifier: Apache-2.0 */
/* Unfolded events.  For each event that was appended and not folded yet, memory holds the fields
 * that the fold needs, so that the fold reads no events back.
 *
 * Invariants: while unfolded_events_complete, items[0..committed) has every committed event that is
 * not folded, and the items after them belong to the open transaction.  The list becomes incomplete
 * when the database is opened (also after a failed commit), and when there are more events than
 * memory holds.  Then the events are read from the database, from the watermarks on, slice by
 * slice, until none is left, and the list starts again.  Writers are read in ascending order,
 * because the outcome of a lost intent comes from a later writer. */
#include "store/sqlite_impl.h"

#include <stdlib.h>

/* The lane folds long before this bound; it limits the memory of a store that is never folded. */
#define UNFOLDED_MAX 65536
/* Capacity that is kept between folds. */
#define UNFOLDED_KEPT 1024
#define UNFOLDED_ARENA (64 << 20)

static void unfolded_events_release(struct unfolded_events *f)
{
    free(f->items);
    map_release(&f->sessions);
    map_release(&f->chains);
    map_release(&f->tools);
    map_release(&f->names.map);
    arena_free(f->mem);
    *f = (struct unfolded_events){0};
}

static struct sq_unfolded *unfolded_entry(struct sqlite_store *s, int64_t writer)
{
    size_t i = s->n_unfolded;
    while (i > 0 && s->unfolded[i - 1].writer > writer)
        i--;
    if (i > 0 && s->unfolded[i - 1].writer == writer)
        return &s->unfolded[i - 1];
    if (s->n_unfolded == s->cap_unfolded) {
        s->cap_unfolded = s->cap_unfolded ? 2 * s->cap_unfolded : 8;
        s->unfolded = xrealloc(s->unfolded, s->cap_unfolded * sizeof(struct sq_unfolded));
    }
    memmove(&s->unfolded[i + 1], &s->unfolded[i], (s->n_unfolded - i) * sizeof(struct sq_unfolded));
    s->n_unfolded++;
    s->unfolded[i] = (struct sq_unfolded){.writer = writer, .watermark = -1};
    return &s->unfolded[i];
}

/* Finds the value of "a\0b" in the map.  Without a value, copies the key to f->mem. */
static void *find_or_key(struct unfolded_events *f, struct map *map, struct str a, struct str b,
                         struct str *ret_key)
{
    char small[256];
    size_t n = a.n + 1 + b.n;
    char *key = n <= sizeof(small) ? small : arena_alloc(f->mem, n);
    memcpy(key, a.p, a.n);
    key[a.n] = '\0';
    memcpy(key + a.n + 1, b.p, b.n);
    void *value = map_get(map, str_n(key, n));
    if (!value)
        *ret_key = key == small ? arena_dup(f->mem, str_n(key, n)) : str_n(key, n);
    return value;
}

static struct unfolded_session *session_of(struct unfolded_events *f, struct str tenant,
                                           struct str id)
{
    struct str key;
    struct unfolded_session *session = find_or_key(f, &f->sessions, tenant, id, &key);
    if (session)
        return session;
    session = arena_new_of(f->mem, struct unfolded_session);
    session->tenant = str_n(key.p, tenant.n);
    session->id = str_n(key.p + tenant.n + 1, id.n);
    map_put(&f->sessions, key, session);
    return session;
}

static struct unfolded_chain *chain_of(struct unfolded_events *f, int64_t writer, struct str tenant)
{
    struct str key;
    struct unfolded_chain *chain = f->last_chain;
    if (chain && chain->writer == writer && str_eq(chain->tenant, tenant))
        return chain;
    chain = find_or_key(f, &f->chains, tenant, str_n((const char *)&writer, sizeof(writer)), &key);
    if (!chain) {
        chain = arena_new_of(f->mem, struct unfolded_chain);
        chain->writer = writer;
        chain->tenant = str_n(key.p, tenant.n);
        map_put(&f->chains, key, chain);
    }
    return f->last_chain = chain;
}

static struct unfolded_tool *tool_of(struct unfolded_events *f, const struct event_row *e)
{
    struct unfolded_tool *tool = f->last_tool;
    char small[512];
    if (tool && str_eq(tool->tool, e->tool) && str_eq(tool->server, e->server) &&
        str_eq(tool->tenant, e->tenant))
        return tool;
    size_t n = e->tenant.n + 1 + e->server.n + 1 + e->tool.n;
    char *key = n <= sizeof(small) ? small : arena_alloc(f->mem, n);
    char *server = mempcpy(key, e->tenant.p, e->tenant.n) + 1;
    char *name = mempcpy(server, e->server.p, e->server.n) + 1;
    server[-1] = name[-1] = '\0';
    memcpy(name, e->tool.p, e->tool.n);
    tool = map_get(&f->tools, str_n(key, n));
    if (!tool) {
        struct str copy = arena_dup(f->mem, str_n(key, n));
        tool = arena_new_of(f->mem, struct unfolded_tool);
        tool->tenant = str_n(copy.p, e->tenant.n);
        tool->server = str_n(copy.p + (server - key), e->server.n);
        tool->tool = str_n(copy.p + (name - key), e->tool.n);
        map_put(&f->tools, copy, tool);
    }
    return f->last_tool = tool;
}

static void add_event(struct unfolded_events *f, const struct event_row *e)
{
    bool used = e->kind == EVENT_INTENT || e->kind == EVENT_OUTCOME || e->kind == EVENT_NOTE ||
                e->kind == EVENT_RECORD;
    bool ran = e->kind == EVENT_INTENT && e->server.p && e->tool.p;
    if (!f->mem)
        f->mem = arena_new(UNFOLDED_ARENA);
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 256;
        f->items = xrealloc(f->items, f->cap * sizeof(struct unfolded_event));
    }
    struct unfolded_event *event = &f->items[f->n++];
    *event = (struct unfolded_event){
        .id = e->id,
        .exec = e->exec ? e->exec : e->id,
        .at_ms = e->at_ms,
        .seq = e->seq,
        .tokens = e->tokens,
        .size = event_size_of(e),
        .kind = (uint8_t)e->kind,
        .session = used && e->session_id.p ? session_of(f, e->tenant, e->session_id) : NULL,
        .tool = ran ? tool_of(f, e) : NULL,
        .chain = chain_of(f, e->id >> EVENT_WRITER_SHIFT, e->tenant),
        .refused = str_eq(e->outcome, STR("refused")),
        .indeterminate = str_eq(e->outcome, STR("indeterminate")),
    };
    memcpy(event->mac, e->mac, sizeof(event->mac));
    if (counted_is_end(e)) {
        event->call = counted_call_of(e, counted_labels_of(&f->names, f->mem, e));
        event->call.session_id = event->session ? event->session->id : STR_NONE;
    }
}

void sq_unfolded_lose(struct sqlite_store *s)
{
    unfolded_events_release(&s->unfolded_events);
    s->unfolded_events_complete = false;
    s->unfolded_known = false;
    s->n_unfolded = 0;
}

void sq_unfolded_append(struct sqlite_store *s, const struct event_row *e)
{
    if (s->unfolded_events_complete && s->unfolded_events.n >= UNFOLDED_MAX)
        sq_unfolded_lose(s);
    if (s->unfolded_events_complete)
        add_event(&s->unfolded_events, e);
    else if (s->unfolded_known)
        unfolded_entry(s, e->id >> EVENT_WRITER_SHIFT)->pending = true;
}

void sq_unfolded_commit(struct sqlite_store *s)
{
    s->unfolded_events.committed = s->unfolded_events.n;
}

void sq_unfolded_rollback(struct sqlite_store *s)
{
    s->unfolded_events.n = s->unfolded_events.committed;
}

static bool any_pending(const struct sqlite_store *s)
{
    for (size_t i = 0; i < s->n_unfolded; i++)
        if (s->unfolded[i].pending)
            return true;
    return false;
}

bool sq_unfolded_pending(const struct sqlite_store *s)
{
    return s->unfolded_events_complete ? s->unfolded_events.committed > 0
                                       : !s->unfolded_known || any_pending(s);
}

static bool has_more(struct sqlite_store *s, int64_t writer, int64_t watermark, bool *ret,
                     struct error *err)
{
    int64_t next = 0;
    if (!sq_event_next(s, watermark + 1, &next, err))
        return false;
    *ret = next != 0 && next >> EVENT_WRITER_SHIFT == writer;
    return true;
}

/* After an open: finds every writer with an event past its watermark. */
static bool discover(struct sqlite_store *s, struct error *err)
{
    s->n_unfolded = 0;
    for (int64_t id = 0;;) {
        int64_t watermark = 0;
        bool more = false;
        if (!sq_event_next(s, id, &id, err))
            return false;
        if (id == 0)
            break;
        int64_t writer = id >> EVENT_WRITER_SHIFT;
        id = (writer + 1) << EVENT_WRITER_SHIFT;
        if (!sq_watermark(s, writer, &watermark, err) ||
            !has_more(s, writer, watermark, &more, err))
            return false;
        if (more)
            *unfolded_entry(s, writer) = (struct sq_unfolded){writer, watermark, true};
    }
    s->unfolded_known = true;
    return true;
}

/* True when these events fill a slice. */
static bool is_full(const struct unfolded_events *f, size_t max)
{
    return f->n >= max || f->sessions.n >= SQ_SLICE_SESSIONS;
}

static bool load_writer(struct sqlite_store *s, struct unfolded_events *f, size_t max,
                        struct sq_unfolded *u, struct error *err)
{
    struct sq_events c;
    struct event_row e;
    bool found = true;
    if ((u->watermark < 0 && !sq_watermark(s, u->writer, &u->watermark, err)) ||
        !sq_events_open(s, &c, SQ_EVENTS_UP, u->watermark + 1, sq_last_id_of(u->writer), true, err))
        return false;
    while (!is_full(f, max)) {
        if (!sq_events_next(&c, &e, &found, err))
            return false;
        if (!found)
            break;
        add_event(f, &e);
        u->watermark = e.id;
    }
    sq_events_close(&c);
    if (is_full(f, max))
        return has_more(s, u->writer, u->watermark, &u->pending, err);
    u->pending = false;
    return true;
}

/* Reads the events from the database, from where the last fold ended. */
static bool load(struct sqlite_store *s, size_t max, struct sq_slice *sl, struct error *err)
{
    if (!s->unfolded_known && !discover(s, err))
        return false;
    sl->after = xcalloc(s->n_unfolded + 1, sizeof(*sl->after));
    if (s->n_unfolded)
        memcpy(sl->after, s->unfolded, s->n_unfolded * sizeof(*sl->after));
    for (size_t i = 0; i < s->n_unfolded && !is_full(&sl->loaded, max); i++)
        if (sl->after[i].pending && !load_writer(s, &sl->loaded, max, &sl->after[i], err))
            return false;
    sl->items = sl->loaded.items;
    sl->n = sl->loaded.n;
    return true;
}

bool sq_unfolded_take(struct sqlite_store *s, size_t max, struct sq_slice *ret, struct error *err)
{
    if (!s->unfolded_events_complete)
        return load(s, max, ret, err);
    ret->from_memory = true;
    ret->items = s->unfolded_events.items;
    ret->n = s->unfolded_events.committed < max ? s->unfolded_events.committed : max;
    return true;
}

void sq_slice_release(struct sq_slice *sl)
{
    unfolded_events_release(&sl->loaded);
    free(sl->after);
}

/* When no events are left, a large array and large maps are freed. */
static void drop_events(struct unfolded_events *f, size_t n)
{
    f->n -= n;
    f->committed -= n;
    if (f->n == 0 && (f->cap > UNFOLDED_KEPT || f->sessions.n > UNFOLDED_KEPT ||
                      f->tools.n > UNFOLDED_KEPT || f->names.map.n > UNFOLDED_KEPT)) {
        unfolded_events_release(f);
        return;
    }
    memmove(f->items, f->items + n, f->n * sizeof(struct unfolded_event));
}

void sq_unfolded_done(struct sqlite_store *s, const struct sq_slice *sl)
{
    if (sl->from_memory) {
        drop_events(&s->unfolded_events, sl->n);
        return;
    }
    if (s->n_unfolded)
        memcpy(s->unfolded, sl->after, s->n_unfolded * sizeof(*sl->after));
    s->unfolded_events_complete = !any_pending(s);
}
