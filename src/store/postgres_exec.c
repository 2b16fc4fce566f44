/* SPDX-License-Identifier: Apache-2.0 */
/* Projects a slice of events: rows of session_tool_executions, use of sessions, executed tools,
 * heads of chains.
 *
 * The projection is two rounds of one transaction.  The first round inserts executions, with intent
 * and outcome if the slice has both, and closes executions that an earlier slice began; its results
 * tell which executions are new, and which outcomes count.  Then families count the calls.  The
 * second round counts the new executions, writes everything else, and commits. */
#include "store/postgres_impl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"

/* The effect of the slice on one session. */
struct used {
    struct str tenant, id;
    int64_t at_ms, executions, tokens;
};
/* The effect of the slice on the chain of one tenant. */
struct chained {
    struct str tenant;
    const struct event_row *last;
    int64_t events;
};
/* The events of one execution, sorted by id.  The first is the intent or record; it is an outcome
 * when an earlier slice had the intent. */
struct execution {
    struct event_row **events;
    size_t n;
    bool is_new;
    const struct event_row *counts; /* the outcome that this slice counts; NULL: none */
    int64_t guess;                  /* event that `counts` replaces; 0: none */
};

struct projection {
    struct pg_store *s;
    int64_t writer;
    struct event_row *events;
    size_t n;
    struct arena *mem;
    struct event_row **sorted; /* events of executions, sorted by (exec, id) */
    struct execution *execs;
    size_t n_execs;
    struct map sessions, chains, tools;
    struct sizes sizes;
    struct counted_names names;
    struct counted_call *calls; /* of the slice */
    size_t n_calls;
    size_t n_sent;
};

static bool is_begin(const struct event_row *e)
{
    return e->kind == EVENT_INTENT || e->kind == EVENT_RECORD;
}

static bool is_use(const struct event_row *e)
{
    return is_begin(e) || e->kind == EVENT_OUTCOME || e->kind == EVENT_NOTE;
}

static int64_t exec_of(const struct event_row *e)
{
    return e->exec ? e->exec : e->id;
}

static int by_exec(const void *a, const void *b)
{
    const struct event_row *x = *(struct event_row *const *)a;
    const struct event_row *y = *(struct event_row *const *)b;
    if (exec_of(x) != exec_of(y))
        return exec_of(x) < exec_of(y) ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The session's entry; NULL when the event names no session. */
static struct used *session_of(struct projection *p, const struct event_row *e)
{
    uint8_t id[16];
    if (!is_use(e) || !pg_uuid_parse(e->session_id, id))
        return NULL;
    struct str key = arena_printf(p->mem, "%.*s/%.*s", STR_ARG(e->session_id), STR_ARG(e->tenant));
    struct used *u = map_get(&p->sessions, key);
    if (!u) {
        u = arena_new_of(p->mem, struct used);
        u->tenant = e->tenant;
        u->id = e->session_id;
        u->at_ms = INT64_MIN;
        map_put(&p->sessions, key, u);
    }
    return u;
}

static void use_session(struct projection *p, const struct event_row *e)
{
    struct used *u = session_of(p, e);
    if (!u)
        return;
    int64_t at_ms = clock_life_of_wall(e->at_ms);
    u->at_ms = at_ms > u->at_ms ? at_ms : u->at_ms;
    if (__builtin_add_overflow(u->tokens, e->tokens, &u->tokens))
        u->tokens = INT64_MAX;
}

static void chain_event(struct projection *p, const struct event_row *e)
{
    struct chained *c = map_get(&p->chains, e->tenant);
    if (!c) {
        c = arena_new_of(p->mem, struct chained);
        c->tenant = e->tenant;
        map_put(&p->chains, e->tenant, c);
    }
    c->last = e;
    c->events++;
}

static void enter_tool(struct projection *p, const struct event_row *e)
{
    if (e->kind != EVENT_INTENT || !e->server.p || !e->tool.p)
        return;
    struct str key = arena_printf(p->mem, "%.*s/%.*s/%.*s", STR_ARG(e->server), STR_ARG(e->tool),
                                  STR_ARG(e->tenant));
    if (!map_get(&p->tools, key))
        map_put(&p->tools, key, (void *)e);
}

/* Sorts the events by their effects.  An event that cannot be read counts only in its chain. */
static void sift(struct projection *p)
{
    size_t n = 0;
    p->sorted = arena_zalloc(p->mem, (p->n + 1) * sizeof(struct event_row *));
    p->execs = arena_zalloc(p->mem, (p->n + 1) * sizeof(struct execution));
    for (size_t i = 0; i < p->n; i++) {
        struct event_row *e = &p->events[i];
        chain_event(p, e);
        sizes_add(&p->sizes, e->tenant, e->at_ms, event_size_of(e));
        if (e->tenant.n == 0)
            continue;
        use_session(p, e);
        enter_tool(p, e);
        if (is_begin(e) || e->kind == EVENT_OUTCOME)
            p->sorted[n++] = e;
    }
    qsort(p->sorted, n, sizeof(struct event_row *), by_exec);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || exec_of(p->sorted[i]) != exec_of(p->sorted[i - 1]))
            p->execs[p->n_execs++].events = &p->sorted[i];
        p->execs[p->n_execs - 1].n++;
    }
}

