/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends' parts for holds. */
#ifndef HOLDFAST_HOLDS_STORE_IMPL_H
#define HOLDFAST_HOLDS_STORE_IMPL_H

#include "holds/store/ops.h"
#include "holds/store/verbs.h"
#include "store/family.h"
#include "store/sql.h"

/* Statements of this family begin here. */
#define HOLD_STATEMENTS SQL_FAMILY_AT(4)

/* sql.c */
extern const struct sql_read sql_hold_reads[];
extern const struct row_type sql_hold;
/* sqlite.c, postgres.c */
extern const struct sqlite_family hold_sqlite;
extern const struct postgres_family hold_postgres;

#endif
