/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends' parts for erasures. */
#ifndef HOLDFAST_ERASURE_STORE_IMPL_H
#define HOLDFAST_ERASURE_STORE_IMPL_H

#include "erasure/store/ops.h"
#include "erasure/store/verbs.h"
#include "store/family.h"
#include "store/sql.h"

/* Statements of this family begin here; those of holds take the first ones of this room. */
#define ERASURE_STATEMENTS (SQL_FAMILY_AT(4) + 8)

/* sql.c */
extern const struct sql_read sql_erasure_reads[];
extern const struct row_type sql_erasure;
/* sqlite.c, postgres.c */
extern const struct sqlite_family erasure_sqlite;
extern const struct postgres_family erasure_postgres;

#endif