struct str pg_cleaned(struct arena *mem, struct str s)
{
    if (!s.p || pg_is_text(s))
        return s;
    char *copy = arena_alloc(mem, s.n + 1);
    for (size_t i = 0; i < s.n; i++)
        copy[i] = s.p[i] > 0 ? s.p[i] : '?';
    return str_n(copy, s.n);
}

static struct str json_or_none(struct str s)
{
    return s.p && pg_is_text(s) ? s : STR_NONE;
}

static void add_exec_id(struct pg_params *q, int64_t exec)
{
    char uuid[EXECUTION_UUID_TEXT];
    execution_uuid(exec, uuid);
    pg_uuid(q, str_of(uuid));
}

static void add_unless(struct pg_params *q, int64_t value, int64_t none)
{
    if (value == none)
        pg_bytes(q, STR_NONE);
    else
        pg_int(q, value);
}

/* The first outcome counts.  A later outcome replaces only "indeterminate", which is a guess. */
static const struct event_row *outcome_of(const struct execution *x)
{
    const struct event_row *stands = NULL;
    for (size_t i = is_begin(x->events[0]) && x->events[0]->kind != EVENT_RECORD; i < x->n; i++)
        if (!stands || str_eq(stands->outcome, STR("indeterminate")))
            stands = x->events[i];
    return stands;
}

/* The parameters of a whole row.  `first` is an outcome when the execution has no intent; the row
 * then belongs to no session's list. */
static void insert_params(struct projection *p, const struct execution *x, struct pg_params *q)
{
    const struct event_row *first = x->events[0], *outcome = outcome_of(x);
    struct execution_row row;
    size_t begins = first->kind == EVENT_INTENT;
    int64_t *ids = arena_alloc(p->mem, (x->n + 1) * sizeof(*ids));
    for (size_t i = begins; i < x->n; i++)
        ids[i - begins] = x->events[i]->id;
    store_execution_join(first, outcome, true, p->mem, &row);
    add_exec_id(q, exec_of(first));
    pg_uuid(q, is_begin(first) ? first->session_id : STR_NONE);
    pg_text(q, pg_cleaned(p->mem, row.tool_name.p ? row.tool_name : STR("")));
    pg_uuid(q, row.tool_id);
    pg_text(q, json_or_none(row.arguments));
    pg_text(q, json_or_none(row.result));
    pg_text(q, pg_cleaned(p->mem, row.error));
    add_unless(q, row.duration_ms, -1);
    add_unless(q, row.tokens, -1);
    pg_instant(q, row.executed_ms);
    pg_text(q, pg_cleaned(p->mem, first->tenant));
    pg_text(q, pg_cleaned(p->mem, first->server));
    pg_text(q, outcome ? pg_cleaned(p->mem, outcome->outcome.p ? outcome->outcome : STR("ok"))
                       : STR_NONE);
    add_unless(q, outcome ? outcome->id : 0, 0);
    pg_ints(q, ids, x->n - begins, p->mem);
}

