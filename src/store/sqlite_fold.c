/* SPDX-License-Identifier: Apache-2.0 */
/* The fold: events in, projections out.
 *
 * One slice is one transaction: it reads up to `max` events past the watermarks of their writers,
 * writes executions in order of their id, sessions in order of theirs, and moves the watermarks.
 * The watermarks move with what they stand for, so an event is folded exactly once whatever dies
 * when. Writers are taken in ascending order, because the outcome of a lost intent comes from a
 * later one.
 *
 * Which writers to look at is remembered in memory: all appends pass through this connection, so an
 * idle store folds nothing at no cost. */
#include "store/sqlite_impl.h"

#include <stdlib.h>

#include "base/map.h"

#define FOLD_ARENA (64 << 20)

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

void sq_fold_mark(struct sqlite_store *s, int64_t event_id)
{
    if (s->unfolded_known)
        unfolded_entry(s, event_id >> EVENT_WRITER_SHIFT)->pending = true;
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

/* After an open: every writer with an event past its watermark. */
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

static bool any_pending(const struct sqlite_store *s)
{
    for (size_t i = 0; i < s->n_unfolded; i++)
        if (s->unfolded[i].pending)
            return true;
    return false;
}

/* What a slice means to one session. */
struct use {
    int64_t rowid; /* 0: there is no such session */
    int64_t at_ms, executions;
    int64_t last_execution;
};

struct slice {
    struct arena *mem;
    size_t max;
    struct event_row *events; /* only what the projections need */
    size_t n;
    struct event_row **execs; /* intents and outcomes by (exec, id) */
    size_t n_execs;
    struct map by_session; /* "tenant\0session" → struct use */
    struct use **uses;     /* at most one for each event */
    size_t n_uses;
    struct sq_unfolded *after; /* entries of s->unfolded as they will be once this is committed */
};

static bool load_writer(struct sqlite_store *s, struct slice *sl, struct sq_unfolded *u,
                        struct error *err)
{
    size_t first = sl->n;
    sqlite3_stmt *st = sq_prepare(s, SQ_EVENTS_TAIL, err);
    if (!st || (u->watermark < 0 && !sq_watermark(s, u->writer, &u->watermark, err)))
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, u->watermark);
    sq_int(&b, u->writer << EVENT_WRITER_SHIFT | EVENT_COUNT_MASK);
    sq_int(&b, (int64_t)(sl->max - first));
    for (bool row = true; sl->n < sl->max; sl->n++) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st, .mem = sl->mem};
        sq_read_event(&r, &sl->events[sl->n]);
    }
    sq_reset(st);
    if (sl->n > first)
        u->watermark = sl->events[sl->n - 1].id;
    if (sl->n == sl->max)
        return has_more(s, u->writer, u->watermark, &u->pending, err);
    u->pending = false;
    return true;
}

static bool load(struct sqlite_store *s, struct slice *sl, struct error *err)
{
    sl->after = arena_alloc(sl->mem, s->n_unfolded * sizeof(*sl->after) + 1);
    if (s->n_unfolded)
        memcpy(sl->after, s->unfolded, s->n_unfolded * sizeof(*sl->after));
    for (size_t i = 0; i < s->n_unfolded && sl->n < sl->max; i++)
        if (sl->after[i].pending && !load_writer(s, sl, &sl->after[i], err))
            return false;
    return true;
}

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_exec(const void *a, const void *b)
{
    const struct event_row *x = *(struct event_row *const *)a;
    const struct event_row *y = *(struct event_row *const *)b;
    int order = compare(x->exec, y->exec);
    return order ? order : compare(x->id, y->id);
}

static int by_rowid(const void *a, const void *b)
{
    return compare((*(struct use *const *)a)->rowid, (*(struct use *const *)b)->rowid);
}

static int by_chain(const void *a, const void *b)
{
    const struct event_row *x = a;
    const struct event_row *y = b;
    int order = compare(x->id >> EVENT_WRITER_SHIFT, y->id >> EVENT_WRITER_SHIFT);
    if (!order)
        order = str_cmp(x->tenant, y->tenant);
    return order ? order : compare(x->id, y->id);
}

static bool is_sorted(const struct slice *sl)
{
    for (size_t i = 1; i < sl->n; i++)
        if (by_chain(&sl->events[i - 1], &sl->events[i]) > 0)
            return false;
    return true;
}

