/* SPDX-License-Identifier: Apache-2.0 */
/* Analytics in PostgreSQL.  The rollups of a writer are its own: only one process at a time folds its
 * events, so the folds of several nodes never wait for each other here.  Readers add them up. */
#include "analytics/store/impl.h"

#include "analytics/store/packed.h"
#include "store/postgres_impl.h"

enum pg_analytics_statement {
    PG_ROLLUPS_GET = PG_COUNT + ANALYTICS_STATEMENTS,
    PG_ROLLUPS_COUNT,
    PG_ROLLUPS_PUT,
    PG_ROLLUP_LABELS,
    PG_ROLLUPS_AGE,
    PG_ROLLUPS_MAY_PACK,
    PG_ROLLUPS_TAKE,
};

static const struct sql_text texts[] = {
    {PG_ROLLUPS_GET,
     "SELECT k.n, r.cells FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) "
     "WITH ORDINALITY k (tenant_id, step, span, label, n) JOIN mcp.analytics_rollups r "
     "ON r.tenant_id = k.tenant_id AND r.step = k.step::integer AND r.span = k.span::integer "
     "AND r.label = k.label AND r.writer = $5::bigint::integer FOR UPDATE OF r"},
    {PG_ROLLUPS_COUNT, "SELECT count(*) FROM mcp.analytics_rollups WHERE tenant_id = $1::text "
                       "AND step = 2 AND span = $2::bigint::integer AND writer = "
                       "$3::bigint::integer"},
    {PG_ROLLUPS_PUT,
     "INSERT INTO mcp.analytics_rollups (tenant_id, step, span, label, writer, cells) "
     "SELECT tenant_id, step, span, label, $6::bigint, cells FROM unnest($1::text[], "
     "$2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) k (tenant_id, step, span, label, "
     "cells) ON CONFLICT (tenant_id, step, span, label, writer) DO UPDATE SET cells = "
     "excluded.cells"},
    /* In the order of their ids, so that two concurrent folds do not deadlock. */
    {PG_ROLLUP_LABELS,
     "INSERT INTO mcp.analytics_labels (id, server, tool, client, owner, era, carrier) "
     "SELECT k.* FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], "
     "$6::text[], $7::text[]) k (id, server, tool, client, owner, era, carrier) WHERE NOT EXISTS "
     "(SELECT FROM mcp.analytics_labels l WHERE l.id = k.id) ORDER BY k.id ON CONFLICT DO "
     "NOTHING"},
    {PG_ROLLUPS_AGE,
     PG_VERB("hf_rollups_age($1::text, $2::bigint::integer, $3::bigint::integer, $4::bigint)",
             "$5")},
    /* One node packs at a time. */
    {PG_ROLLUPS_MAY_PACK, "SELECT pg_try_advisory_xact_lock(hashtextextended('mcp.analytics', 0))"},
    {PG_ROLLUPS_TAKE,
     "WITH d AS (SELECT min(span) / 288 * 288 AS day FROM mcp.analytics_rollups WHERE tenant_id = "
     "$1::text AND step = 1 AND writer >= 0 AND span < $2::bigint), "
     "l AS (SELECT DISTINCT r.label FROM mcp.analytics_rollups r, d WHERE r.tenant_id = $1 AND "
     "r.step = 1 AND r.writer >= 0 AND r.span >= d.day AND r.span < d.day + 288 "
     "ORDER BY r.label LIMIT $3::bigint) "
     "DELETE FROM mcp.analytics_rollups r USING d, l WHERE r.tenant_id = $1 AND r.step = 1 AND "
     "r.span >= d.day AND r.span < d.day + 288 AND r.label = l.label "
     "RETURNING r.label, r.span, r.cells"},
    {0},
};

struct counting {
    struct pg_store *s;
    int64_t writer;
};

static bool run(struct pg_store *s, unsigned which, const struct pg_params *p, PGresult **ret,
                struct error *err)
{
    PGresult *res = NULL;
    if (!pg_prepare(s, which, err) || !pg_run(s, which, p, &res, err))
        return false;
    if (ret)
        *ret = res;
    else
        pq.clear(res);
    return true;
}

