/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends' parts for sinks. */
#ifndef HOLDFAST_SINKS_STORE_IMPL_H
#define HOLDFAST_SINKS_STORE_IMPL_H

#include "sinks/store/ops.h"
#include "sinks/store/verbs.h"
#include "store/family.h"
#include "store/sql.h"

/* Statements of this family begin here. */
#define SINK_STATEMENTS SQL_FAMILY_AT(6)

/* sql.c */
extern const struct sql_read sql_sink_reads[];
/* sqlite.c, postgres.c */
extern const struct sqlite_family sink_sqlite;
extern const struct postgres_family sink_postgres;

#endif
