/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of holds, for both SQL backends. */
#include "holds/store/impl.h"

#define AT(member) offsetof(struct hold_row, member)
static const struct row_column hold_columns[] = {
    {COLUMN_UUID, AT(id), "id"},
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_INT32, AT(kind), "kind"},
    {COLUMN_UUID, AT(target), "target"},
    {COLUMN_TEXT, AT(reason), "reason"},
    {COLUMN_TEXT, AT(made_by), "made_by"},
    {COLUMN_INSTANT, AT(created_ms), "created_at"},
    {COLUMN_TIME, AT(released_ms), "released_at"},
    {COLUMN_TEXT, AT(released_by), "released_by"},
};
#undef AT
const struct row_type sql_hold = {sizeof(struct hold_row), hold_columns, countof(hold_columns),
                                  NULL};

#define AT(member) offsetof(struct held_row, member)
static const struct row_column held_columns[] = {
    {COLUMN_TEXT, AT(tenant), "tenant_id"},
    {COLUMN_INT32, AT(kind), "kind"},
    {COLUMN_TEXT, AT(name), "name"},
};
#undef AT
static const struct row_type held = {sizeof(struct held_row), held_columns, countof(held_columns),
                                     NULL};

enum { OF_ALL, OF_TENANT };
static unsigned by_tenant(const struct store_call *c)
{
    return c->tenant.p ? OF_TENANT : OF_ALL;
}

#define SQ_PAGE "AND id < ?2 AND (?3 = 0 OR released_at IS NULL) ORDER BY id DESC LIMIT ?4"
#define PG_PAGE                                                                                    \
    "AND ($2::uuid IS NULL OR id < $2) AND (NOT $3::boolean OR released_at IS NULL) "              \
    "ORDER BY id DESC LIMIT $4::bigint"

const struct sql_read sql_hold_reads[] = {
    {VERB_HOLDS_PAGE,
     &sql_hold,
     {CALL_ARG(ARG_TEXT, tenant),
      CALL_ARG(ARG_UUID_BEFORE, after),
      CALL_ARG(ARG_BOOL, flag),
      {ARG_LIMIT}},
     by_tenant,
     {{[OF_ALL] = "SELECT @ FROM audit_holds WHERE ?1 IS NULL " SQ_PAGE,
       [OF_TENANT] = "SELECT @ FROM audit_holds WHERE tenant_id = ?1 " SQ_PAGE},
      {[OF_ALL] = "SELECT @ FROM mcp.audit_holds WHERE $1::text IS NULL " PG_PAGE,
       [OF_TENANT] = "SELECT @ FROM mcp.audit_holds WHERE tenant_id = $1::text " PG_PAGE}}},
    {VERB_HELD,
     &held,
     {{ARG_END}},
     NULL,
     {{"SELECT @ FROM audit_held"}, {"SELECT @ FROM mcp.audit_held"}},
     .no_page_limit = true},
    {0},
};
