/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of analytics, for both SQL backends. */
#include "analytics/store/impl.h"

#define AT(member) offsetof(struct rollup_row, member)
static const struct row_column columns[] = {
    {COLUMN_INT, AT(span), "r.span"},        {COLUMN_INT, AT(label), "r.label"},
    {COLUMN_INT, AT(writer), "r.writer"},    {COLUMN_TEXT, AT(server), "l.server"},
    {COLUMN_TEXT, AT(tool), "l.tool"},       {COLUMN_TEXT, AT(client), "l.client"},
    {COLUMN_TEXT, AT(owner), "l.owner"},     {COLUMN_TEXT, AT(era), "l.era"},
    {COLUMN_TEXT, AT(carrier), "l.carrier"}, {COLUMN_BYTES, AT(cells), "r.cells"},
};
#undef AT
static const struct row_type rollup = {sizeof(struct rollup_row), columns, countof(columns), NULL};

static const struct row_column tenant_columns[] = {
    {COLUMN_TEXT, offsetof(struct tenant_row, id), "tenant_id"},
};
static const struct row_type tenant = {sizeof(struct tenant_row), tenant_columns,
                                       countof(tenant_columns), NULL};

#define ARG(kind, member) FILTER_ARG(kind, rollup_filter, member)

const struct sql_read sql_analytics_reads[] = {
    {VERB_ROLLUPS_PAGE,
     &rollup,
     {ARG(ARG_NAME, tenant),
      ARG(ARG_INT, step),
      ARG(ARG_INT, since),
      ARG(ARG_INT, until),
      ARG(ARG_INT, after_span),
      ARG(ARG_INT, after_label),
      ARG(ARG_INT, after_writer),
      ARG(ARG_NAME, owner),
      {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM analytics_rollups r CROSS JOIN analytics_labels l ON l.id = r.label "
       "WHERE r.tenant_id = ?1 AND r.step = ?2 AND r.span >= ?3 AND r.span < ?4 "
       "AND (r.span, r.label, r.writer) > (?5, ?6, ?7) AND (?8 IS NULL OR l.owner = ?8) "
       "ORDER BY r.span, r.label, r.writer LIMIT ?9"},
      {"SELECT @ FROM mcp.analytics_rollups r JOIN mcp.analytics_labels l ON l.id = r.label "
       "WHERE r.tenant_id = $1::text AND r.step = $2::bigint AND r.span >= $3::bigint "
       "AND r.span < $4::bigint AND (r.span, r.label, r.writer) > ($5::bigint, $6::bigint, "
       "$7::bigint) AND ($8::text IS NULL OR l.owner = $8) ORDER BY r.span, r.label, r.writer "
       "LIMIT $9::bigint"}}},
    {VERB_ROLLUP_TENANT,
     &tenant,
     {CALL_ARG(ARG_FROM, after)},
     NULL,
     {{"SELECT @ FROM analytics_rollups WHERE tenant_id > ?1 ORDER BY tenant_id LIMIT 1"},
      {"SELECT @ FROM mcp.analytics_rollups WHERE tenant_id > $1::text ORDER BY tenant_id "
       "LIMIT 1"}}},
    {0},
};
