/* SPDX-License-Identifier: Apache-2.0 */
/* The fold: projects events.
 *
 * One slice is one transaction: it takes up to `max` unfolded events (sqlite_unfolded.c), updates
 * the sessions, writes the executions that are still open, and moves the watermarks of the writers.
 * The watermarks move in the same transaction, so each event is folded exactly once, even if the
 * process is killed during the fold.  In an idle store the fold costs nothing.
 *
 * Families count the calls of the slice (store/counted.h) in the same transaction.
 *
 * An execution with intent and outcome in one slice gets no row of its own, only an entry in the
 * list of its session (sqlite_execution.c). */
#include "store/sqlite_impl.h"

#include "base/clock.h"

#include <stdlib.h>

/* Bits of long_executions.state. */
enum exec_flags { EXEC_CLOSED = 1, EXEC_GUESSED = 2, EXEC_SEVERAL = 4 };
#define UNFOLDED_GUESSES (64 << 20)

struct fold {
    struct sqlite_store *s;
    struct sq_slice slice;
    struct unfolded_event **execs; /* intents and outcomes, sorted by (exec, id) */
    size_t n_execs;
    struct unfolded_session **sessions; /* at most one for each event */
    size_t n_sessions;
    struct unfolded_chain **chains; /* likewise */
    size_t n_chains;
    struct unfolded_tool **tools; /* likewise: tools not entered yet */
    size_t n_tools;
    struct sq_listed *listed; /* at most one for each of execs */
    size_t n_listed;
    struct counted_call *calls; /* at most two for each event: one may take back a guess */
    size_t n_calls;
    struct arena *mem; /* of the guesses; NULL: there are none */
    struct counted_names names;
    struct buf ids;
    int64_t earliest_ms; /* earliest use in the slice */
    struct sizes sizes;
};

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_exec(const void *a, const void *b)
{
    const struct unfolded_event *x = *(struct unfolded_event *const *)a;
    const struct unfolded_event *y = *(struct unfolded_event *const *)b;
    int order = compare(x->exec, y->exec);
    return order ? order : compare(x->id, y->id);
}

static int by_id(const void *a, const void *b)
{
    return str_cmp((*(struct unfolded_session *const *)a)->id,
                   (*(struct unfolded_session *const *)b)->id);
}

static void session_enter(struct fold *f, const struct unfolded_event *event)
{
    struct unfolded_session *session = event->session;
    if (!session)
        return;
    if (session->slice != f->s->slices) {
        session->slice = f->s->slices;
        session->at_ms = session->executions = session->tokens = 0;
        session->listed = session->last_listed = NULL;
        f->sessions[f->n_sessions++] = session;
    }
    if (event->at_ms > session->at_ms)
        session->at_ms = event->at_ms;
    if (event->tokens > 0)
        session->tokens = session->tokens < INT64_MAX - event->tokens
                              ? session->tokens + event->tokens
                              : INT64_MAX;
}

static void chain_enter(struct fold *f, const struct unfolded_event *event)
{
    struct unfolded_chain *chain = event->chain;
    if (chain->slice != f->s->slices) {
        chain->slice = f->s->slices;
        chain->events = 0;
        chain->last = event;
        f->chains[f->n_chains++] = chain;
    }
    chain->events++;
    if (event->id > chain->last->id)
        chain->last = event;
}

static void tool_enter(struct fold *f, struct unfolded_tool *tool)
{
    if (!tool || tool->entered || tool->slice == f->s->slices)
        return;
    tool->slice = f->s->slices;
    f->tools[f->n_tools++] = tool;
}

/* True when this event would exceed the number of sessions in one slice.  (Events that were read
 * back are already within the limit.) */
static bool is_for_the_next(const struct fold *f, const struct unfolded_event *event)
{
    return f->n_sessions >= SQ_SLICE_SESSIONS && f->slice.from_memory && event->session &&
           event->session->slice != f->s->slices;
}

