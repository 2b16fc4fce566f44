/* SPDX-License-Identifier: Apache-2.0 */
/* Templates in PostgreSQL.  Functions of the schema decide the verdicts, under a lock of the
 * table. */
#include "templates/store/impl.h"

#include "store/postgres_impl.h"

enum pg_template_statement {
    PG_TEMPLATE_PUT = PG_COUNT + TEMPLATE_STATEMENTS,
    PG_TEMPLATE_REMOVE,
};

static const struct sql_text texts[] = {
    {PG_TEMPLATE_PUT,
     "SELECT mcp.hf_require(v.ret_verdict, $9::boolean), v.ret_version FROM "
     "mcp.hf_template_put(ROW($1::text, $2::text, NULL, $3::timestamptz, $4::text, "
     "$5::text)::mcp.session_templates, $6::bigint, $7::bigint, $8::bigint) v"},
    {PG_TEMPLATE_REMOVE, PG_VERB("hf_template_remove($1::text, $2::text, $3::bigint)", "$4")},
    {0},
};

static void template_put(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct template_change *c = op->row;
    pg_text(p, c->row.tenant);
    pg_text(p, c->row.name);
    pg_instant(p, c->row.created_ms);
    pg_text(p, c->row.created_by);
    pg_text(p, c->row.spec);
    pg_int(p, c->expected);
    pg_int(p, TEMPLATES_MAX);
    pg_int(p, TEMPLATE_VERSIONS_MAX);
}

static void template_was_put(struct pg_row *r, const struct store_op *op)
{
    struct template_change *c = op->row;
    c->row.version = pg_get_int(r);
}

static void template_remove(struct pg_params *p, const struct store_op *op,
                            int64_t now_ms unused_arg)
{
    const struct template_change *c = op->row;
    pg_text(p, c->row.tenant);
    pg_text(p, c->row.name);
    pg_int(p, c->expected);
}

static const struct pg_verb ops[] = {
    {OP_TEMPLATE_PUT, PG_TEMPLATE_PUT, template_put, template_was_put},
    {OP_TEMPLATE_REMOVE, PG_TEMPLATE_REMOVE, template_remove, NULL},
    {0},
};

static const struct verb_handler verbs[] = {{0}};

const struct postgres_family template_postgres = {.texts = texts, .ops = ops, .verbs = verbs};
