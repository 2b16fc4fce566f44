/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files for documents in SQLite. */
#ifndef HOLDFAST_DOCS_STORE_SQLITE_H
#define HOLDFAST_DOCS_STORE_SQLITE_H

#include "docs/store/impl.h"
#include "store/sqlite_impl.h"

enum sq_document_statement {
    SQ_DOCUMENT_IS = SQ_COUNT + SQL_FAMILY,
    SQ_DOCUMENT_ADD,
    SQ_DOCUMENT_REVISED,
    SQ_DOCUMENT_MOVE,
    SQ_DOCUMENT_END,
    SQ_REVISION_ADD,
    SQ_CONTENT_ADD,
    SQ_DELTA_ADD,
    SQ_DELTA_DROP,
    SQ_HISTORY_STATE,
    SQ_HISTORY_STORED,
    SQ_HISTORY_SECOND,
    SQ_HISTORY_BYTES,
    SQ_PRUNE_CONTENTS,
    SQ_PRUNE_DELTAS,
    SQ_PRUNE_REVISIONS,
    SQ_REVISION_PARTS,
    SQ_READ_RENEW,
    SQ_READ_COVERED,
    SQ_READ_ADD,
    SQ_READ_PRUNE,
    SQ_READS_UPTO,
    SQ_READS_REAP,
};
extern const struct sql_text sq_document_texts[]; /* sqlite_sql.c */

/* sqlite.c */
/* Finds the live document at the path. */
must_check bool sq_document_find(struct sqlite_store *s, struct str folder, struct str path,
                                 struct arena *mem, struct document_row **ret_row,
                                 struct error *err);
/* sqlite_read.c */
bool sq_document_read(struct sq_batch *batch, struct store_op *op, struct error *err);

#endif
