/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the knowledge base: documents, their history, and the lines that sessions have
 * seen.  They are a second list beside STORE_VERBS (store/verbs.h).
 *
 * To add a read verb: a line in DOCUMENT_VERBS and its function here and in verbs.c; its function
 * in memory.c; its statement in both dialects in sql.c; its test in tests/contract/docs. */
#ifndef HOLDFAST_DOCS_STORE_VERBS_H
#define HOLDFAST_DOCS_STORE_VERBS_H

#include "docs/store/rows.h"
#include "store/store.h"

#define DOCUMENT_VERBS(X)                                                                          \
    X(DOCUMENT, document, ROW)                                                                     \
    X(DOCUMENT_ENDED, document_ended, ROW)                                                         \
    X(DOCUMENT_BY_ID, document_by_id, ROW)                                                         \
    X(DOCUMENTS_PAGE, documents_page, PAGE)                                                        \
    X(DOCUMENT_HISTORY, document_history, PAGE)                                                    \
    X(DOCUMENT_REVISION, document_revision, ROW)                                                   \
    X(DOCUMENT_READS, document_reads, ROWS)

/* VERB_ENUM gives each line a name; the first one is VERB_FAMILY. */
enum document_verb {
    DOCUMENT_VERBS_BEFORE = VERB_FAMILY - 1,
    DOCUMENT_VERBS(VERB_ENUM) DOCUMENT_VERBS_END,
};
_Static_assert(DOCUMENT_VERBS_END <= VERB_COUNT, "raise VERB_COUNT");
/* The filter of verbs that name a document, or its folder only. */
struct document_place {
    struct str folder, path;
};

/* Documents; only store_document_reads() takes a principal. */
/* The live document at the path. */
must_check bool store_document(struct store *s, struct str folder, struct str path,
                               struct arena *mem, struct document_row **ret_row, struct error *err);
/* The document at the path that ended last, whether or not there is a live one. */
must_check bool store_document_ended(struct store *s, struct str folder, struct str path,
                                     struct arena *mem, struct document_row **ret_row,
                                     struct error *err);
/* Live or ended. */
must_check bool store_document_by_id(struct store *s, struct str id, struct arena *mem,
                                     struct document_row **ret_row, struct error *err);
/* The live documents of a folder, sorted by path (bytewise); `after` is a path (absent: from the
 * first). */
must_check bool store_documents_page(struct store *s, struct str folder, struct str after,
                                     unsigned limit, struct arena *mem,
                                     struct document_row **ret_rows, size_t *ret_n,
                                     struct error *err);
/* Revisions without content, newest first, with has_text; `before` is a revision (0: from the newest). */
must_check bool store_document_history(struct store *s, struct str document_id, int64_t before,
                                       unsigned limit, struct arena *mem,
                                       struct revision_row **ret_rows, size_t *ret_n,
                                       struct error *err);
/* A revision with its content; 0 is the newest.  The content is absent when it was deleted. */
must_check bool store_document_revision(struct store *s, struct str document_id, int64_t revision,
                                        struct arena *mem, struct revision_row **ret_row,
                                        struct error *err);
/* The reads of a document by a session of the caller's own, oldest first; at most
 * DOCUMENT_READS_MAX, with the current path of the document. */
must_check bool store_document_reads(struct store *s, const struct principal *who,
                                     struct str session_id, struct str document_id,
                                     struct arena *mem, struct document_read_row **ret_rows,
                                     size_t *ret_n, struct error *err);

#endif