/* Sorts the events by their effects on the projections, and ends the slice early if necessary. */
static void sift(struct fold *f)
{
    size_t n = f->slice.n;
    f->execs = xcalloc(n + 1, sizeof(struct unfolded_event *));
    f->sessions = xcalloc(n + 1, sizeof(struct unfolded_session *));
    f->chains = xcalloc(n + 1, sizeof(struct unfolded_chain *));
    f->tools = xcalloc(n + 1, sizeof(struct unfolded_tool *));
    f->calls = xcalloc(2 * n + 1, sizeof(struct counted_call));
    for (size_t i = 0; i < n; i++) {
        struct unfolded_event *event = &f->slice.items[i];
        if (is_for_the_next(f, event)) {
            f->slice.n = i;
            break;
        }
        chain_enter(f, event);
        sizes_add(&f->sizes, event->chain->tenant, event->at_ms, event->size);
        session_enter(f, event);
        tool_enter(f, event->tool);
        if (event->kind == EVENT_NOTE)
            f->calls[f->n_calls++] = event->call;
        if (event->kind == EVENT_INTENT || event->kind == EVENT_OUTCOME ||
            event->kind == EVENT_RECORD)
            f->execs[f->n_execs++] = event;
    }
    f->listed = xcalloc(f->n_execs + 1, sizeof(struct sq_listed));
    qsort(f->execs, f->n_execs, sizeof(struct unfolded_event *), by_exec);
}

static int state_after(const struct unfolded_event *outcome)
{
    return outcome->indeterminate ? EXEC_CLOSED | EXEC_GUESSED : EXEC_CLOSED;
}

static void count_execution(const struct unfolded_event *event)
{
    if (event->session)
        event->session->executions++;
}

static bool exec_insert(struct sqlite_store *s, int64_t exec, int64_t outcome_event, int state,
                        struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_EXEC_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, exec);
    sq_time(&b, outcome_event);
    sq_int(&b, state);
    return sq_run(s, st, err);
}

struct exec_state {
    bool found;
    int64_t outcome_event, state;
};

static bool exec_state(struct sqlite_store *s, int64_t exec, struct exec_state *ret,
                       struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_EXEC_STATE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, exec);
    if (!sq_step(s, st, &ret->found, err))
        return false;
    struct sq_row r = {.st = st};
    ret->outcome_event = ret->found ? sq_get_int(&r) : 0;
    ret->state = ret->found ? sq_get_int(&r) : 0;
    sq_reset(st);
    return true;
}

static bool exec_close(struct sqlite_store *s, const struct unfolded_event *outcome,
                       struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_EXEC_CLOSE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, outcome->exec);
    sq_int(&b, outcome->id);
    sq_int(&b, state_after(outcome));
    return sq_run(s, st, err);
}

/* Takes back the guess that an outcome replaces.  A guess that was removed meanwhile stays counted. */
static bool undo_guess(struct fold *f, int64_t guess, struct error *err)
{
    struct sq_events c;
    struct event_row e;
    bool found = false;
    if (!sq_event_peek(f->s, &c, guess, &e, &found, err))
        return false;
    if (found) {
        if (!f->mem)
            f->mem = arena_new(UNFOLDED_GUESSES);
        struct counted_call *call = &f->calls[f->n_calls++];
        *call = counted_call_of(&e, counted_labels_of(&f->names, f->mem, &e));
        call->session_id = arena_dup(f->mem, e.session_id);
        call->is_undone = true;
    }
    sq_events_close(&c);
    return true;
}

/* An outcome that is not the first of its execution counts only if it replaces a guess. */
static bool count_outcome(struct fold *f, const struct unfolded_event *outcome,
                          const struct exec_state *before, struct error *err)
{
    if (before->found && before->state != 0 && !(before->state & EXEC_GUESSED))
        return true;
    f->calls[f->n_calls++] = outcome->call;
    return !(before->state & EXEC_GUESSED) || undo_guess(f, before->outcome_event, err);
}

static bool has_intent(struct sqlite_store *s, int64_t exec, bool *ret, struct error *err)
{
    struct sq_events c;
    struct event_row e;
    if (!sq_event_peek(s, &c, exec, &e, ret, err))
        return false;
    *ret = *ret && e.kind == EVENT_INTENT;
    sq_events_close(&c);
    return true;
}

/* An outcome that does not directly follow its intent.  It belongs to an open execution, is a
 * further outcome of a closed one, or has no intent.  A refused call without an intent never
 * ran. */
static bool fold_outcome(struct fold *f, const struct unfolded_event *outcome, struct error *err)
{
    struct sqlite_store *s = f->s;
    struct exec_state before = {0};
    bool found = false;
    if (!exec_state(s, outcome->exec, &before, err))
        return false;
    if (before.found)
        return exec_close(s, outcome, err) && count_outcome(f, outcome, &before, err);
    if (!has_intent(s, outcome->exec, &found, err))
        return false;
    if (found)
        return exec_insert(s, outcome->exec, 0, EXEC_CLOSED | EXEC_SEVERAL, err);
    if (!count_outcome(f, outcome, &before, err))
        return false;
    if (outcome->refused)
        return true;
    count_execution(outcome);
    return exec_insert(s, outcome->exec, outcome->id, state_after(outcome), err);
}

