/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of tools and of statistics of servers, for both SQL backends.  Servers choose the names of
 * tools, so these need not be UTF-8. */
#include "store/sql.h"

/* ?3: whether to return the definitions. */
#define AT(member) offsetof(struct tool_row, member)
static const struct row_column tool_columns[] = {
    {COLUMN_TEXT, AT(server), "server"},
    {COLUMN_RAW_TEXT, AT(name), "name"},
    {COLUMN_SHA, AT(digest), "digest"},
    {COLUMN_BYTES, AT(definition), "iif(?3, definition, NULL)",
     "CASE WHEN $3::boolean THEN definition END"},
    {COLUMN_SHA, AT(approved), "approved"},
    {COLUMN_BYTES, AT(approved_definition), "iif(?3, approved_definition, NULL)",
     "CASE WHEN $3::boolean THEN approved_definition END"},
    {COLUMN_INSTANT, AT(first_seen_ms), "first_seen_at"},
    {COLUMN_INSTANT, AT(changed_ms), "changed_at"},
    {COLUMN_TIME, AT(gone_ms), "gone_at"},
    {COLUMN_TIME, AT(approved_ms), "approved_at"},
};
#undef AT
const struct row_type sql_tool = {sizeof(struct tool_row), tool_columns, countof(tool_columns),
                                  NULL};

#define AT(member) offsetof(struct server_row, member)
static const struct row_column server_columns[] = {
    {COLUMN_TEXT, AT(name), "name"},
    {COLUMN_INT, AT(calls), "calls"},
    {COLUMN_INT, AT(failures), "failures"},
    {COLUMN_LAST, AT(last_ok_ms), "last_ok_at"},
    {COLUMN_LAST, AT(last_failed_ms), "last_failed_at"},
    {COLUMN_BYTES, AT(last_error), "last_error"},
};
#undef AT
const struct row_type sql_server = {sizeof(struct server_row), server_columns,
                                    countof(server_columns), NULL};

static unsigned by_name(const struct store_call *c)
{
    return ((const struct tool_filter *)c->filter)->name.p != NULL;
}

const struct sql_read sql_tool_reads[] = {
    {VERB_TOOLS_PAGE,
     &sql_tool,
     {FILTER_ARG(ARG_TEXT, tool_filter, server),
      FILTER_ARG(ARG_RAW_TEXT, tool_filter, name),
      FILTER_ARG(ARG_BOOL, tool_filter, with_definitions),
      FILTER_ARG(ARG_FROM, tool_filter, after_server),
      FILTER_ARG(ARG_RAW_FROM, tool_filter, after),
      {ARG_LIMIT}},
     by_name,
     {{"SELECT @ FROM tool_definitions WHERE (server, name) > (?4, ?5) "
       "AND (?1 IS NULL OR server = ?1) AND ?2 IS NULL ORDER BY server, name LIMIT ?6",
       "SELECT @ FROM tool_definitions WHERE server = ?1 AND name = ?2 AND ?4 IS NOT NULL "
       "AND ?5 IS NOT NULL LIMIT ?6"},
      {"SELECT @ FROM mcp.tool_definitions WHERE (server, name) > ($4::text, $5::bytea) "
       "AND ($1::text IS NULL OR server = $1) AND $2::bytea IS NULL ORDER BY server, name "
       "LIMIT $6::bigint",
       "SELECT @ FROM mcp.tool_definitions WHERE server = $1::text AND name = $2::bytea "
       "AND $4::text IS NOT NULL AND $5::bytea IS NOT NULL LIMIT $6::bigint"}}},
    {VERB_SERVERS_PAGE,
     &sql_server,
     {CALL_ARG(ARG_FROM, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM server_health WHERE name > ?1 ORDER BY name LIMIT ?2"},
      {"SELECT @ FROM mcp.server_health WHERE name > $1::text ORDER BY name LIMIT $2::bigint"}}},
    {0},
};
