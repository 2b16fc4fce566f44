/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the audit in PostgreSQL (store/sizes.h), and the size of the database. */
#include "store/postgres_impl.h"

#include "store/sizes.h"

void pg_sizes_params(struct pg_params *p, struct sizes *sizes, struct arena *mem)
{
    enum { DAY, EVENTS, EVENT_BYTES, BODIES, BODY_BYTES, FIRST, LAST, NUMBERS };
    struct str *tenants = arena_zalloc(mem, (sizes->n + 1) * sizeof(*tenants));
    int64_t *numbers[NUMBERS];
    sizes_sort(sizes);
    for (size_t k = 0; k < NUMBERS; k++)
        numbers[k] = arena_zalloc(mem, (sizes->n + 1) * sizeof(int64_t));
    for (size_t i = 0; i < sizes->n; i++) {
        const struct size_row *row = sizes->rows[i];
        tenants[i] = pg_cleaned(mem, row->tenant);
        numbers[DAY][i] = row->day;
        numbers[EVENTS][i] = row->events;
        numbers[EVENT_BYTES][i] = row->event_bytes;
        numbers[BODIES][i] = row->bodies;
        numbers[BODY_BYTES][i] = row->body_bytes;
        /* A removal has no times of its own: those of its day change nothing. */
        bool timed = row->first_ms <= row->last_ms;
        numbers[FIRST][i] = timed ? row->first_ms : (row->day + 1) * SIZES_DAY_MS;
        numbers[LAST][i] = timed ? row->last_ms : row->day * SIZES_DAY_MS;
    }
    pg_texts_of(p, tenants, sizes->n, mem);
    for (size_t k = 0; k < NUMBERS; k++)
        pg_ints(p, numbers[k], sizes->n, mem);
}

struct todo {
    int64_t writer, next, last;
};

/* Locks the row until the end of the transaction. */
static bool read_todo(struct pg_store *s, struct todo *ret, bool *ret_found, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_run(s, PG_SIZES_TODO, NULL, &res, err))
        return false;
    *ret_found = pq.ntuples(res) > 0;
    struct pg_row r = {.res = res};
    if (*ret_found) {
        ret->writer = pg_get_int(&r);
        ret->next = pg_get_int(&r);
        ret->last = pg_get_int(&r);
    }
    pq.clear(res);
    return true;
}

static bool read_some(struct pg_store *s, struct todo *todo, size_t max, struct sizes *sizes,
                      struct error *err)
{
    struct pg_events c;
    struct event_row e;
    bool found = true, ok = true;
    pg_events_open(s, &c, todo->next, todo->last);
    c.with_bodies = true;
    for (size_t n = 0; n < max; n++) {
        ok = pg_events_next(&c, &e, &found, err);
        if (!ok || !found)
            break;
        sizes_add(sizes, e.tenant, e.at_ms, event_size_of(&e));
        todo->next = e.id + 1;
    }
    pg_events_close(&c);
    if (ok && !found)
        todo->next = todo->last + 1;
    return ok;
}

static bool run_only(struct pg_store *s, enum pg_statement which, const struct pg_params *p,
                     struct error *err)
{
    PGresult *res = NULL;
    if (!pg_run(s, which, p, &res, err))
        return false;
    pq.clear(res);
    return true;
}

static bool move_on(struct pg_store *s, const struct todo *todo, struct error *err)
{
    struct pg_params p = {0};
    pg_int(&p, todo->writer);
    if (todo->next <= todo->last)
        pg_int(&p, todo->next);
    return run_only(s, todo->next > todo->last ? PG_SIZES_DONE : PG_SIZES_MOVE, &p, err);
}

static bool count_some(struct pg_store *s, struct todo *todo, size_t max, struct error *err)
{
    struct sizes sizes = {0};
    struct pg_params p = {0};
    struct arena *mem = arena_new(64 << 20);
    bool ok = read_some(s, todo, max, &sizes, err);
    if (ok)
        pg_sizes_params(&p, &sizes, mem);
    ok = ok && run_only(s, PG_SIZES_ADD, &p, err) && move_on(s, todo, err) &&
         pg_exec_text(s, "COMMIT", "committing", NULL, err);
    sizes_release(&sizes);
    arena_free(mem);
    return ok;
}

bool pg_sizes_count(struct pg_store *s, size_t max, bool *ret_left, struct error *err)
{
    struct todo todo = {0};
    bool found = false;
    if (!pg_ready(s, err) || !pg_exec_text(s, "BEGIN", "beginning", NULL, err))
        return false;
    bool ok = read_todo(s, &todo, &found, err);
    if (ok && found && count_some(s, &todo, max, err)) {
        *ret_left = true;
        return true;
    }
    pg_rollback(s);
    return ok && !found;
}

static void subtract(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    enum { ID, DAY, EVENTS, EVENT_BYTES, BODIES, BODY_BYTES, NUMBERS };
    const struct sizes_gone *gone = op->sizes;
    struct arena *mem = gone->mem;
    struct str *tenants = arena_zalloc(mem, (gone->n + 1) * sizeof(*tenants));
    int64_t *numbers[NUMBERS];
    for (size_t k = 0; k < NUMBERS; k++)
        numbers[k] = arena_zalloc(mem, (gone->n + 1) * sizeof(int64_t));
    for (size_t i = 0; i < gone->n; i++) {
        const struct size_gone *g = &gone->rows[i];
        tenants[i] = pg_cleaned(mem, g->tenant);
        numbers[ID][i] = g->id;
        numbers[DAY][i] = sizes_day(g->at_ms);
        numbers[EVENTS][i] = g->whole;
        numbers[EVENT_BYTES][i] = g->whole ? g->size.event : 0;
        numbers[BODIES][i] = g->size.body >= 0;
        numbers[BODY_BYTES][i] = g->size.body > 0 ? g->size.body : 0;
    }
    pg_texts_of(p, tenants, gone->n, mem);
    for (size_t k = 0; k < NUMBERS; k++)
        pg_ints(p, numbers[k], gone->n, mem);
}

const struct pg_verb pg_size_ops[] = {
    {OP_SIZES_SUBTRACT, PG_SIZES_SUBTRACT, subtract, NULL},
    {0},
};

static bool database_size(struct store *store, struct store_call *c, struct error *err)
{
    struct database_size *ret = c->ret;
    PGresult *res = NULL;
    if (!pg_query(pg_of(store), PG_DATABASE_SIZE, NULL, &res, err))
        return false;
    struct pg_row r = {.res = res};
    *ret = (struct database_size){.bytes = pg_get_int(&r)};
    ret->uncounted = pg_get_int(&r);
    pq.clear(res);
    return true;
}

const struct verb_handler pg_size_verbs[] = {
    {VERB_DATABASE_SIZE, database_size},
    {0},
};
