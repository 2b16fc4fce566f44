/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this family. */
#ifndef HOLDFAST_FEEDS_STORE_IMPL_H
#define HOLDFAST_FEEDS_STORE_IMPL_H

#include "feeds/store/family.h"
#include "feeds/store/verbs.h"
#include "store/sql.h"

/* sql.c */
extern const struct sql_read sql_feed_reads[];
extern const struct sqlite_family feeds_sqlite;
extern const struct postgres_family feeds_postgres;

#endif
