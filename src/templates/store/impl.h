/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends' parts for templates. */
#ifndef HOLDFAST_TEMPLATES_STORE_IMPL_H
#define HOLDFAST_TEMPLATES_STORE_IMPL_H

#include "store/family.h"
#include "store/sql.h"
#include "templates/store/ops.h"
#include "templates/store/verbs.h"

/* Statements of this family begin here. */
#define TEMPLATE_STATEMENTS SQL_FAMILY_AT(2)

/* sql.c */
extern const struct sql_read sql_template_reads[];
/* sqlite.c, postgres.c */
extern const struct sqlite_family template_sqlite;
extern const struct postgres_family template_postgres;

#endif
