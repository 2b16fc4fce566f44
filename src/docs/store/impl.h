/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the backends' parts for documents. */
#ifndef HOLDFAST_DOCS_STORE_IMPL_H
#define HOLDFAST_DOCS_STORE_IMPL_H

#include "docs/store/ops.h"
#include "docs/store/verbs.h"
#include "store/family.h"
#include "store/sql.h"

/* ops.c: the ops.  Backends set only revision->revision and document_id; the other output
 * members are set after the commit. */
extern const struct family_op document_ops[];
/* sql.c */
extern const struct sql_read sql_document_reads[];
extern const struct row_type sql_revision_part;
/* sqlite.c, postgres.c */
extern const struct sqlite_family document_sqlite;
extern const struct postgres_family document_postgres;

/* revision.c */
/* A text as it is stored: `middle` between the first `prefix` and the last `suffix` bytes of the
 * previous text.  The first part of a chain is a whole text. */
#define REVISION_PARTS_MEM (64u * 1024 * 1024) /* memory for reading one text */
#define REVISION_DEPTH_MAX 31                  /* differences after a whole text */
struct revision_part {
    size_t prefix, suffix;
    struct str middle;
    size_t size; /* set by revision_assemble() */
};
/* Assembles the text of the last part in `mem`. */
must_check bool revision_assemble(struct revision_part *parts, size_t n, struct arena *mem,
                                  struct str *ret, struct error *err);
/* For backends: sets document_id of the revision to a copy of `id`. */
void revision_row_name(struct revision_row *row, struct str id);

#endif