static void add_keys(struct pg_params *p, struct rollup **rows, size_t n, struct arena *mem)
{
    struct str *tenants = arena_alloc(mem, (n + 1) * sizeof(*tenants));
    int64_t *numbers[3];
    for (size_t i = 0; i < countof(numbers); i++)
        numbers[i] = arena_alloc(mem, (n + 1) * sizeof(int64_t));
    for (size_t i = 0; i < n; i++) {
        tenants[i] = pg_cleaned(mem, rows[i]->labels->tenant);
        numbers[0][i] = rows[i]->step;
        numbers[1][i] = rows[i]->span;
        numbers[2][i] = rows[i]->label;
    }
    pg_texts_of(p, tenants, n, mem);
    for (size_t i = 0; i < countof(numbers); i++)
        pg_ints(p, numbers[i], n, mem);
}

static bool load(void *arg, struct rollup **rows, size_t n, struct arena *mem, struct error *err)
{
    const struct counting *c = arg;
    struct pg_params p = {0};
    PGresult *res = NULL;
    add_keys(&p, rows, n, mem);
    pg_int(&p, c->writer);
    if (!run(c->s, PG_ROLLUPS_GET, &p, &res, err))
        return false;
    for (int i = 0; i < pq.ntuples(res); i++) {
        struct pg_row r = {.res = res, .mem = mem, .row = i};
        int64_t at = pg_get_int(&r);
        if (at >= 1 && (size_t)at <= n)
            rows[at - 1]->cells = pg_get_bytes(&r);
    }
    pq.clear(res);
    return true;
}

static bool count_day(void *arg, struct str tenant, int64_t span, int64_t *ret, struct error *err)
{
    const struct counting *c = arg;
    struct arena *mem = arena_new(4096);
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, pg_cleaned(mem, tenant));
    pg_int(&p, span);
    pg_int(&p, c->writer);
    bool ok = run(c->s, PG_ROLLUPS_COUNT, &p, &res, err);
    if (ok) {
        struct pg_row r = {.res = res};
        *ret = pg_get_int(&r);
        pq.clear(res);
    }
    arena_free(mem);
    return ok;
}

static bool save_labels(struct pg_store *s, struct rollup **rows, size_t n, struct arena *mem,
                        struct error *err)
{
    int64_t *ids = arena_alloc(mem, (n + 1) * sizeof(*ids));
    struct str *columns[6];
    struct pg_params p = {0};
    size_t k = 0;
    for (size_t i = 0; i < countof(columns); i++)
        columns[i] = arena_alloc(mem, (n + 1) * sizeof(struct str));
    for (size_t i = 0; i < n; i++) {
        const struct counted_labels *l = rows[i]->labels;
        const struct str label_texts[] = {l->server, l->tool, l->client,
                                          l->owner,  l->era,  l->carrier};
        if (rows[i]->step != STEP_1D)
            continue;
        for (size_t t = 0; t < countof(columns); t++)
            columns[t][k] = pg_cleaned(mem, label_texts[t]);
        ids[k++] = rows[i]->label;
    }
    pg_ints(&p, ids, k, mem);
    for (size_t i = 0; i < countof(columns); i++)
        pg_texts_of(&p, columns[i], k, mem);
    return k == 0 || run(s, PG_ROLLUP_LABELS, &p, NULL, err);
}

static bool save(void *arg, struct rollup **rows, size_t n, struct arena *mem, struct error *err)
{
    const struct counting *c = arg;
    struct str *cells = arena_alloc(mem, (n + 1) * sizeof(*cells));
    struct pg_params p = {0};
    for (size_t i = 0; i < n; i++)
        cells[i] = rows[i]->cells;
    add_keys(&p, rows, n, mem);
    pg_blobs_of(&p, cells, n, mem);
    pg_int(&p, c->writer);
    return save_labels(c->s, rows, n, mem, err) && run(c->s, PG_ROLLUPS_PUT, &p, NULL, err);
}

