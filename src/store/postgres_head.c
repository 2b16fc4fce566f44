/* SPDX-License-Identifier: Apache-2.0 */
/* Which writers have events that are not folded, and the heads of all chains.  Both must be quick
 * however old the database is: they go by the fold's own tables and read only the tails behind. */
#include "store/postgres_impl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"

bool pg_tails(struct pg_store *s, int64_t now_ms, struct arena *mem, struct pg_tail **ret,
              size_t *ret_n, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_time(&p, now_ms < 0 ? 0 : now_ms);
    if (!pg_run(s, PG_TAILS, &p, &res, err))
        return false;
    size_t n = (size_t)PQntuples(res);
    struct pg_tail *tails = arena_zalloc(mem, (n + 1) * sizeof(*tails));
    for (size_t i = 0; i < n; i++) {
        struct pg_row r = {.res = res, .row = (int)i};
        tails[i].writer = pg_get_int(&r);
        tails[i].mark = pg_get_int(&r);
        tails[i].last_id = pg_get_int(&r);
    }
    PQclear(res);
    *ret = tails;
    *ret_n = n;
    return true;
}

/* Heads while they are gathered: those the fold knows, moved on by the tail behind it. */
struct heads {
    struct arena *mem;
    struct map by_key; /* "writer/tenant" → struct chain_head */
    struct chain_head **order;
    size_t n, cap;
};

static struct chain_head *head_of(struct heads *h, int64_t writer, struct str tenant)
{
    struct str key = arena_printf(h->mem, "%" PRId64 "/%.*s", writer, STR_ARG(tenant));
    struct chain_head *head = map_get(&h->by_key, key);
    if (head)
        return head;
    head = arena_new_of(h->mem, struct chain_head);
    head->writer = writer;
    head->tenant = arena_dup(h->mem, tenant);
    map_put(&h->by_key, key, head);
    if (h->n == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 16;
        h->order = xrealloc(h->order, h->cap * sizeof(struct chain_head *));
    }
    h->order[h->n++] = head;
    return head;
}

static bool heads_folded(struct pg_store *s, struct heads *h, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_run(s, PG_FOLD_HEADS, NULL, &res, err))
        return false;
    for (int i = 0; i < PQntuples(res); i++) {
        struct pg_row r = {.res = res, .row = i, .mem = h->mem};
        struct str tenant = pg_peek_bytes(&r);
        struct chain_head *head = head_of(h, pg_get_int(&r), tenant);
        head->seq = pg_get_int(&r);
        head->last_id = pg_get_int(&r);
        pg_get_sha(&r, head->mac);
    }
    PQclear(res);
    return true;
}

static bool heads_tail(struct pg_store *s, struct heads *h, const struct pg_tail *tail,
                       struct error *err)
{
    struct chain_head *head = NULL;
    struct pg_events c;
    struct event_row e;
    bool found = true, ok;
    pg_events_open(s, &c, tail->mark + 1, tail->last_id);
    while ((ok = pg_events_next(&c, &e, &found, err)) && found) {
        if (!head || !str_eq(head->tenant, e.tenant))
            head = head_of(h, tail->writer, e.tenant);
        head->last_id = e.id;
        head->seq = e.seq;
        memcpy(head->mac, e.mac, sizeof(head->mac));
    }
    pg_events_close(&c);
    return ok;
}

static bool heads_gather(struct pg_store *s, struct heads *h, struct error *err)
{
    struct pg_tail *tails = NULL;
    size_t n = 0;
    if (!heads_folded(s, h, err) || !pg_tails(s, -1, h->mem, &tails, &n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!heads_tail(s, h, &tails[i], err))
            return false;
    return true;
}

bool pg_chain_heads(struct store *store, struct arena *mem, struct chain_head **ret_heads,
                    size_t *ret_n, struct error *err)
{
    struct pg_store *s = pg_of(store);
    struct heads h = {.mem = mem};
    if (!pg_ready(s, err))
        return false;
    bool ok =
        pg_exec_text(s, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "reading", NULL, err) &&
        heads_gather(s, &h, err);
    pg_rollback(s);
    if (ok) {
        struct chain_head *heads = arena_zalloc(mem, h.n * sizeof(*heads) + 1);
        for (size_t i = 0; i < h.n; i++)
            heads[i] = *h.order[i];
        qsort(heads, h.n, sizeof(*heads), chain_head_order);
        *ret_heads = heads;
        *ret_n = h.n;
    }
    map_release(&h.by_key);
    free(h.order);
    return ok;
}
