/* SPDX-License-Identifier: Apache-2.0 */
/* Holds in PostgreSQL.  Functions of the schema decide the verdicts. */
#include "holds/store/impl.h"

#include "store/postgres_impl.h"

enum pg_hold_statement {
    PG_HOLD_PUT = PG_COUNT + HOLD_STATEMENTS,
    PG_HOLD_RELEASE,
};

static const struct sql_text texts[] = {
    {PG_HOLD_PUT, PG_VERB("hf_hold_put(ROW($1::uuid, $2::text, $3::integer, $4::uuid, $5::text, "
                          "$6::text, $7::timestamptz, NULL, NULL)::mcp.audit_holds, $8::bigint)",
                          "$9")},
    {PG_HOLD_RELEASE,
     PG_VERB("hf_hold_release($1::uuid, $2::text, $3::timestamptz, $4::text, $5::bigint)", "$6")},
    {0},
};

static void hold_put(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct hold_row *row = op->row;
    pg_own_uuid(p, row->id);
    pg_text(p, row->tenant);
    pg_int4(p, row->kind);
    pg_uuid(p, row->target);
    pg_text(p, row->reason);
    pg_text(p, row->made_by);
    pg_instant(p, row->created_ms);
    pg_int(p, HOLDS_MAX);
}

static void hold_release(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct hold_row *row = op->row;
    pg_uuid(p, row->id);
    pg_text(p, row->tenant);
    pg_instant(p, row->released_ms);
    pg_text(p, row->released_by);
    pg_int(p, HOLDS_RELEASED_KEPT);
}

static const struct pg_verb ops[] = {
    {OP_HOLD_PUT, PG_HOLD_PUT, hold_put, NULL},
    {OP_HOLD_RELEASE, PG_HOLD_RELEASE, hold_release, NULL},
    {0},
};

static const struct verb_handler verbs[] = {{0}};

const struct postgres_family hold_postgres = {.texts = texts, .ops = ops, .verbs = verbs};
