/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of retention, for both SQL backends. */
#include "retention/store/impl.h"

#define AT(member) offsetof(struct removed_row, member)
static const struct row_column removed_columns[] = {
    {COLUMN_INT, AT(writer), "writer"},
    {COLUMN_TEXT, AT(tenant), "tenant"},
    {COLUMN_INT, AT(first_seq), "first_seq"},
    {COLUMN_INT, AT(last_seq), "last_seq"},
    {COLUMN_INT, AT(first_id), "first_id"},
    {COLUMN_INT, AT(last_id), "last_id"},
    {COLUMN_INT, AT(oldest_ms), "oldest_ms"},
    {COLUMN_INT, AT(newest_ms), "newest_ms"},
    {COLUMN_INT, AT(by_age), "by_age"},
    {COLUMN_INT, AT(by_size), "by_size"},
    {COLUMN_INT, AT(removed_ms), "removed_ms"},
    {COLUMN_TEXT, AT(rule), "rule"},
    {COLUMN_SHA, AT(before), "before"},
    {COLUMN_SHA, AT(after), "after"},
    {COLUMN_SHA, AT(seal), "seal"},
};
#undef AT
const struct row_type sql_removed = {sizeof(struct removed_row), removed_columns,
                                     countof(removed_columns), NULL};

#define AT(member) offsetof(struct tally_row, member)
static const struct row_column tally_columns[] = {
    {COLUMN_INT32, AT(kind), "kind"}, {COLUMN_TEXT, AT(tenant), "tenant"},
    {COLUMN_INT, AT(at), "at"},       {COLUMN_INT, AT(events), "events"},
    {COLUMN_INT, AT(bytes), "bytes"}, {COLUMN_INT, AT(body_bytes), "body_bytes"},
};
#undef AT
static const struct row_type tally = {sizeof(struct tally_row), tally_columns,
                                      countof(tally_columns), NULL};

static const struct row_column state_columns[] = {
    {COLUMN_INT, offsetof(struct retention_state, version), "version"},
};
static const struct row_type state = {sizeof(struct retention_state), state_columns, 1, NULL};

static const struct row_column folded_columns[] = {
    {COLUMN_INT, offsetof(struct folded_row, writer), "writer"},
    {COLUMN_INT, offsetof(struct folded_row, last_id), "max(last_id)"},
};
static const struct row_type folded = {sizeof(struct folded_row), folded_columns, 2, NULL};

#define AT(member) offsetof(struct size_row, member)
static const struct row_column day_columns[] = {
    {COLUMN_TEXT, AT(tenant), "tenant_id"},     {COLUMN_INT, AT(day), "day"},
    {COLUMN_INT, AT(events), "events"},         {COLUMN_INT, AT(event_bytes), "event_bytes"},
    {COLUMN_INT, AT(bodies), "bodies"},         {COLUMN_INT, AT(body_bytes), "body_bytes"},
    {COLUMN_INSTANT, AT(first_ms), "first_at"}, {COLUMN_INSTANT, AT(last_ms), "last_at"},
};
#undef AT
static const struct row_type day = {sizeof(struct size_row), day_columns, countof(day_columns),
                                    NULL};

enum { OF_ALL, OF_WRITER };
static unsigned by_writer(const struct store_call *c)
{
    return c->number ? OF_WRITER : OF_ALL;
}

const struct sql_read sql_retention_reads[] = {
    {VERB_RETENTION_STATE,
     &state,
     {{ARG_END}},
     NULL,
     {{"SELECT @ FROM audit_retention"}, {"SELECT @ FROM mcp.audit_retention"}}},
    {VERB_REMOVED,
     &sql_removed,
     {CALL_ARG(ARG_INT, number)},
     by_writer,
     {{[OF_ALL] = "SELECT @ FROM audit_removed WHERE ?1 = 0 ORDER BY writer, tenant, first_seq",
       [OF_WRITER] = "SELECT @ FROM audit_removed WHERE writer = ?1 ORDER BY tenant, first_seq"},
      {[OF_ALL] = "SELECT @ FROM mcp.audit_removed WHERE $1::bigint = 0 "
                  "ORDER BY writer, tenant COLLATE \"C\", first_seq",
       [OF_WRITER] = "SELECT @ FROM mcp.audit_removed WHERE writer = $1::bigint "
                     "ORDER BY tenant COLLATE \"C\", first_seq"}},
     .no_page_limit = true},
    {VERB_TALLIES,
     &tally,
     {CALL_ARG(ARG_INT, number)},
     NULL,
     {{"SELECT @ FROM audit_tallies WHERE kind = ?1 ORDER BY tenant, at"},
      {"SELECT @ FROM mcp.audit_tallies WHERE kind = $1::bigint ORDER BY tenant COLLATE \"C\", "
       "at"}},
     .no_page_limit = true},
    {VERB_SIZES_BY_DAY,
     &day,
     {{ARG_END}},
     NULL,
     {{"SELECT @ FROM audit_sizes ORDER BY tenant_id, day"},
      {"SELECT @ FROM mcp.audit_sizes ORDER BY tenant_id COLLATE \"C\", day"}},
     .no_page_limit = true},
    {VERB_FOLDED,
     &folded,
     {{ARG_END}},
     NULL,
     {{"SELECT @ FROM fold_state GROUP BY writer ORDER BY writer"},
      {"SELECT @ FROM mcp.fold_marks GROUP BY writer ORDER BY writer"}},
     .no_page_limit = true},
    {0},
};
