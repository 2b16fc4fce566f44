/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of the knowledge base.  Each function below makes one op for store_write(). */
#ifndef HOLDFAST_DOCS_STORE_OPS_H
#define HOLDFAST_DOCS_STORE_OPS_H

#include "docs/store/rows.h"
#include "store/store.h"

enum document_op {
    OP_DOCUMENT_REVISE = OP_FAMILY,
    OP_DOCUMENT_MOVE,
    OP_DOCUMENT_END,
    OP_DOCUMENT_READ,
    OP_DOCUMENTS_AGE,
    OP_DOCUMENT_READS_COPY,
    DOCUMENT_OPS_END,
};
_Static_assert(DOCUMENT_OPS_END <= OP_COUNT, "raise OP_COUNT");

/* The rows of OP_DOCUMENT_REVISE. */
struct document_revise {
    struct document_row *document;
    struct revision_row *revision;
    bool even_if_same; /* adds a revision even for equal bytes */
};
/* document: folder, path, and an id for a new document; revision: at_ms, author, kind, reason,
 * sha256, content.  Adds a revision to the live document at the path, or makes the document with
 * its first revision.  Adds nothing when the newest revision has the same sha256, unless
 * even_if_same.  DUPLICATE when the id of a new document is taken.  OK sets revision->revision,
 * document_id, path and size, and document->id and revision, of the added or the equal newest
 * revision.  The oldest revisions beyond revision->history_max are deleted. */
static inline struct store_op op_document_revise(struct document_revise *rows)
{
    return (struct store_op){.kind = OP_DOCUMENT_REVISE, .row = rows};
}
/* folder, path, new_path: moves the document within its folder, without a new revision.  MISSING
 * when there is no live document at path, DUPLICATE when there is one at new_path. */
static inline struct store_op op_document_move(struct document_row *row)
{
    return (struct store_op){.kind = OP_DOCUMENT_MOVE, .row = row};
}
/* folder, path, ended_ms: the file is gone.  A later file at this path is another document.
 * MISSING likewise. */
static inline struct store_op op_document_end(struct document_row *row)
{
    return (struct store_op){.kind = OP_DOCUMENT_END, .row = row};
}
/* All columns; revision 0: the newest.  Replaces the reads of the same revision that it covers.  If
 * a stored read covers it, the newest such read gets its time instead.  Beyond DOCUMENT_READS_MAX
 * the oldest read is deleted.  MISSING when the session is unknown or not the caller's own,
 * NOT_ACTIVE when it is over; then MISSING when there is no such live document or revision. */
static inline struct store_op op_document_read(const struct principal *who,
                                               struct document_read_row *row)
{
    return (struct store_op){.kind = OP_DOCUMENT_READ, .who = who, .row = row};
}
/* from, to: `to`, a new session of `who`, has read what the session `from` has.  Whoever asks may read
 * `from`.  Copies nothing when `to` is not a live session of `who`.  Always OK. */
struct document_reads_copy {
    struct str from, to; /* row ids */
};
static inline struct store_op op_document_reads_copy(const struct principal *who,
                                                     struct document_reads_copy *row)
{
    return (struct store_op){.kind = OP_DOCUMENT_READS_COPY, .who = who, .row = row};
}
/* Deletes the texts of the folder's revisions that another text replaced at before_ms or earlier, or
 * that ended with their document by then.  The revisions themselves stay.  Looks at the next `limit`
 * documents in the order of their ids, live or ended.  Always OK. */
static inline struct store_op op_documents_age(struct documents_age *row)
{
    return (struct store_op){.kind = OP_DOCUMENTS_AGE, .row = row};
}

#endif