static void close_params(struct projection *p, const struct event_row *outcome, struct pg_params *q)
{
    struct execution_row row;
    store_execution_join(outcome, outcome, true, p->mem, &row);
    add_exec_id(q, exec_of(outcome));
    pg_int(q, outcome->id);
    pg_text(q, pg_cleaned(p->mem, outcome->outcome.p ? outcome->outcome : STR("ok")));
    pg_text(q, pg_cleaned(p->mem, row.error));
    add_unless(q, row.duration_ms, -1);
    add_unless(q, row.tokens, -1);
    pg_text(q, json_or_none(row.result));
}

static bool send(struct projection *p, enum pg_statement which, const struct pg_params *q,
                 struct error *err)
{
    if (!pg_pipe_send(p->s, which, q, err))
        return false;
    p->n_sent++;
    return true;
}

static bool send_exec(struct projection *p, const struct execution *x, struct error *err)
{
    if (is_begin(x->events[0])) {
        struct pg_params q = {0};
        insert_params(p, x, &q);
        return send(p, PG_EXEC_INSERT, &q, err);
    }
    for (size_t i = 0; i < x->n; i++) {
        struct pg_params q = {0};
        close_params(p, x->events[i], &q);
        if (!send(p, PG_EXEC_CLOSE, &q, err))
            return false;
    }
    return true;
}

/* Takes the next result; *ret is the number of rows that the statement wrote. */
static bool take_count(struct projection *p, int64_t *ret, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_pipe_next(p->s, &res, err))
        return false;
    ExecStatusType status = pq.result_status(res);
    bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
              pg_failed(p->s, res, "folding", err);
    if (ok)
        *ret = strtoll(pq.cmd_tuples(res), NULL, 10);
    pq.clear(res);
    return ok;
}

/* Takes the result of closing an execution.  Of several outcomes in the slice the last one that
 * counts stands; the guess that it replaces is the one of an earlier slice, if any. */
static bool take_close(struct projection *p, struct execution *x, const struct event_row *outcome,
                       bool *ret_found, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_pipe_next(p->s, &res, err))
        return false;
    bool ok = pq.result_status(res) == PGRES_TUPLES_OK || pg_failed(p->s, res, "folding", err);
    *ret_found = ok && pq.ntuples(res) > 0;
    if (*ret_found) {
        struct pg_row r = {.res = res, .mem = p->mem};
        bool counts = pg_get_bool(&r);
        if (counts && !x->counts)
            x->guess = pg_get_int(&r);
        if (counts)
            x->counts = outcome;
    }
    pq.clear(res);
    return ok;
}

/* An outcome without a known execution begins a new one, unless it is a refusal: a refused call
 * never ran. */
static bool take_exec(struct projection *p, struct execution *x, struct error *err)
{
    bool found = false;
    int64_t n = 0;
    if (is_begin(x->events[0])) {
        if (!take_count(p, &n, err))
            return false;
        x->is_new = n > 0;
        x->counts = x->is_new ? outcome_of(x) : NULL;
        return true;
    }
    for (size_t i = 0; i < x->n; i++)
        if (!take_close(p, x, x->events[i], &found, err))
            return false;
    if (!found)
        x->counts = outcome_of(x);
    x->is_new = !found && !str_eq(x->counts->outcome, STR("refused"));
    return true;
}

/* Takes the remaining results, so that the connection stays in step, even after a failure. */
static bool drained(struct projection *p, bool ok, size_t left, struct error *err)
{
    struct error ignored;
    for (; p->s->conn && left; left--) {
        PGresult *res = NULL;
        if (!pg_pipe_next(p->s, &res, &ignored))
            break;
        pq.clear(res);
    }
    if (p->s->conn && !pg_pipe_synced(p->s, ok ? err : &ignored))
        ok = false;
    return ok && p->s->conn;
}

