/* SPDX-License-Identifier: Apache-2.0 */
/* The fold: events in, projections out.
 *
 * One slice is one transaction: it takes up to `max` facts (sqlite_fact.c), writes executions in
 * order of their id, sessions in order of theirs, and moves the watermarks of the writers.  The
 * watermarks move with what they stand for, so an event is folded exactly once whatever dies when.
 * An idle store folds nothing at no cost. */
#include "store/sqlite_impl.h"

#include <stdlib.h>

/* What stands in session_tool_executions.state. */
enum exec_flags { EXEC_CLOSED = 1, EXEC_GUESSED = 2 };

struct fold {
    struct sqlite_store *s;
    struct sq_slice slice;
    struct sq_fact **execs; /* intents and outcomes by (exec, id) */
    size_t n_execs;
    struct fact_session **sessions; /* at most one for each fact */
    size_t n_sessions;
    struct fact_chain **chains; /* likewise */
    size_t n_chains;
};

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_exec(const void *a, const void *b)
{
    const struct sq_fact *x = *(struct sq_fact *const *)a;
    const struct sq_fact *y = *(struct sq_fact *const *)b;
    int order = compare(x->exec, y->exec);
    return order ? order : compare(x->id, y->id);
}

static int by_rowid(const void *a, const void *b)
{
    return compare((*(struct fact_session *const *)a)->rowid,
                   (*(struct fact_session *const *)b)->rowid);
}

/* The session as the store has it; once in each slice. */
static bool session_enter(struct fold *f, struct fact_session *session, struct error *err)
{
    bool row = false;
    if (!session || session->slice == f->s->slices)
        return true;
    sqlite3_stmt *st = sq_prepare(f->s, SQ_SESSION_CHAIN, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, session->id);
    sq_text(&b, session->tenant);
    if (!sq_step(f->s, st, &row, err))
        return false;
    struct sq_row r = {.st = st};
    session->slice = f->s->slices;
    session->at_ms = session->executions = 0;
    session->rowid = row ? sq_get_int(&r) : 0;
    session->last_execution = row ? sq_get_int(&r) : 0;
    sq_reset(st);
    f->sessions[f->n_sessions++] = session;
    return true;
}

static void chain_enter(struct fold *f, const struct sq_fact *fact)
{
    struct fact_chain *chain = fact->chain;
    if (chain->slice != f->s->slices) {
        chain->slice = f->s->slices;
        chain->events = 0;
        chain->last = fact;
        f->chains[f->n_chains++] = chain;
    }
    chain->events++;
    if (fact->id > chain->last->id)
        chain->last = fact;
}

/* Sorts out what each fact means to the projections. */
static bool sift(struct fold *f, struct error *err)
{
    size_t n = f->slice.n;
    f->execs = xcalloc(n + 1, sizeof(struct sq_fact *));
    f->sessions = xcalloc(n + 1, sizeof(struct fact_session *));
    f->chains = xcalloc(n + 1, sizeof(struct fact_chain *));
    for (size_t i = 0; i < n; i++) {
        struct sq_fact *fact = &f->slice.items[i];
        chain_enter(f, fact);
        if (!session_enter(f, fact->session, err))
            return false;
        if (fact->session && fact->at_ms > fact->session->at_ms)
            fact->session->at_ms = fact->at_ms;
        if (fact->kind == EVENT_INTENT || fact->kind == EVENT_OUTCOME)
            f->execs[f->n_execs++] = fact;
    }
    qsort(f->execs, f->n_execs, sizeof(struct sq_fact *), by_exec);
    return true;
}

static int state_after(const struct sq_fact *outcome)
{
    return !outcome ? 0 : outcome->indeterminate ? EXEC_CLOSED | EXEC_GUESSED : EXEC_CLOSED;
}