/* Sorts out what each event means to the projections. */
static void sift(struct slice *sl)
{
    sl->execs = arena_alloc(sl->mem, sl->n * sizeof(struct event_row *) + 1);
    sl->uses = arena_alloc(sl->mem, sl->n * sizeof(struct use *) + 1);
    if (!is_sorted(sl)) /* one writer, one tenant: the common case comes in order */
        qsort(sl->events, sl->n, sizeof(struct event_row), by_chain);
    for (size_t i = 0; i < sl->n; i++) {
        struct event_row *e = &sl->events[i];
        if (e->kind != EVENT_INTENT && e->kind != EVENT_OUTCOME)
            continue;
        if (e->exec == 0)
            e->exec = e->id;
        sl->execs[sl->n_execs++] = e;
    }
    qsort(sl->execs, sl->n_execs, sizeof(struct event_row *), by_exec);
}

static struct str use_key(struct slice *sl, const struct event_row *e)
{
    char *key = arena_alloc(sl->mem, e->tenant.n + 1 + e->session_id.n);
    memcpy(key, e->tenant.p, e->tenant.n);
    key[e->tenant.n] = '\0';
    memcpy(key + e->tenant.n + 1, e->session_id.p, e->session_id.n);
    return str_n(key, e->tenant.n + 1 + e->session_id.n);
}

/* What the slice knows of the event's session so far. */
static bool use_of(struct sqlite_store *s, struct slice *sl, const struct event_row *e,
                   struct use **ret, struct error *err)
{
    struct str key = use_key(sl, e);
    struct use *use = map_get(&sl->by_session, key);
    bool row = false;
    *ret = use;
    if (use)
        return true;
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_CHAIN, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, e->session_id);
    sq_text(&b, e->tenant);
    if (!sq_step(s, st, &row, err))
        return false;
    use = arena_new_of(sl->mem, struct use);
    if (row) {
        struct sq_row r = {.st = st};
        use->rowid = sq_get_int(&r);
        use->last_execution = sq_get_int(&r);
    }
    sq_reset(st);
    map_put(&sl->by_session, key, use);
    sl->uses[sl->n_uses++] = use;
    *ret = use;
    return true;
}

static bool exec_insert(struct sqlite_store *s, const struct event_row *e,
                        const struct event_row *outcome, struct use *use, bool *ret_new,
                        struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_EXEC_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, e->exec);
    sq_text(&b, e->session_id);
    sq_text(&b, e->tool);
    sq_int(&b, e->at_ms);
    sq_text(&b, e->tenant);
    sq_text(&b, e->owner);
    sq_text(&b, e->server);
    sq_text(&b, e->method);
    sq_int(&b, e->parent);
    sq_time(&b, use ? use->last_execution : 0);
    sq_text(&b, outcome ? outcome->error : STR_NONE);
    sq_time(&b, outcome ? outcome->duration_us : 0);
    sq_text(&b, outcome ? outcome->outcome : STR_NONE);
    sq_time(&b, outcome ? outcome->id : 0);
    sq_int(&b, outcome != NULL);
    if (!sq_run(s, st, err))
        return false;
    *ret_new = sqlite3_changes(s->db) > 0;
    if (*ret_new && use) {
        use->executions++;
        use->last_execution = e->exec;
    }
    return true;
}

static bool exec_close(struct sqlite_store *s, const struct event_row *outcome, bool *ret_found,
                       struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_EXEC_CLOSE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, outcome->exec);
    sq_text(&b, outcome->error);
    sq_time(&b, outcome->duration_us);
    sq_text(&b, outcome->outcome);
    sq_int(&b, outcome->id);
    if (!sq_run(s, st, err))
        return false;
    *ret_found = sqlite3_changes(s->db) > 0;
    return true;
}

/* One execution: its intent, its outcome, or both.  A refusal without an intent never ran. */
static bool fold_exec(struct sqlite_store *s, struct slice *sl, const struct event_row *intent,
                      const struct event_row *outcome, struct error *err)
{
    const struct event_row *e = intent ? intent : outcome;
    struct use *use = NULL;
    bool is_new = false;
    bool found = false;
    if (e->session_id.p && !use_of(s, sl, e, &use, err))
        return false;
    if (intent && !exec_insert(s, intent, outcome, use, &is_new, err))
        return false;
    if (!outcome || is_new)
        return true;
    if (!exec_close(s, outcome, &found, err))
        return false;
    if (found || str_eq(outcome->outcome, STR("refused")))
        return true;
    return exec_insert(s, outcome, outcome, use, &is_new, err);
}

/* An intent and the outcome right behind it are one row written once; further outcomes, should
 * there be any, find it there. */
static bool fold_execs(struct sqlite_store *s, struct slice *sl, struct error *err)
{
    for (size_t i = 0; i < sl->n_execs; i++) {
        const struct event_row *e = sl->execs[i];
        const struct event_row *next = i + 1 < sl->n_execs ? sl->execs[i + 1] : NULL;
        bool intent = e->kind == EVENT_INTENT;
        bool pair = intent && next && next->exec == e->exec && next->kind == EVENT_OUTCOME;
        if (!fold_exec(s, sl, intent ? e : NULL, pair ? next : intent ? NULL : e, err))
            return false;
        i += pair;
    }
    return true;
}

