/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends' parts for sharing. */
#ifndef HOLDFAST_SESSION_SHARE_STORE_IMPL_H
#define HOLDFAST_SESSION_SHARE_STORE_IMPL_H

#include "session/share_store/ops.h"
#include "session/share_store/verbs.h"
#include "store/family.h"
#include "store/sql.h"

#define SHARING_STATEMENTS SQL_FAMILY_AT(1)

extern const struct family_op sharing_ops[];      /* ops.c */
extern const struct sql_read sql_sharing_reads[]; /* sql.c */
extern const struct row_type sql_share;
extern const struct sqlite_family sharing_sqlite;     /* sqlite.c */
extern const struct postgres_family sharing_postgres; /* postgres.c */

#endif