static bool exec_insert(struct sqlite_store *s, const struct sq_fact *fact,
                        const struct sq_fact *outcome, bool *ret_new, struct error *err)
{
    struct fact_session *session = fact->session;
    sqlite3_stmt *st = sq_prepare(s, SQ_EXEC_INSERT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, fact->exec);
    sq_time(&b, session ? session->rowid : 0);
    sq_time(&b, session ? session->last_execution : 0);
    sq_time(&b, outcome ? outcome->id : 0);
    sq_int(&b, state_after(outcome));
    if (!sq_run(s, st, err))
        return false;
    *ret_new = sqlite3_changes(s->db) > 0;
    if (*ret_new && session) {
        session->executions++;
        session->last_execution = fact->exec;
    }
    return true;
}

static bool exec_close(struct sqlite_store *s, const struct sq_fact *outcome, bool *ret_found,
                       struct error *err)
{
    sqlite3_stmt *st = sq_prepare(s, SQ_EXEC_CLOSE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, outcome->exec);
    sq_int(&b, outcome->id);
    sq_int(&b, state_after(outcome));
    if (!sq_run(s, st, err))
        return false;
    *ret_found = sqlite3_changes(s->db) > 0;
    return true;
}

/* One execution: its intent, its outcome, or both.  A refusal without an intent never ran. */
static bool fold_exec(struct sqlite_store *s, const struct sq_fact *intent,
                      const struct sq_fact *outcome, struct error *err)
{
    bool is_new = false;
    bool found = false;
    if (intent && !exec_insert(s, intent, outcome, &is_new, err))
        return false;
    if (!outcome || is_new)
        return true;
    if (!exec_close(s, outcome, &found, err))
        return false;
    if (found || outcome->refused)
        return true;
    return exec_insert(s, outcome, outcome, &is_new, err);
}

/* An intent and the outcome right behind it are one row written once; further outcomes, should
 * there be any, find it there. */
static bool fold_execs(struct fold *f, struct error *err)
{
    for (size_t i = 0; i < f->n_execs; i++) {
        const struct sq_fact *fact = f->execs[i];
        const struct sq_fact *next = i + 1 < f->n_execs ? f->execs[i + 1] : NULL;
        bool intent = fact->kind == EVENT_INTENT;
        bool pair = intent && next && next->exec == fact->exec && next->kind == EVENT_OUTCOME;
        if (!fold_exec(f->s, intent ? fact : NULL, pair ? next : intent ? NULL : fact, err))
            return false;
        i += pair;
    }
    return true;
}

static bool fold_sessions(struct fold *f, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(f->s, SQ_SESSION_USED, err);
    if (!st)
        return false;
    qsort(f->sessions, f->n_sessions, sizeof(struct fact_session *), by_rowid);
    for (size_t i = 0; i < f->n_sessions; i++) {
        const struct fact_session *session = f->sessions[i];
        struct sq_bind b = {.st = st};
        if (!session->rowid)
            continue;
        sq_int(&b, session->rowid);
        sq_int(&b, session->executions);
        sq_int(&b, session->at_ms);
        sq_int(&b, SESSION_LIFE_MAX_MS);
        sq_time(&b, session->last_execution);
        if (!sq_run(f->s, st, err))
            return false;
    }
    return true;
}

/* Moves the watermark and the head of every (writer, tenant) in the slice. */
static bool advance(struct fold *f, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(f->s, SQ_FOLD_ADVANCE, err);
    if (!st)
        return false;
    for (size_t i = 0; i < f->n_chains; i++) {
        const struct fact_chain *chain = f->chains[i];
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
    return sq_facts_take(f->s, max, &f->slice, err) && sift(f, err) && fold_execs(f, err) &&
           fold_sessions(f, err) && advance(f, err);
}

/* In its own transaction; on success the memory of what is left moves on with it. */
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
        sq_rollback(f->s); /* nothing to make durable */
    else if (!sq_commit(f->s, err))
        return false;
    sq_facts_folded(f->s, &f->slice);
    return true;
}

bool sq_fold(struct store *store, unsigned max, bool *ret_left, struct error *err)
{
    struct fold f = {.s = sq_of(store)};
    if (!f.s->broken && !sq_facts_pending(f.s)) {
        *ret_left = false;
        return true;
    }
    bool ok = fold_once(&f, max ? max : 1, err);
    sq_slice_release(&f.slice);
    free(f.execs);
    free(f.sessions);
    free(f.chains);
    if (ok)
        *ret_left = sq_facts_pending(f.s);
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
