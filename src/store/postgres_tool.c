/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of servers, and statistics of servers, in PostgreSQL.  Names of tools are stored as bytes,
 * because servers choose them. */
#include "store/postgres_impl.h"

void pg_tool_seen(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
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

void pg_tool_approve(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct tool_row *t = op->tool;
    pg_text(p, t->server);
    pg_bytes(p, t->name);
    pg_bytes(p, str_n((const char *)t->digest, sizeof(t->digest)));
    pg_instant(p, t->approved_ms);
}

static bool read_tool(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct tool_row *row = to;
    row->server = pg_get_bytes(r);
    row->name = pg_get_bytes(r);
    pg_get_sha(r, row->digest);
    row->definition = pg_get_bytes(r);
    pg_get_sha(r, row->approved);
    row->approved_definition = pg_get_bytes(r);
    row->first_seen_ms = pg_get_time(r);
    row->changed_ms = pg_get_time(r);
    row->gone_ms = pg_get_time(r);
    row->approved_ms = pg_get_time(r);
    return true;
}

bool pg_tools_page(struct store *s, const struct tool_filter *filter, unsigned limit,
                   struct arena *mem, struct tool_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows tools = {.read = read_tool, .size = sizeof(struct tool_row), .mem = mem};
    struct pg_params p = {0};
    struct str server = filter->server;
    /* A name that PostgreSQL cannot store is replaced by the empty name, which no server has. */
    pg_text(&p, !server.p || pg_is_text(server) ? server : STR(""));
    pg_bytes(&p, filter->name);
    pg_bool(&p, filter->with_definitions);
    pg_text(&p, filter->after_server.p ? filter->after_server : STR(""));
    pg_bytes(&p, filter->after.p ? filter->after : STR(""));
    pg_int(&p, limit);
    if (!pg_read_page(pg_of(s), filter->name.p ? PG_TOOL_GET : PG_TOOLS_PAGE, &p, &tools, err))
        return false;
    *ret_rows = tools.items;
    *ret_n = tools.n;
    return true;
}

/* Servers. */

void pg_server_tell(struct pg_params *p, const struct store_op *op, int64_t now_ms unused_arg)
{
    const struct server_row *row = op->server;
    pg_text(p, row->name);
    pg_int(p, row->calls);
    pg_int(p, row->failures);
    pg_time(p, row->last_ok_ms);
    pg_time(p, row->last_failed_ms);
    pg_bytes(p, row->last_error);
}

static bool read_server(struct pg_row *r, void *to, struct error *err unused_arg)
{
    struct server_row *row = to;
    row->name = pg_get_bytes(r);
    row->calls = pg_get_int(r);
    row->failures = pg_get_int(r);
    row->last_ok_ms = pg_get_time(r);
    row->last_failed_ms = pg_get_time(r);
    row->last_error = pg_get_bytes(r);
    return true;
}

bool pg_servers_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                     struct server_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct pg_rows servers = {.read = read_server, .size = sizeof(struct server_row), .mem = mem};
    struct pg_params p = {0};
    pg_text(&p, after.p ? after : STR(""));
    pg_int(&p, limit);
    if (!pg_read_page(pg_of(s), PG_SERVERS_PAGE, &p, &servers, err))
        return false;
    *ret_rows = servers.items;
    *ret_n = servers.n;
    return true;
}