/* Adds an execution to the list of its session. */
static void list_execution(struct fold *f, const struct unfolded_event *event, int64_t outcome)
{
    struct unfolded_session *session = event->session;
    if (!session)
        return;
    struct sq_listed *x = &f->listed[f->n_listed++];
    *x = (struct sq_listed){.exec = event->id, .outcome = outcome};
    if (session->last_listed)
        session->last_listed->next = x;
    else
        session->listed = x;
    session->last_listed = x;
    session->executions++;
}

/* `outcome` is NULL when it is not in this slice.  Another outcome may follow an indeterminate one
 * much later, so its place is stored and need not be found by reading on. */
static bool fold_intent(struct fold *f, const struct unfolded_event *intent,
                        const struct unfolded_event *outcome, struct error *err)
{
    if (outcome)
        f->calls[f->n_calls++] = outcome->call;
    if (outcome && !outcome->indeterminate) {
        list_execution(f, intent, outcome->id);
        return true;
    }
    list_execution(f, intent, 0);
    return outcome ? exec_insert(f->s, intent->exec, outcome->id, state_after(outcome), err)
                   : exec_insert(f->s, intent->exec, 0, 0, err);
}

static void fold_record(struct fold *f, const struct unfolded_event *record)
{
    list_execution(f, record, record->id);
    f->calls[f->n_calls++] = record->call;
}

static bool fold_execs(struct fold *f, struct error *err)
{
    for (size_t i = 0; i < f->n_execs; i++) {
        const struct unfolded_event *event = f->execs[i];
        const struct unfolded_event *next = i + 1 < f->n_execs ? f->execs[i + 1] : NULL;
        bool closed = next && next->exec == event->exec && next->kind == EVENT_OUTCOME;
        bool ok = true;
        if (event->kind == EVENT_OUTCOME)
            ok = fold_outcome(f, event, err);
        else if (event->kind == EVENT_RECORD)
            fold_record(f, event);
        else
            ok = fold_intent(f, event, closed ? next : NULL, err);
        if (!ok)
            return false;
        i += event->kind == EVENT_INTENT && closed;
    }
    return true;
}

static bool fold_session(struct fold *f, const struct unfolded_session *session, struct error *err)
{
    int64_t at_ms = clock_life_of_wall(session->at_ms);
    sqlite3_stmt *st = sq_prepare(f->s, SQ_SESSION_USED, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, session->id);
    sq_text(&b, session->tenant);
    sq_int(&b, session->executions);
    sq_int(&b, at_ms);
    sq_int(&b, SESSION_LIFE_MAX_MS);
    sq_int(&b, session->tokens);
    if (!sq_run(f->s, st, err))
        return false;
    if (at_ms < f->earliest_ms)
        f->earliest_ms = at_ms;
    return sqlite3_changes(f->s->db) == 0 ||
           sq_executions_add(f->s, session->id, session->listed, &f->ids, err);
}

static bool wake_used(struct fold *f, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(f->s, SQ_SESSIONS_WAKE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, f->earliest_ms);
    return sq_run(f->s, st, err);
}

static bool fold_sessions(struct fold *f, struct error *err)
{
    f->earliest_ms = INT64_MAX;
    qsort(f->sessions, f->n_sessions, sizeof(struct unfolded_session *), by_id);
    for (size_t i = 0; i < f->n_sessions; i++)
        if (!fold_session(f, f->sessions[i], err))
            return false;
    return f->n_sessions == 0 || wake_used(f, err);
}

static bool fold_tools(struct fold *f, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(f->s, SQ_TOOL_ADD, err);
    if (!st)
        return false;
    for (size_t i = 0; i < f->n_tools; i++) {
        const struct unfolded_tool *tool = f->tools[i];
        char uuid[TOOL_UUID_TEXT];
        struct sq_bind b = {.st = st};
        tool_uuid(tool->tenant, tool->server, tool->tool, uuid);
        sq_text(&b, str_of(uuid));
        sq_text(&b, tool->tenant);
        sq_text(&b, tool->server);
        sq_text(&b, tool->tool);
        if (!sq_run(f->s, st, err))
            return false;
    }
    return true;
}

