/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of templates, for both SQL backends. */
#include "templates/store/impl.h"

#define AT(member) offsetof(struct template_row, member)
static const struct row_column columns[] = {
    {COLUMN_TEXT, AT(tenant), "t.tenant_id"},      {COLUMN_TEXT, AT(name), "t.name"},
    {COLUMN_INT, AT(version), "t.version"},        {COLUMN_INSTANT, AT(created_ms), "t.created_at"},
    {COLUMN_TEXT, AT(created_by), "t.created_by"}, {COLUMN_TEXT, AT(spec), "t.spec"},
};
#undef AT
static const struct row_type template_type = {sizeof(struct template_row), columns,
                                              countof(columns), NULL};
static const struct row_type template_listed = {sizeof(struct template_row), columns,
                                                countof(columns) - 1, NULL};

static unsigned by_version(const struct store_call *c)
{
    return c->number != 0;
}

#define SQ_NAMED "SELECT @ FROM session_templates t WHERE t.tenant_id = ?1 AND t.name = ?2 "
#define PG_NAMED                                                                                   \
    "SELECT @ FROM mcp.session_templates t WHERE t.tenant_id = $1::text AND t.name = $2::text "

const struct sql_read sql_template_reads[] = {
    {VERB_TEMPLATE,
     &template_type,
     {CALL_ARG(ARG_NAME, tenant), CALL_ARG(ARG_NAME, name), CALL_ARG(ARG_INT, number)},
     by_version,
     {{SQ_NAMED "AND ?3 = 0 ORDER BY t.version DESC LIMIT 1", SQ_NAMED "AND t.version = ?3"},
      {PG_NAMED "AND $3::bigint = 0 ORDER BY t.version DESC LIMIT 1",
       PG_NAMED "AND t.version = $3::bigint"}}},
    {VERB_TEMPLATES_PAGE,
     &template_type,
     {CALL_ARG(ARG_NAME, tenant), CALL_ARG(ARG_FROM, after), {ARG_LIMIT}},
     NULL,
     {{"SELECT @ FROM session_templates t WHERE t.tenant_id = ?1 AND t.name > ?2 AND t.version = "
       "(SELECT max(n.version) FROM session_templates n WHERE n.tenant_id = t.tenant_id "
       "AND n.name = t.name) ORDER BY t.name LIMIT ?3"},
      {"SELECT @ FROM mcp.session_templates t WHERE t.tenant_id = $1::text AND t.name > $2::text "
       "AND t.version = (SELECT max(n.version) FROM mcp.session_templates n WHERE n.tenant_id = "
       "t.tenant_id AND n.name = t.name) ORDER BY t.name LIMIT $3::bigint"}}},
    {VERB_TEMPLATE_VERSIONS,
     &template_listed,
     {CALL_ARG(ARG_NAME, tenant),
      CALL_ARG(ARG_NAME, name),
      CALL_ARG(ARG_INT_BEFORE, after_id),
      {ARG_LIMIT}},
     NULL,
     {{SQ_NAMED "AND t.version < ?3 ORDER BY t.version DESC LIMIT ?4"},
      {PG_NAMED "AND t.version < $3::bigint ORDER BY t.version DESC LIMIT $4::bigint"}}},
    {0},
};