static bool count_calls(struct pg_store *s, int64_t writer, const struct counted_call *calls,
                        size_t n, struct arena *mem unused_arg, struct error *err)
{
    struct counting c = {.s = s, .writer = writer};
    const struct rollup_io io = {.arg = &c, .load = load, .count = count_day, .save = save};
    return rollup_fold(&io, calls, n, err);
}

static void rollups_age(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct rollup_age *a = op->row;
    pg_text(p, a->tenant);
    pg_int(p, a->step);
    pg_int(p, a->before);
    pg_int(p, a->most);
}

static const struct pg_verb ops[] = {
    {OP_ROLLUPS_AGE, PG_ROLLUPS_AGE, rollups_age, NULL},
    {0},
};

/* Packing. */

static bool may_pack(struct pg_store *s, bool *ret, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    if (!run(s, PG_ROLLUPS_MAY_PACK, &p, &res, err))
        return false;
    struct pg_row r = {.res = res};
    *ret = pg_get_bool(&r);
    pq.clear(res);
    return true;
}

static bool take_hours(struct pg_store *s, const struct store_call *c, struct packing *packing,
                       struct arena *mem, struct error *err)
{
    struct pg_params p = {0};
    PGresult *res = NULL;
    pg_text(&p, c->tenant);
    pg_int(&p, c->number);
    pg_int(&p, c->limit);
    if (!run(s, PG_ROLLUPS_TAKE, &p, &res, err))
        return false;
    for (int i = 0; i < pq.ntuples(res); i++) {
        struct pg_row r = {.res = res, .mem = mem, .row = i};
        int64_t label = pg_get_int(&r), span = pg_get_int(&r);
        packing_add(packing, label, span, pg_get_bytes(&r));
    }
    pq.clear(res);
    return true;
}

static bool put_packed(struct pg_store *s, struct str tenant, struct packing *packing,
                       bool *ret_any, struct arena *mem, struct error *err)
{
    struct rollup_row *rows;
    size_t n = packing_end(packing, &rows);
    struct counted_labels labels = {.tenant = tenant};
    struct rollup *packed = arena_zalloc(mem, (n + 1) * sizeof(*packed));
    struct rollup **list = arena_zalloc(mem, (n + 1) * sizeof(struct rollup *));
    struct counting c = {.s = s, .writer = ROLLUP_PACKED};
    for (size_t i = 0; i < n; i++) {
        packed[i] = (struct rollup){.labels = &labels,
                                    .label = rows[i].label,
                                    .step = STEP_1H,
                                    .span = rows[i].span,
                                    .cells = rows[i].cells};
        list[i] = &packed[i];
    }
    *ret_any = n > 0;
    return n == 0 || save(&c, list, n, mem, err);
}

static bool pack_day(struct pg_store *s, struct store_call *c, struct arena *mem, struct error *err)
{
    struct packing *packing = packing_new(mem);
    bool may = false;
    return may_pack(s, &may, err) &&
           (!may || (take_hours(s, c, packing, mem, err) &&
                     put_packed(s, c->tenant, packing, c->ret, mem, err)));
}

static bool rollups_pack(struct store *store, struct store_call *c, struct error *err)
{
    struct pg_store *s = pg_of(store);
    *(bool *)c->ret = false;
    if (!pg_ready(s, err) || !pg_exec_text(s, "BEGIN", "beginning", NULL, err))
        return false;
    struct arena *mem = arena_new(SIZE_MAX / 4);
    bool ok = pack_day(s, c, mem, err) && pg_exec_text(s, "COMMIT", "packing", NULL, err);
    arena_free(mem);
    if (!ok)
        pg_rollback(s);
    return ok;
}

static const struct verb_handler verbs[] = {
    {VERB_ROLLUPS_PACK, rollups_pack},
    {0},
};

const struct postgres_family analytics_postgres = {
    .texts = texts, .ops = ops, .verbs = verbs, .count = count_calls};
