/* SPDX-License-Identifier: Apache-2.0 */
/* Shares and bindings in PostgreSQL.  Functions of the schema (sql/postgres) decide the verdicts,
 * under the lock of the session or share. */
#include "session/share_store/impl.h"
#include "store/postgres_impl.h"

enum pg_sharing_statement {
    PG_SHARE_CREATE = PG_COUNT + SHARING_STATEMENTS,
    PG_SHARE_END,
    PG_SHARE_JOIN,
    PG_BINDING_DROP,
    PG_SHARES_UPTO,
    PG_SHARES_REAP,
};

static const struct sql_text texts[] = {
    {PG_SHARE_CREATE,
     PG_VERB("hf_share_create(ROW($1::uuid, $2::text, $3::uuid, $4::text, $5::text, $6::integer, "
             "$7::timestamptz, $8::timestamptz, $9::bigint, NULL, NULL, NULL, NULL, "
             "$10::bytea)::mcp.session_shares, $11::boolean, $12::bigint, $13::bigint, "
             "$14::timestamptz)",
             "$15")},
    {PG_SHARE_END, PG_VERB("hf_share_end($1::uuid, $2::uuid, $3::text, $4::text, $5::boolean, "
                           "$6::timestamptz, $7::text)",
                           "$8")},
    {PG_SHARE_JOIN,
     PG_VERB("hf_share_join($1::uuid, $2::uuid, $3::text, $4::text, $5::timestamptz, $6::text, "
             "$7::text, $8::bytea, $9::timestamptz)",
             "$10")},
    {PG_BINDING_DROP,
     PG_VERB("hf_binding_drop($1::text, $2::text, $3::text, $4::bytea, $5::uuid)", "$6")},
    /* The last of the next $2 sessions after $1, and how many there are. */
    {PG_SHARES_UPTO,
     "WITH RECURSIVE s(id) AS ((SELECT session_id FROM mcp.session_shares WHERE session_id > "
     "$1::uuid ORDER BY session_id LIMIT 1) UNION ALL SELECT (SELECT session_id FROM "
     "mcp.session_shares WHERE session_id > s.id ORDER BY session_id LIMIT 1) FROM s "
     "WHERE s.id IS NOT NULL) SELECT x.id::text, count(*) OVER () FROM (SELECT id FROM s "
     "LIMIT $2::bigint) x WHERE x.id IS NOT NULL ORDER BY x.id DESC LIMIT 1"},
    {PG_SHARES_REAP,
     "DELETE FROM mcp.session_shares r WHERE session_id > $1::uuid AND session_id <= $2::uuid "
     "AND NOT EXISTS (SELECT FROM mcp.edge_mcp_sessions e WHERE e.id = r.session_id "
     "AND e.status IN ('active', 'idle'))"},
    {0},
};

static void share_create(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    static const uint8_t no_code[32];
    const struct share_row *r = op->row;
    bool has_code = memcmp(r->code_hash, no_code, sizeof(no_code)) != 0;

    pg_own_uuid(p, r->id);
    pg_text(p, op->who->tenant);
    pg_uuid(p, r->session_id);
    pg_text(p, op->who->owner);
    pg_text(p, r->grantee);
    pg_int4(p, r->may);
    pg_instant(p, r->created_ms);
    pg_time(p, r->expires_ms);
    pg_int(p, r->access_ms);
    pg_bytes(p, has_code ? str_n((const char *)r->code_hash, sizeof(no_code)) : STR_NONE);
    pg_bool(p, op->who->tenant_wide);
    pg_int(p, SHARES_LIVE_MAX);
    pg_int(p, SHARES_ENDED_KEPT);
    pg_instant(p, now_ms);
}

static void share_end(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct share_row *r = op->row;

    pg_uuid(p, r->id);
    pg_uuid(p, r->session_id);
    pg_text(p, op->who->tenant);
    pg_text(p, op->who->owner);
    pg_bool(p, op->who->tenant_wide);
    pg_instant(p, r->ended_ms);
    pg_text(p, r->end_reason);
}

static void share_join(struct pg_params *p, const struct store_op *op, int64_t now_ms)
{
    const struct share_join *j = op->row;

    pg_uuid(p, j->id);
    pg_uuid(p, j->session_id);
    pg_text(p, op->who->tenant);
    pg_text(p, op->who->owner);
    pg_instant(p, j->at_ms);
    pg_text(p, j->client);
    pg_text(p, j->carrier);
    pg_bytes(p, j->carrier_key);
    pg_instant(p, now_ms);
}

static void binding_drop(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct binding_row *b = op->row;

    pg_text(p, op->who->tenant);
    pg_text(p, op->who->owner);
    pg_text(p, b->carrier);
    pg_bytes(p, b->carrier_key);
    pg_uuid(p, b->share_id);
}

static const struct pg_verb ops[] = {
    {OP_SHARE_CREATE, PG_SHARE_CREATE, share_create, NULL},
    {OP_SHARE_END, PG_SHARE_END, share_end, NULL},
    {OP_SHARE_JOIN, PG_SHARE_JOIN, share_join, NULL},
    {OP_BINDING_DROP, PG_BINDING_DROP, binding_drop, NULL},
    {0},
};
static const struct verb_handler verbs[] = {{0}};

const struct postgres_family sharing_postgres = {
    .texts = texts,
    .ops = ops,
    .verbs = verbs,
    .upto = PG_SHARES_UPTO,
    .over = PG_SHARES_REAP,
};