/* When each session was last used, by whatever it did. */
static bool gather_uses(struct sqlite_store *s, struct slice *sl, struct error *err)
{
    for (size_t i = 0; i < sl->n; i++) {
        const struct event_row *e = &sl->events[i];
        struct use *use = NULL;
        if (!e->session_id.p ||
            (e->kind != EVENT_INTENT && e->kind != EVENT_OUTCOME && e->kind != EVENT_NOTE))
            continue;
        if (!use_of(s, sl, e, &use, err))
            return false;
        if (e->at_ms > use->at_ms)
            use->at_ms = e->at_ms;
    }
    return true;
}

static bool fold_uses(struct sqlite_store *s, struct slice *sl, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_SESSION_USED, err);
    if (!st || !gather_uses(s, sl, err))
        return false;
    qsort(sl->uses, sl->n_uses, sizeof(struct use *), by_rowid);
    for (size_t i = 0; i < sl->n_uses; i++) {
        const struct use *use = sl->uses[i];
        struct sq_bind b = {.st = st};
        if (!use->rowid)
            continue;
        sq_int(&b, use->rowid);
        sq_int(&b, use->executions);
        sq_int(&b, use->at_ms);
        sq_int(&b, SESSION_LIFE_MAX_MS);
        sq_time(&b, use->last_execution);
        if (!sq_run(s, st, err))
            return false;
    }
    return true;
}

/* Moves the watermark and the head of every (writer, tenant) in the slice. */
static bool advance(struct sqlite_store *s, const struct slice *sl, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_FOLD_ADVANCE, err);
    if (!st)
        return false;
    for (size_t i = 0; i < sl->n;) {
        size_t first = i;
        int64_t writer = sl->events[i].id >> EVENT_WRITER_SHIFT;
        while (i < sl->n && sl->events[i].id >> EVENT_WRITER_SHIFT == writer &&
               str_eq(sl->events[i].tenant, sl->events[first].tenant))
            i++;
        const struct event_row *last = &sl->events[i - 1];
        struct sq_bind b = {.st = st};
        sq_int(&b, writer);
        sq_text(&b, last->tenant);
        sq_int(&b, last->seq);
        sq_int(&b, last->id);
        sq_sha(&b, last->mac);
        sq_int(&b, (int64_t)(i - first));
        if (!sq_run(s, st, err))
            return false;
    }
    return true;
}

static bool fold_slice(struct sqlite_store *s, struct slice *sl, struct error *err)
{
    if (!load(s, sl, err))
        return false;
    sift(sl);
    return fold_execs(s, sl, err) && fold_uses(s, sl, err) && advance(s, sl, err);
}

/* In its own transaction; on success the memory of what is left moves on with it. */
static bool fold_once(struct sqlite_store *s, struct slice *sl, struct error *err)
{
    if (!sq_begin(s, err))
        return false;
    if ((!s->unfolded_known && !discover(s, err)) || !fold_slice(s, sl, err)) {
        sq_rollback(s);
        return false;
    }
    if (sl->n == 0)
        sq_rollback(s); /* nothing to make durable */
    else if (!sq_commit(s, err))
        return false;
    if (s->n_unfolded)
        memcpy(s->unfolded, sl->after, s->n_unfolded * sizeof(*sl->after));
    return true;
}

bool sq_fold(struct store *store, unsigned max, bool *ret_left, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    if (!s->broken && s->unfolded_known && !any_pending(s)) {
        *ret_left = false;
        return true;
    }
    struct slice sl = {.mem = arena_new(FOLD_ARENA), .max = max ? max : 1};
    sl.events = arena_zalloc(sl.mem, sl.max * sizeof(struct event_row));
    bool ok = fold_once(s, &sl, err);
    map_release(&sl.by_session);
    arena_free(sl.mem);
    if (ok)
        *ret_left = any_pending(s);
    return ok;
}

bool sq_open_intents(struct store *store, int64_t now_ms, int64_t after, unsigned limit,
                     struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                     struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct event_row *rows = arena_zalloc(mem, limit * sizeof(*rows));
    size_t n = 0;
    for (bool left = true; left;)
        if (!sq_fold(store, 2000, &left, err))
            return false;
    sqlite3_stmt *st = sq_prepare(s, SQ_OPEN_INTENTS, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, now_ms);
    sq_int(&b, after);
    sq_int(&b, limit);
    for (bool row = true; n < limit; n++) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st, .mem = mem};
        sq_read_event(&r, &rows[n]);
    }
    sq_reset(st);
    *ret_rows = rows;
    *ret_n = n;
    return true;
}
