/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends' parts for retention. */
#ifndef HOLDFAST_RETENTION_STORE_IMPL_H
#define HOLDFAST_RETENTION_STORE_IMPL_H

#include "retention/store/ops.h"
#include "retention/store/verbs.h"
#include "store/family.h"
#include "store/sql.h"

/* Statements of this family begin here. */
#define RETENTION_STATEMENTS SQL_FAMILY_AT(3)
/* Most bytes of one page of segments. */
#define SEGMENT_PAGE_BYTES ((size_t)4 << 20)

/* sql.c */
extern const struct sql_read sql_retention_reads[];
extern const struct row_type sql_removed;
/* sqlite.c, postgres.c */
extern const struct sqlite_family retention_sqlite;
extern const struct postgres_family retention_postgres;

#endif
