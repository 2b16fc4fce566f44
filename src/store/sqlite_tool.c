/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of servers, and statistics of servers, in SQLite. */
#include "store/sqlite_impl.h"

static bool tool_seen(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct tool_row *t = op->tool;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TOOL_SEEN, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, t->server);
    sq_text(&b, t->name);
    sq_blob(&b, str_n((const char *)t->digest, sizeof(t->digest)));
    sq_blob(&b, t->definition);
    sq_sha(&b, t->approved);
    sq_int(&b, t->first_seen_ms);
    sq_int(&b, t->changed_ms);
    sq_time(&b, t->gone_ms);
    sq_time(&b, t->approved_ms);
    op->verdict = VERDICT_OK;
    return sq_run(batch->s, st, err);
}

static bool tool_approve(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct tool_row *t = op->tool;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_TOOL_APPROVE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, t->server);
    sq_text(&b, t->name);
    sq_blob(&b, str_n((const char *)t->digest, sizeof(t->digest)));
    sq_int(&b, t->approved_ms);
    if (!sq_run_verdict(batch->s, st, op, VERDICT_MISSING, err))
        return false;
    if (op->verdict == VERDICT_OK)
        return true;
    st = sq_prepare(batch->s, SQ_TOOL_IS, err);
    if (!st)
        return false;
    b = (struct sq_bind){.st = st};
    sq_text(&b, t->server);
    sq_text(&b, t->name);
    return sq_run_refusal(batch->s, st, op, VERDICT_STALE, err);
}

/* Servers. */

static bool server_count(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SERVER_TELL, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_bind_row(&b, &sql_server, op->server, NULL);
    op->verdict = VERDICT_OK;
    return sq_run(batch->s, st, err);
}

const struct sq_op sq_tool_ops[] = {
    {OP_TOOL_SEEN, tool_seen},
    {OP_TOOL_APPROVE, tool_approve},
    {OP_SERVER_COUNT, server_count},
    {0},
};
