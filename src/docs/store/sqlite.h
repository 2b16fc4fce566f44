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
    SQ_READS_COPY,
    SQ_READS_UPTO,
    SQ_READS_REAP,
    SQ_AGE_DOCUMENTS,
    SQ_AGE_FROM,
    SQ_AGE_FIRST,
    SQ_AGE_TEXTS,
    SQ_AGE_IS_WHOLE,
    SQ_AGE_MIDDLE,
};
extern const struct sql_text sq_document_texts[]; /* sqlite_sql.c */

/* sqlite.c */
/* Finds the live document at the path. */
must_check bool sq_document_find(struct sqlite_store *s, struct str folder, struct str path,
                                 struct arena *mem, struct document_row **ret_row,
                                 struct error *err);
/* Binds a statement about the revisions of a document up to, or before, a number. */
sqlite3_stmt *sq_bind_upto(struct sqlite_store *s, enum sq_document_statement which, struct str id,
                           int64_t number, struct error *err) must_check;
must_check bool sq_run_upto(struct sqlite_store *s, enum sq_document_statement which, struct str id,
                            int64_t number, struct error *err);
/* *ret is 0 when there is no row. */
must_check bool sq_number_upto(struct sqlite_store *s, enum sq_document_statement which,
                               struct str id, int64_t number, int64_t *ret, struct error *err);
/* Stores a whole text. */
must_check bool sq_content_add(struct sqlite_store *s, struct str content, struct str id,
                               int64_t number, struct error *err);
/* Sets content by document_id and revision; it stays absent when it was deleted. */
must_check bool sq_revision_text(struct sqlite_store *s, struct revision_row *row,
                                 struct arena *mem, struct error *err);
/* sqlite_age.c */
bool sq_documents_age(struct sq_batch *batch, struct store_op *op, struct error *err);
/* sqlite_read.c */
bool sq_document_read(struct sq_batch *batch, struct store_op *op, struct error *err);

#endif