static bool count_calls(struct fold *f, struct error *err)
{
    size_t n;
    const struct store_family *const *families = store_families(&n);
    for (size_t i = 0; f->n_calls && i < n; i++)
        if (families[i]->sqlite->count &&
            !families[i]->sqlite->count(f->s, f->calls, f->n_calls, err))
            return false;
    return true;
}

/* Moves the watermark and the head of every (writer, tenant) in the slice. */
static bool advance(struct fold *f, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(f->s, SQ_FOLD_ADVANCE, err);
    if (!st)
        return false;
    for (size_t i = 0; i < f->n_chains; i++) {
        const struct unfolded_chain *chain = f->chains[i];
        struct sq_bind b = {.st = st};
        sq_int(&b, chain->writer);
        sq_text(&b, chain->tenant);
        sq_int(&b, chain->last->seq);
        sq_int(&b, chain->last->id);
        sq_sha(&b, chain->last->mac);
        sq_int(&b, chain->events);
        if (!sq_run(f->s, st, err))
            return false;
    }
    return true;
}

static bool fold_slice(struct fold *f, size_t max, struct error *err)
{
    if (!sq_unfolded_take(f->s, max, &f->slice, err))
        return false;
    sift(f);
    return fold_execs(f, err) && fold_sessions(f, err) && fold_tools(f, err) &&
           sq_sizes_write(f->s, &f->sizes, err) && count_calls(f, err) && advance(f, err);
}

/* Folds one slice in its own transaction.  On success also updates the list of unfolded events in
 * memory. */
static bool fold_once(struct fold *f, size_t max, struct error *err)
{
    if (!sq_begin(f->s, err))
        return false;
    f->s->slices++;
    if (!fold_slice(f, max, err)) {
        sq_rollback(f->s);
        return false;
    }
    if (f->slice.n == 0)
        sq_rollback(f->s); /* nothing to commit */
    else if (!sq_commit(f->s, err))
        return false;
    for (size_t i = 0; i < f->n_tools; i++)
        f->tools[i]->entered = true;
    sq_unfolded_done(f->s, &f->slice);
    return true;
}

static bool fold(struct store *store, struct store_call *c, struct error *err)
{
    bool *ret_left = c->ret;
    struct fold f = {.s = sq_of(store)};
    if (!f.s->broken && !sq_unfolded_pending(f.s)) {
        *ret_left = false;
        return true;
    }
    buf_init(&f.ids, SIZE_MAX / 4); /* bounded by the slice */
    bool ok = fold_once(&f, c->limit ? c->limit : 1, err);
    sq_slice_release(&f.slice);
    free(f.execs);
    free(f.sessions);
    free(f.chains);
    free(f.tools);
    free(f.listed);
    sizes_release(&f.sizes);
    free(f.calls);
    map_release(&f.names.map);
    arena_free(f.mem);
    buf_release(&f.ids);
    if (ok)
        *ret_left = sq_unfolded_pending(f.s);
    return ok;
}

/* Reads the intents of `n` executions. */
static bool read_intents(struct sqlite_store *s, const int64_t *ids, size_t n, struct arena *mem,
                         struct event_row *rows, size_t *ret_n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct sq_events c;
        struct event_row e;
        bool found = false;
        if (!sq_event_peek(s, &c, ids[i], &e, &found, err))
            return false;
        if (found)
            event_row_keep(mem, &e, &rows[(*ret_n)++]);
        sq_events_close(&c);
    }
    return true;
}

static bool read_open(struct sqlite_store *s, int64_t now_ms, int64_t after, unsigned limit,
                      int64_t *ids, size_t *ret_n, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_OPEN_INTENTS, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, now_ms);
    sq_int(&b, after);
    sq_int(&b, limit);
    for (bool row = true; *ret_n < limit; (*ret_n)++) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        ids[*ret_n] = sqlite3_column_int64(st, 0);
    }
    sq_reset(st);
    return true;
}

static bool open_intents(struct store *store, struct store_call *c, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct event_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    int64_t *ids = arena_zalloc(c->mem, c->limit * sizeof(*ids));
    size_t n_ids = 0, n = 0;
    for (bool left = true; left;)
        if (!store_fold(store, 2000, &left, err))
            return false;
    if (!read_open(s, c->now_ms, c->after_id, c->limit, ids, &n_ids, err) ||
        !read_intents(s, ids, n_ids, c->mem, rows, &n, err))
        return false;
    c->rows = rows;
    c->n = n;
    return true;
}

const struct verb_handler sq_fold_verbs[] = {
    {VERB_FOLD, fold},
    {VERB_OPEN_INTENTS, open_intents},
    {0},
};