static bool first_round(struct projection *p, struct error *err)
{
    size_t taken = 0;
    bool ok = true;
    p->n_sent = 0;
    pg_deadline(p->s, p->s->deadline_ms);
    for (size_t i = 0; ok && i < p->n_execs; i++)
        ok = send_exec(p, &p->execs[i], err);
    struct error ignored;
    if (p->s->conn && !pg_pipe_sync(p->s, ok ? err : &ignored))
        return false;
    for (size_t i = 0; ok && i < p->n_execs; i++) {
        struct execution *x = &p->execs[i];
        ok = take_exec(p, x, err);
        taken += is_begin(x->events[0]) ? 1 : x->n;
    }
    return drained(p, ok, p->n_sent > taken ? p->n_sent - taken : 0, err);
}

static void count_new(struct projection *p)
{
    for (size_t i = 0; i < p->n_execs; i++) {
        struct used *u = session_of(p, p->execs[i].events[0]);
        if (u && p->execs[i].is_new)
            u->executions++;
    }
}

static bool send_lost_beginnings(struct projection *p, struct error *err)
{
    for (size_t i = 0; i < p->n_execs; i++) {
        struct execution *x = &p->execs[i];
        struct pg_params q = {0};
        if (is_begin(x->events[0]) || !x->is_new)
            continue;
        insert_params(p, x, &q);
        if (!send(p, PG_EXEC_INSERT, &q, err))
            return false;
    }
    return true;
}

static bool send_sessions(struct projection *p, struct error *err)
{
    size_t room = p->sessions.n + 1, n = 0;
    struct str *ids = arena_zalloc(p->mem, room * sizeof(*ids));
    struct str *tenants = arena_zalloc(p->mem, room * sizeof(*tenants));
    int64_t *numbers[3]; /* executions, tokens, at_ms */
    struct pg_params q = {0};
    struct str key;
    void *value;
    for (size_t i = 0; i < countof(numbers); i++)
        numbers[i] = arena_zalloc(p->mem, room * sizeof(int64_t));
    for (size_t at = 0; map_next(&p->sessions, &at, &key, &value); n++) {
        const struct used *u = value;
        ids[n] = u->id;
        tenants[n] = pg_cleaned(p->mem, u->tenant);
        numbers[0][n] = u->executions;
        numbers[1][n] = u->tokens;
        numbers[2][n] = u->at_ms;
    }
    if (n == 0)
        return true;
    pg_uuids(&q, ids, n, p->mem);
    pg_texts_of(&q, tenants, n, p->mem);
    for (size_t i = 0; i < countof(numbers); i++)
        pg_ints(&q, numbers[i], n, p->mem);
    pg_int(&q, SESSION_LIFE_MAX_MS);
    return send(p, PG_SESSIONS_USED, &q, err);
}

static bool send_tools(struct projection *p, struct error *err)
{
    struct str key;
    void *value;
    for (size_t at = 0; map_next(&p->tools, &at, &key, &value);) {
        const struct event_row *e = value;
        char uuid[TOOL_UUID_TEXT];
        struct pg_params q = {0};
        tool_uuid(e->tenant, e->server, e->tool, uuid);
        pg_uuid(&q, str_of(uuid));
        pg_text(&q, pg_cleaned(p->mem, e->tenant));
        pg_text(&q, pg_cleaned(p->mem, e->server));
        pg_text(&q, pg_cleaned(p->mem, e->tool));
        if (!send(p, PG_TOOL_ENTER, &q, err))
            return false;
    }
    return true;
}

static bool send_heads(struct projection *p, struct error *err)
{
    struct str key;
    void *value;
    for (size_t at = 0; map_next(&p->chains, &at, &key, &value);) {
        const struct chained *c = value;
        struct pg_params q = {0};
        pg_int(&q, p->writer);
        pg_text(&q, pg_cleaned(p->mem, c->tenant));
        pg_int(&q, c->last->seq);
        pg_int(&q, c->last->id);
        pg_sha(&q, c->last->mac);
        pg_int(&q, c->events);
        if (!send(p, PG_FOLD_HEAD, &q, err))
            return false;
    }
    struct pg_params q = {0};
    pg_int(&q, p->writer);
    pg_int(&q, p->events[p->n - 1].id);
    return send(p, PG_FOLD_ADVANCE, &q, err);
}

