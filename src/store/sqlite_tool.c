/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of servers, and how servers do, in SQLite. */
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
    bool exists = false;
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
    if (!sq_run_exists(batch->s, st, &exists, err))
        return false;
    op->verdict = exists ? VERDICT_STALE : VERDICT_MISSING;
    return true;
}

static void read_tool(struct sq_row *r, struct tool_row *row)
{
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
}

bool sq_tools_page(struct store *store, const struct tool_filter *filter, unsigned limit,
                   struct arena *mem, struct tool_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct tool_row *rows = arena_zalloc(mem, limit * sizeof(*rows));
    size_t n = 0;
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
    for (bool row = true; n < limit; n++) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st, .mem = mem};
        read_tool(&r, &rows[n]);
    }
    sq_reset(st);
    *ret_rows = rows;
    *ret_n = n;
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

bool sq_servers_page(struct store *store, struct str after, unsigned limit, struct arena *mem,
                     struct server_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct sqlite_store *s = sq_of(store);
    struct server_row *rows = arena_zalloc(mem, limit * sizeof(*rows));
    size_t n = 0;
    sqlite3_stmt *st = sq_prepare(s, SQ_SERVERS_PAGE, err);
    if (!st)
        return false;
    struct sq_bind b = {.st = st};
    sq_text(&b, after.p ? after : STR(""));
    sq_int(&b, limit);
    for (bool row = true; n < limit; n++) {
        if (!sq_step(s, st, &row, err))
            return false;
        if (!row)
            break;
        struct sq_row r = {.st = st, .mem = mem};
        rows[n].name = sq_get_bytes(&r);
        rows[n].calls = sq_get_int(&r);
        rows[n].failures = sq_get_int(&r);
        rows[n].last_ok_ms = sq_get_int(&r);
        rows[n].last_failed_ms = sq_get_int(&r);
        rows[n].last_error = sq_get_bytes(&r);
    }
    sq_reset(st);
    *ret_rows = rows;
    *ret_n = n;
    return true;
}
