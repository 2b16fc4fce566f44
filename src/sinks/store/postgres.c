/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks in PostgreSQL.  Functions of the schema decide the verdicts. */
#include "sinks/store/impl.h"

#include "store/postgres_impl.h"

enum pg_sink_statement {
    PG_SINK_TAKE = PG_COUNT + SINK_STATEMENTS,
    PG_SINK_SAVE,
};

static const struct sql_text texts[] = {
    {PG_SINK_TAKE, PG_VERB("hf_sink_take($1::text, $2::bigint, $3::bigint, $4::boolean)", "$5")},
    {PG_SINK_SAVE, PG_VERB("hf_sink_save($1::text, $2::bigint, $3::bigint, $4::text)", "$5")},
    {0},
};

static void add_lease(struct pg_params *p, const struct sink_claim *c)
{
    pg_text(p, c->name);
    pg_int(p, c->writer);
    pg_int(p, c->lease_ms);
}

static void sink_take(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct sink_claim *c = op->row;
    add_lease(p, c);
    pg_bool(p, c->is_alone);
}

static void sink_save(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct sink_claim *c = op->row;
    add_lease(p, c);
    pg_text(p, c->position);
}

static const struct pg_verb ops[] = {
    {OP_SINK_TAKE, PG_SINK_TAKE, sink_take, NULL},
    {OP_SINK_SAVE, PG_SINK_SAVE, sink_save, NULL},
    {0},
};
static const struct verb_handler verbs[] = {{0}};

const struct postgres_family sink_postgres = {.texts = texts, .ops = ops, .verbs = verbs};
