/* SPDX-License-Identifier: Apache-2.0 */
/* Retention in PostgreSQL.  Autovacuum makes the space of deleted segments usable again. */
#include "retention/store/impl.h"

#include "store/postgres_impl.h"

enum pg_retention_statement {
    PG_RETENTION_BEGIN = PG_COUNT + RETENTION_STATEMENTS,
    PG_SEGMENT_DROP,
    PG_SEGMENT_PUT,
    PG_SEGMENTS,
    PG_REMOVED_PUT,
    PG_TALLY_ADD,
    PG_EXECUTIONS_GONE,
};

static const struct sql_text texts[] = {
    {PG_RETENTION_BEGIN, PG_VERB("hf_retention_begin($1::bigint)", "$2")},
    {PG_SEGMENT_DROP, PG_VERB("hf_segment_drop($1::bigint)", "$2")},
    {PG_SEGMENT_PUT,
     PG_VERB("hf_segment_put($1::bigint, $2::integer, $3::bytea, $4::bytea)", "$5")},
    {PG_SEGMENTS, "SELECT id, n, records, CASE WHEN $3::boolean THEN bodies END FROM mcp.events "
                  "WHERE id >= $1::bigint AND id <= $2::bigint AND (NOT $4::boolean OR "
                  "coalesce(length(bodies), 0) > 0) ORDER BY id LIMIT $5::bigint"},
    {PG_REMOVED_PUT, PG_VERB("hf_removed_put(ROW($1::bigint, $2::text, $3::bigint, $4::bigint, "
                             "$5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint, "
                             "$10::bigint, $11::bigint, $12::text, $13::bytea, $14::bytea, "
                             "$15::bytea)::mcp.audit_removed)",
                             "$16")},
    {PG_TALLY_ADD, PG_VERB("hf_tally_add(ROW($1::integer, $2::text, $3::bigint, $4::bigint, "
                           "$5::bigint, $6::bigint)::mcp.audit_tallies)",
                           "$7")},
    {PG_EXECUTIONS_GONE, PG_VERB("hf_executions_gone($1::uuid[], $2::uuid[])", "$3")},
    {0},
};

static void begin(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_int(p, ((const struct retention_state *)op->row)->version);
}

static void segment_drop(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_int(p, ((const struct segment_row *)op->row)->id);
}

static void segment_put(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct segment_row *row = op->row;
    pg_int(p, row->id);
    pg_int4(p, (int32_t)row->n);
    pg_bytes(p, row->records);
    pg_bytes(p, row->bodies);
}

static void removed_put(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_row_params(p, &sql_removed, op->row, NULL);
}

static void tally_add(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct tally_row *row = op->row;
    pg_int4(p, row->kind);
    pg_text(p, row->tenant);
    pg_int(p, row->at);
    pg_int(p, row->events);
    pg_int(p, row->bytes);
    pg_int(p, row->body_bytes);
}

static void uuids(struct pg_params *p, const int64_t *ids, size_t n, struct arena *mem)
{
    struct str *texts_of = arena_alloc(mem, (n + 1) * sizeof(*texts_of));
    for (size_t i = 0; i < n; i++) {
        char *text = arena_alloc(mem, EXECUTION_UUID_TEXT);
        execution_uuid(ids[i], text);
        texts_of[i] = str_of(text);
    }
    pg_uuids(p, texts_of, n, mem);
}

static void removed_uuids(struct pg_params *p, const struct executions_gone *row)
{
    int64_t *ids = arena_alloc(row->mem, (row->n_removed + 1) * sizeof(*ids));
    for (size_t i = 0; i < row->n_removed; i++)
        ids[i] = row->removed[i].exec;
    uuids(p, ids, row->n_removed, row->mem);
}

static void executions_gone(struct pg_params *p, const struct store_op *op,
                            int64_t now_ms unused_arg)
{
    const struct executions_gone *row = op->row;
    removed_uuids(p, row);
    uuids(p, row->bodies, row->n_bodies, row->mem);
}

static const struct pg_verb ops[] = {
    {OP_RETENTION_BEGIN, PG_RETENTION_BEGIN, begin, NULL},
    {OP_SEGMENT_DROP, PG_SEGMENT_DROP, segment_drop, NULL},
    {OP_SEGMENT_PUT, PG_SEGMENT_PUT, segment_put, NULL},
    {OP_REMOVED_PUT, PG_REMOVED_PUT, removed_put, NULL},
    {OP_TALLY_ADD, PG_TALLY_ADD, tally_add, NULL},
    {OP_EXECUTIONS_GONE, PG_EXECUTIONS_GONE, executions_gone, NULL},
    {0},
};

#define STEP_LEAST 8
#define STEP_MOST 64 /* rows */

/* The next step: as many rows as there were, while they are small. */
static unsigned next_step(unsigned left, size_t n, size_t bytes)
{
    size_t step = bytes < SEGMENT_PAGE_BYTES / 16 ? n : STEP_LEAST;
    step = step < STEP_LEAST ? STEP_LEAST : step > STEP_MOST ? STEP_MOST : step;
    return step < left ? (unsigned)step : left;
}

/* Reads one page.  PostgreSQL's limit is by rows, so large segments are asked for in steps. */
static bool segments(struct store *store, struct store_call *c, struct error *err)
{
    const struct segment_page *page = c->filter;
    struct segment_row *rows = arena_zalloc(c->mem, c->limit * sizeof(*rows));
    size_t n = 0, bytes = 0, events = 0, most = page->events ? page->events : SIZE_MAX;
    int64_t from = page->from;
    for (unsigned step = 0, got = 0;
         got == step && n < c->limit && bytes < SEGMENT_PAGE_BYTES && events < most;) {
        struct pg_params p = {0};
        PGresult *res = NULL;
        step = next_step(c->limit - (unsigned)n, n, bytes);
        pg_int(&p, from);
        pg_int(&p, page->upto);
        pg_bool(&p, page->with_bodies);
        pg_bool(&p, page->only_bodies);
        pg_int(&p, step);
        if (!pg_query(pg_of(store), PG_SEGMENTS, &p, &res, err))
            return false;
        got = (unsigned)pq.ntuples(res);
        for (unsigned i = 0; i < got && n < c->limit && events < most; i++, n++) {
            struct pg_row r = {.res = res, .mem = c->mem, .row = (int)i};
            rows[n].id = pg_get_int(&r);
            rows[n].n = (size_t)pg_get_int(&r);
            rows[n].records = pg_get_bytes(&r);
            rows[n].bodies = pg_get_bytes(&r);
            bytes += rows[n].records.n + rows[n].bodies.n;
            events += rows[n].n;
            from = rows[n].id + 1;
        }
        pq.clear(res);
    }
    c->rows = rows;
    c->n = n;
    return true;
}

static bool no_file(struct store *store unused_arg, struct store_call *c,
                    struct error *err unused_arg)
{
    if (c->ret)
        *(struct file_space *)c->ret = (struct file_space){0};
    return true;
}

static const struct verb_handler verbs[] = {
    {VERB_SEGMENTS, segments},
    {VERB_FILE_SPACE, no_file},
    {VERB_FILE_SHRINK, no_file},
    {0},
};

const struct postgres_family retention_postgres = {.texts = texts, .ops = ops, .verbs = verbs};
