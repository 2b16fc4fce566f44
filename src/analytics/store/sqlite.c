/* SPDX-License-Identifier: Apache-2.0 */
/* Analytics in SQLite.  One connection writes, so the rollups have no writer (0). */
#include "analytics/store/impl.h"

#include "store/sqlite_impl.h"

enum sq_analytics_statement {
    SQ_ROLLUP_GET = SQ_COUNT + ANALYTICS_STATEMENTS,
    SQ_ROLLUPS_COUNT,
    SQ_ROLLUP_PUT,
    SQ_ROLLUP_LABEL,
    SQ_ROLLUPS_AGE,
};

static const struct sql_text texts[] = {
    {SQ_ROLLUP_GET, "SELECT cells FROM analytics_rollups WHERE tenant_id = ? AND step = ? AND "
                    "span = ? AND label = ? AND writer = 0"},
    {SQ_ROLLUPS_COUNT, "SELECT count(*) FROM analytics_rollups WHERE tenant_id = ? AND step = 2 "
                       "AND span = ?"},
    {SQ_ROLLUP_PUT, "INSERT INTO analytics_rollups (tenant_id, step, span, label, writer, cells) "
                    "VALUES (?,?,?,?,0,?) ON CONFLICT (tenant_id, step, span, label, writer) DO "
                    "UPDATE SET cells = excluded.cells"},
    {SQ_ROLLUP_LABEL, "INSERT INTO analytics_labels (id, server, tool, client, owner, era, "
                      "carrier) VALUES (?,?,?,?,?,?,?) ON CONFLICT (id) DO NOTHING"},
    {SQ_ROLLUPS_AGE,
     "DELETE FROM analytics_rollups WHERE tenant_id = ?1 AND step = ?2 AND span < ?3 AND "
     "(span, label, writer) IN (SELECT span, label, writer FROM analytics_rollups WHERE "
     "tenant_id = ?1 AND step = ?2 AND span < ?3 ORDER BY span, label, writer LIMIT ?4)"},
    {0},
};

static void bind_key(struct sq_bind *b, const struct rollup *row)
{
    sq_text(b, row->labels->tenant);
    sq_int(b, row->step);
    sq_int(b, row->span);
    sq_int(b, row->label);
}

static bool load(void *arg, struct rollup **rows, size_t n, struct arena *mem, struct error *err)
{
    struct sqlite_store *s = arg;
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        sqlite3_stmt *st = sq_prepare(s, SQ_ROLLUP_GET, err);
        if (!st)
            return false;
        struct sq_bind b = {.st = st};
        bind_key(&b, rows[i]);
        if (!sq_step(s, st, &found, err))
            return false;
        struct sq_row r = {.st = st, .mem = mem};
        if (found)
            rows[i]->cells = sq_get_bytes(&r);
        sq_reset(st);
    }
    return true;
}

static bool count_day(void *arg, struct str tenant, int64_t span, int64_t *ret, struct error *err)
{
    struct sqlite_store *s = arg;
    bool found = false;
    sqlite3_stmt *st = sq_prepare(s, SQ_ROLLUPS_COUNT, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, tenant);
    sq_int(&b, span);
    if (!sq_step(s, st, &found, err))
        return false;
    struct sq_row r = {.st = st};
    *ret = sq_get_int(&r);
    sq_reset(st);
    return true;
}

static bool save_label(struct sqlite_store *s, const struct rollup *row, struct error *err)
{
    const struct counted_labels *l = row->labels;
    sqlite3_stmt *st = sq_prepare(s, SQ_ROLLUP_LABEL, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_int(&b, row->label);
    sq_text(&b, l->server);
    sq_text(&b, l->tool);
    sq_text(&b, l->client);
    sq_text(&b, l->owner);
    sq_text(&b, l->era);
    sq_text(&b, l->carrier);
    return sq_run(s, st, err);
}

static bool save(void *arg, struct rollup **rows, size_t n, struct arena *mem unused_arg,
                 struct error *err)
{
    struct sqlite_store *s = arg;
    for (size_t i = 0; i < n; i++) {
        sqlite3_stmt *st = sq_prepare(s, SQ_ROLLUP_PUT, err);
        if (!st)
            return false;
        struct sq_bind b = {.st = st};
        bind_key(&b, rows[i]);
        sq_blob(&b, rows[i]->cells);
        if (!sq_run(s, st, err) || (rows[i]->step == STEP_1D && !save_label(s, rows[i], err)))
            return false;
    }
    return true;
}

static bool count_calls(struct sqlite_store *s, const struct counted_call *calls, size_t n,
                        struct error *err)
{
    const struct rollup_io io = {.arg = s, .load = load, .count = count_day, .save = save};
    return rollup_fold(&io, calls, n, err);
}

static bool rollups_age(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct rollup_age *a = op->row;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_ROLLUPS_AGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, a->tenant);
    sq_int(&b, a->step);
    sq_int(&b, a->before);
    sq_int(&b, a->most);
    return sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err);
}

static const struct sq_op ops[] = {
    {OP_ROLLUPS_AGE, rollups_age},
    {0},
};

/* Rows are as small here as packed ones, and a packed row would need pages of its own. */
static bool rollups_pack(struct store *store unused_arg, struct store_call *c,
                         struct error *err unused_arg)
{
    *(bool *)c->ret = false;
    return true;
}

static const struct verb_handler verbs[] = {
    {VERB_ROLLUPS_PACK, rollups_pack},
    {0},
};

const struct sqlite_family analytics_sqlite = {
    .texts = texts, .ops = ops, .verbs = verbs, .count = count_calls};
