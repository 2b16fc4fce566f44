/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of the sizes of the audit, for both SQL backends. */
#include "store/sql.h"

/* ?4: the first recent day. */
#define AT(member) offsetof(struct audit_size_row, member)
#define SUM(member, column)                                                                        \
    {                                                                                              \
        COLUMN_INT, AT(member), "sum(" column ")", "sum(" column ")::bigint"                       \
    }
#define RECENT(member, column)                                                                     \
    {                                                                                              \
        COLUMN_INT, AT(member), "coalesce(sum(" column ") FILTER (WHERE day >= ?4), 0)",           \
            "coalesce(sum(" column ") FILTER (WHERE day >= $4::bigint), 0)::bigint"                \
    }
static const struct row_column columns[] = {
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    SUM(events, "events"),
    SUM(event_bytes, "event_bytes"),
    SUM(bodies, "bodies"),
    SUM(body_bytes, "body_bytes"),
    {COLUMN_INSTANT, AT(first_ms), "min(first_at)"},
    {COLUMN_INSTANT, AT(last_ms), "max(last_at)"},
    RECENT(recent_event_bytes, "event_bytes"),
    RECENT(recent_body_bytes, "body_bytes"),
    RECENT(recent_events, "events"),
};
#undef AT
static const struct row_type size_type = {sizeof(struct audit_size_row), columns, countof(columns),
                                          NULL};

enum { OF_ALL, OF_TENANT };
static unsigned by_tenant(const struct store_call *c)
{
    return c->tenant.p ? OF_TENANT : OF_ALL;
}

const struct sql_read sql_size_reads[] = {
    {VERB_AUDIT_SIZES,
     &size_type,
     {CALL_ARG(ARG_NAME, tenant),
      CALL_ARG(ARG_TEXT, after),
      {ARG_LIMIT},
      CALL_ARG(ARG_INT, number)},
     by_tenant,
     {{[OF_ALL] = "SELECT @ FROM audit_sizes WHERE ?1 IS NULL AND (?2 IS NULL OR tenant_id > ?2) "
                  "GROUP BY tenant_id ORDER BY tenant_id LIMIT ?3",
       [OF_TENANT] = "SELECT @ FROM audit_sizes WHERE tenant_id = ?1 AND ?2 IS NULL "
                     "GROUP BY tenant_id LIMIT ?3"},
      {[OF_ALL] = "SELECT @ FROM mcp.audit_sizes WHERE $1::text IS NULL AND ($2::text IS NULL OR "
                  "tenant_id > $2) GROUP BY tenant_id ORDER BY tenant_id LIMIT $3::bigint",
       [OF_TENANT] =
           "SELECT @ FROM mcp.audit_sizes WHERE tenant_id = $1::text AND $2::text IS NULL "
           "GROUP BY tenant_id LIMIT $3::bigint"}}},
    {0},
};
