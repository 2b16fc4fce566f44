/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of sinks, for both SQL backends. */
#include "sinks/store/impl.h"

#define AT(member) offsetof(struct sink_row, member)
static const struct row_column columns[] = {
    {COLUMN_TEXT, AT(name), "name"},
    {COLUMN_TEXT, AT(position), "position"},
    {COLUMN_INT, AT(writer), "writer"},
    {COLUMN_INSTANT, AT(saved_ms), "saved_at"},
};
#undef AT
static const struct row_type sink = {sizeof(struct sink_row), columns, countof(columns), NULL};

const struct sql_read sql_sink_reads[] = {
    {VERB_SINK,
     &sink,
     {CALL_ARG(ARG_NAME, name)},
     NULL,
     {{"SELECT @ FROM sink_positions WHERE name = ?1"},
      {"SELECT @ FROM mcp.sink_positions WHERE name = $1::text"}}},
    {0},
};
