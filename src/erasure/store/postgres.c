/* SPDX-License-Identifier: Apache-2.0 */
/* Erasures in PostgreSQL.  Functions of the schema do the work; autovacuum takes the old versions of
 * rows out of the files. */
#include "erasure/store/impl.h"

#include "base/clock.h"
#include "store/postgres_impl.h"

enum pg_erasure_statement {
    PG_ERASURE_BEGIN = PG_COUNT + ERASURE_STATEMENTS,
    PG_ERASURE_MOVE,
    PG_ERASURE_ROWS,
    PG_ERASURE_AUTHORS,
    PG_ERASURE_NAMES,
    PG_ERASURE_DONE,
};

static const struct sql_text texts[] = {
    {PG_ERASURE_BEGIN,
     PG_VERB("hf_erasure_begin(ROW($1::uuid, $2::text, $3::uuid, $4::text, $5::text, $6::text, "
             "$7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::timestamptz, "
             "$13::timestamptz, $14::timestamptz)::mcp.audit_erasures, $15::timestamptz)",
             "$16")},
    {PG_ERASURE_MOVE, PG_VERB("hf_erasure_move($1::uuid, $2::bigint, $3::bigint, $4::bigint, "
                              "$5::bigint, $6::timestamptz)",
                              "$7")},
    {PG_ERASURE_ROWS,
     PG_VERB("hf_erasure_rows($1::uuid, $2::text, $3::uuid, $4::bigint, $5::timestamptz)", "$6")},
    {PG_ERASURE_AUTHORS,
     PG_VERB("hf_erasure_authors($1::text, $2::text, $3::uuid, $4::uuid)", "$5")},
    {PG_ERASURE_NAMES,
     PG_VERB("hf_erasure_names($1::uuid, $2::text, $3::uuid, $4::timestamptz)", "$5")},
    {PG_ERASURE_DONE, PG_VERB("hf_erasure_done($1::uuid, $2::bigint, $3::timestamptz)", "$4")},
    {0},
};

static void begin(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    pg_row_params(p, &sql_erasure, op->row, NULL);
    pg_instant(p, now_ms);
}

static void move(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct erasure_move *m = op->row;
    pg_uuid(p, m->id);
    pg_int(p, m->from);
    pg_int(p, m->to);
    pg_int(p, m->bodies);
    pg_int(p, m->body_bytes);
    pg_instant(p, now_ms);
}

static void rows(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct erasure_rows *row = op->row;
    pg_uuid(p, row->id);
    pg_text(p, row->tenant);
    pg_uuid(p, row->user_id);
    pg_int(p, row->most);
    pg_instant(p, now_ms);
}

static void authors(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct erasure_authors *a = op->row;
    pg_text(p, a->author);
    pg_text(p, a->folder);
    pg_uuid(p, a->from);
    pg_uuid(p, a->upto);
}

static void names(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct erasure_row *row = op->row;
    pg_uuid(p, row->id);
    pg_text(p, row->tenant);
    pg_uuid(p, row->user_id);
    pg_instant(p, now_ms);
}

static void done(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct erasure_row *row = op->row;
    pg_uuid(p, row->id);
    pg_int(p, row->held);
    pg_instant(p, now_ms);
}

static const struct pg_verb ops[] = {
    {OP_ERASURE_BEGIN, PG_ERASURE_BEGIN, begin, NULL},
    {OP_ERASURE_MOVE, PG_ERASURE_MOVE, move, NULL},
    {OP_ERASURE_ROWS, PG_ERASURE_ROWS, rows, NULL},
    {OP_ERASURE_AUTHORS, PG_ERASURE_AUTHORS, authors, NULL},
    {OP_ERASURE_NAMES, PG_ERASURE_NAMES, names, NULL},
    {OP_ERASURE_DONE, PG_ERASURE_DONE, done, NULL},
    {0},
};

static bool clean(struct store *store unused_arg, struct store_call *c,
                  struct error *err unused_arg)
{
    *(bool *)c->ret = true;
    return true;
}

static const struct verb_handler verbs[] = {
    {VERB_ERASURE_CLEAN, clean},
    {0},
};

const struct postgres_family erasure_postgres = {.texts = texts, .ops = ops, .verbs = verbs};
