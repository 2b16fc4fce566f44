/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of servers, and statistics of servers, in SQLite. */
#include "store/sqlite_impl.h"

bool sq_tool_seen(struct sq_batch *batch, struct store_op *op, struct error *err)
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

bool sq_tool_approve(struct sq_batch *batch, struct store_op *op, struct error *err)
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

static bool read_tool(struct sq_row *r, void *to, struct error *err unused_arg)
{
    struct tool_row *row = to;
    row->server = sq_get_bytes(r);
    row->name = sq_get_bytes(r);
    sq_get_sha(r, row->digest);
    row->definition = sq_get_bytes(r);
    sq_get_sha(r, row->approved);
    row->approved_definition = sq_get_bytes(r);
    row->first_seen_ms = sq_get_int(r);
    row->changed_ms = sq_get_int(r);
    row->gone_ms = sq_get_int(r);
    row->approved_ms = sq_get_int(r);
    return true;
}

bool sq_tools_page(struct store *store, const struct tool_filter *filter, unsigned limit,
                   struct arena *mem, struct tool_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows tools = {.read = read_tool, .size = sizeof(struct tool_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, filter->name.p ? SQ_TOOL_GET : SQ_TOOLS_PAGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, filter->server);
    sq_text(&b, filter->name);
    sq_int(&b, filter->with_definitions);
    sq_text(&b, filter->after_server.p ? filter->after_server : STR(""));
    sq_text(&b, filter->after.p ? filter->after : STR(""));
    sq_int(&b, limit);
    if (!sq_read_rows(s, st, limit, &tools, err))
        return false;
    *ret_rows = tools.items;
    *ret_n = tools.n;
    return true;
}

/* Servers. */

bool sq_server_tell(struct sq_batch *batch, struct store_op *op, struct error *err)
{
    const struct server_row *row = op->server;
    sqlite3_stmt *st = sq_prepare(batch->s, SQ_SERVER_TELL, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, row->name);
    sq_int(&b, row->calls);
    sq_int(&b, row->failures);
    sq_int(&b, row->last_ok_ms);
    sq_int(&b, row->last_failed_ms);
    sq_blob(&b, row->last_error);
    op->verdict = VERDICT_OK;
    return sq_run(batch->s, st, err);
}

static bool read_server(struct sq_row *r, void *to, struct error *err unused_arg)
{
    struct server_row *row = to;
    row->name = sq_get_bytes(r);
    row->calls = sq_get_int(r);
    row->failures = sq_get_int(r);
    row->last_ok_ms = sq_get_int(r);
    row->last_failed_ms = sq_get_int(r);
    row->last_error = sq_get_bytes(r);
    return true;
}

bool sq_servers_page(struct store *store, struct str after, unsigned limit, struct arena *mem,
                     struct server_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct sq_rows servers = {.read = read_server, .size = sizeof(struct server_row), .mem = mem};
    sqlite3_stmt *st = sq_prepare(s, SQ_SERVERS_PAGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, after.p ? after : STR(""));
    sq_int(&b, limit);
    if (!sq_read_rows(s, st, limit, &servers, err))
        return false;
    *ret_rows = servers.items;
    *ret_n = servers.n;
    return true;
}
