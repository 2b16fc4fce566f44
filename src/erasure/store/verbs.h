/* SPDX-License-Identifier: Apache-2.0 */
/* The read verbs of erasures: a list beside STORE_VERBS (store/verbs.h). */
#ifndef HOLDFAST_ERASURE_STORE_VERBS_H
#define HOLDFAST_ERASURE_STORE_VERBS_H

#include "erasure/store/rows.h"
#include "store/store.h"

#define ERASURE_VERBS_1(X)                                                                         \
    X(ERASURES_PAGE, erasures_page, PAGE)                                                          \
    X(ERASURE_LEFT, erasure_left, ROW)
#define ERASURE_VERBS_2(X)                                                                         \
    X(ERASURE_OWNERS, erasure_owners, ROWS)                                                        \
    X(ERASURE_DOCUMENTS, erasure_documents, PAGE)                                                  \
    X(ERASURE_CLEAN, erasure_clean, OTHER)

enum erasure_verb {
    ERASURE_VERBS_BEFORE = VERB_FAMILY + 34 - 1,
    ERASURE_VERBS_1(VERB_ENUM) ERASURE_VERBS_END,
    ERASURE_VERBS_2_BEFORE = VERB_FAMILY + 52 - 1,
    ERASURE_VERBS_2(VERB_ENUM) ERASURE_VERBS_2_END,
};
_Static_assert(ERASURE_VERBS_END <= VERB_FAMILY + 36, "these numbers are taken");
_Static_assert(ERASURE_VERBS_2_END <= VERB_FAMILY + 56, "these numbers are taken");

/* Erasures of one tenant, or of all (absent), newest first; `before` is an id (absent: from the
 * newest).  open_only: those that are not done. */
must_check bool store_erasures_page(struct store *s, struct str tenant, bool open_only,
                                    struct str before, unsigned limit, struct arena *mem,
                                    struct erasure_row **ret_rows, size_t *ret_n,
                                    struct error *err);
must_check bool store_erasure_left(struct store *s, struct str tenant, struct str user_id,
                                   struct arena *mem, struct erasure_left **ret_row,
                                   struct error *err);
/* The owners that the person is: the user, and every key of the user. */
must_check bool store_erasure_owners(struct store *s, struct str user_id, struct arena *mem,
                                     struct erasure_owner **ret_rows, size_t *ret_n,
                                     struct error *err);
/* Documents of a folder, by id; those that are gone, too. */
must_check bool store_erasure_documents(struct store *s, struct str folder, struct str after,
                                        unsigned limit, struct arena *mem,
                                        struct erasure_document **ret_rows, size_t *ret_n,
                                        struct error *err);
/* Takes what was deleted out of the files beside the database too.  *ret is false while a reader
 * prevents it.  Write lane. */
must_check bool store_erasure_clean(struct store *s, bool *ret, struct error *err);

#endif