/* Last before the commit, because other nodes wait for these rows. */
static bool send_sizes(struct projection *p, struct error *err)
{
    struct pg_params q = {0};
    pg_sizes_params(&q, &p->sizes, p->mem);
    return send(p, PG_SIZES_ADD, &q, err);
}

static bool second_round(struct projection *p, struct error *err)
{
    struct error ignored;
    size_t taken = 0;
    int64_t n;
    p->n_sent = 0;
    pg_deadline(p->s, p->s->deadline_ms);
    count_new(p);
    bool ok = send_lost_beginnings(p, err) && send_tools(p, err) && send_sessions(p, err) &&
              send_heads(p, err) && send_sizes(p, err) && send(p, PG_COMMIT, NULL, err);
    if (p->s->conn && !pg_pipe_sync(p->s, ok ? err : &ignored))
        return false;
    for (; ok && taken < p->n_sent; taken++)
        ok = take_count(p, &n, err);
    return drained(p, ok, p->n_sent - taken, err);
}

static void count_event(struct projection *p, const struct event_row *e, bool is_undone)
{
    struct counted_call *call = &p->calls[p->n_calls++];
    *call = counted_call_of(e, counted_labels_of(&p->names, p->mem, e));
    call->is_undone = is_undone;
}

/* Takes back the guess that an outcome replaces.  A guess that was removed meanwhile stays counted. */
static bool undo_guess(struct projection *p, int64_t guess, struct error *err)
{
    struct event_row *e = arena_new_of(p->mem, struct event_row);
    size_t n = 0;
    if (!pg_events_of(p->s, &guess, 1, false, p->mem, e, &n, err))
        return false;
    if (n)
        count_event(p, e, true);
    return true;
}

/* An event that cannot be read is of no tenant. */
static bool gather_calls(struct projection *p, struct error *err)
{
    p->calls = arena_alloc(p->mem, (2 * p->n + 1) * sizeof(struct counted_call));
    for (size_t i = 0; i < p->n; i++)
        if (p->events[i].kind == EVENT_NOTE && p->events[i].tenant.n)
            count_event(p, &p->events[i], false);
    for (size_t i = 0; i < p->n_execs; i++) {
        const struct execution *x = &p->execs[i];
        if (x->counts)
            count_event(p, x->counts, false);
        if (x->counts && x->guess && !undo_guess(p, x->guess, err))
            return false;
    }
    return true;
}

/* Between the rounds, outside of the pipeline. */
static bool count_calls(struct projection *p, struct error *err)
{
    size_t n;
    const struct store_family *const *families = store_families(&n);
    pg_pipe_end(p->s);
    bool ok = gather_calls(p, err);
    for (size_t i = 0; ok && p->n_calls && i < n; i++)
        ok = !families[i]->postgres->count ||
             families[i]->postgres->count(p->s, p->writer, p->calls, p->n_calls, p->mem, err);
    return ok && pg_pipe_begin(p->s, err);
}

static bool prepare_all(struct pg_store *s, struct error *err)
{
    static const enum pg_statement all[] = {PG_EXEC_INSERT, PG_EXEC_CLOSE, PG_SESSIONS_USED,
                                            PG_TOOL_ENTER,  PG_FOLD_HEAD,  PG_FOLD_ADVANCE,
                                            PG_SIZES_ADD,   PG_COMMIT};
    for (size_t i = 0; i < countof(all); i++)
        if (!pg_prepare(s, all[i], err))
            return false;
    return true;
}

bool pg_project(struct pg_store *s, int64_t writer, struct event_row *events, size_t n,
                struct arena *mem, struct error *err)
{
    struct projection p = {.s = s, .writer = writer, .events = events, .n = n, .mem = mem};
    sift(&p);
    bool ok = prepare_all(s, err) && pg_pipe_begin(s, err) && first_round(&p, err) &&
              count_calls(&p, err) && second_round(&p, err);
    pg_pipe_end(s);
    map_release(&p.sessions);
    map_release(&p.chains);
    map_release(&p.tools);
    sizes_release(&p.sizes);
    map_release(&p.names.map);
    return ok;
}
