/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the writers with unfolded events, and the heads of all chains.  Both must be quick no
 * matter how old the database is: they use the tables of the fold and read only the events after
 * it. */
#include "store/postgres_impl.h"

#include "store/heads.h"

/* In the order of PG_TAILS. */
static const struct row_column tail_columns[] = {
    {COLUMN_INT, offsetof(struct pg_tail, writer), "writer"},
    {COLUMN_INT, offsetof(struct pg_tail, mark), "mark"},
    {COLUMN_INT, offsetof(struct pg_tail, last_id), "last_id"},
};
static const struct row_type tail_type = {sizeof(struct pg_tail), tail_columns,
                                          countof(tail_columns), NULL};

bool pg_tails(struct pg_store *s, int64_t now_ms, struct arena *mem, struct pg_tail **ret,
              size_t *ret_n, struct error *err)
{
    struct pg_rows tails = {.type = &tail_type, .mem = mem};
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_time(&p, now_ms < 0 ? 0 : now_ms);
    if (!pg_run(s, PG_TAILS, &p, &res, err) || !pg_take_rows(res, SIZE_MAX, &tails, err))
        return false;
    *ret = tails.items;
    *ret_n = tails.n;
    return true;
}

static bool gather_folded(struct pg_store *s, struct heads *h, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_run(s, PG_FOLD_HEADS, NULL, &res, err))
        return false;
    for (int i = 0; i < pq.ntuples(res); i++) {
        struct pg_row r = {.res = res, .row = i, .mem = h->mem};
        struct str tenant = pg_peek_bytes(&r);
        struct chain_head *head = heads_of(h, pg_get_int(&r), tenant);
        head->seq = pg_get_int(&r);
        head->last_id = pg_get_int(&r);
        pg_get_sha(&r, head->mac);
    }
    pq.clear(res);
    return true;
}

static bool gather_tail(struct pg_store *s, struct heads *h, const struct pg_tail *tail,
                        struct error *err)
{
    struct pg_events c;
    struct event_row e;
    bool found = true, ok;
    pg_events_open(s, &c, tail->mark + 1, tail->last_id);
    while ((ok = pg_events_next(&c, &e, &found, err)) && found)
        heads_follow(h, &e);
    pg_events_close(&c);
    return ok;
}

static bool gather(struct pg_store *s, struct heads *h, struct error *err)
{
    struct pg_tail *tails = NULL;
    size_t n = 0;
    if (!gather_folded(s, h, err) || !pg_tails(s, -1, h->mem, &tails, &n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!gather_tail(s, h, &tails[i], err))
            return false;
    return true;
}

static bool chain_heads(struct store *store, struct store_call *c, struct error *err)
{
    struct pg_store *s = pg_of(store);
    struct heads h = {.mem = c->mem};
    if (!pg_ready(s, err))
        return false;
    bool ok =
        pg_exec_text(s, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "reading", NULL, err) &&
        gather(s, &h, err);
    pg_rollback(s);
    if (ok)
        c->rows = heads_list(&h, &c->n);
    heads_release(&h);
    return ok;
}

const struct verb_handler pg_head_verbs[] = {
    {VERB_CHAIN_HEADS, chain_heads},
    {0},
};
