/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of servers, and statistics of servers, in PostgreSQL.  Names of tools are stored as bytes,
 * because servers choose them. */
#include "store/postgres_impl.h"

static void tool_seen(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    static const uint8_t none[32];
    const struct tool_row *t = op->tool;
    bool approved = memcmp(t->approved, none, sizeof(none)) != 0;
    pg_text(p, t->server);
    pg_bytes(p, t->name);
    pg_bytes(p, str_n((const char *)t->digest, sizeof(t->digest)));
    pg_bytes(p, t->definition);
    pg_bytes(p, approved ? str_n((const char *)t->approved, sizeof(t->approved)) : STR_NONE);
    pg_instant(p, t->first_seen_ms);
    pg_instant(p, t->changed_ms);
    pg_time(p, t->gone_ms);
    pg_time(p, t->approved_ms);
}

static void tool_approve(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct tool_row *t = op->tool;
    pg_text(p, t->server);
    pg_bytes(p, t->name);
    pg_bytes(p, str_n((const char *)t->digest, sizeof(t->digest)));
    pg_instant(p, t->approved_ms);
}

/* Servers. */

static void server_count(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    pg_row_params(p, &sql_server, op->server, NULL);
}

const struct pg_verb pg_tool_ops[] = {
    {OP_TOOL_SEEN, PG_TOOL_SEEN, tool_seen, NULL},
    {OP_TOOL_APPROVE, PG_TOOL_APPROVE, tool_approve, NULL},
    {OP_SERVER_COUNT, PG_SERVER_TELL, server_count, NULL},
    {0},
};
