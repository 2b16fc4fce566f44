/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends' parts for analytics. */
#ifndef HOLDFAST_ANALYTICS_STORE_IMPL_H
#define HOLDFAST_ANALYTICS_STORE_IMPL_H

#include "analytics/store/ops.h"
#include "analytics/store/rollup.h"
#include "analytics/store/verbs.h"
#include "store/family.h"
#include "store/sql.h"

/* Statements of this family begin here. */
#define ANALYTICS_STATEMENTS SQL_FAMILY_AT(5)

/* sql.c */
extern const struct sql_read sql_analytics_reads[];
/* sqlite.c, postgres.c */
extern const struct sqlite_family analytics_sqlite;
extern const struct postgres_family analytics_postgres;

#endif
