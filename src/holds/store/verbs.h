/* SPDX-License-Identifier: Apache-2.0 */
/* The read verbs of holds: a list beside STORE_VERBS (store/verbs.h). */
#ifndef HOLDFAST_HOLDS_STORE_VERBS_H
#define HOLDFAST_HOLDS_STORE_VERBS_H

#include "holds/store/rows.h"
#include "store/store.h"

#define HOLD_VERBS(X)                                                                              \
    X(HOLDS_PAGE, holds_page, PAGE)                                                                \
    X(HELD, held, ROWS)

enum hold_verb {
    HOLD_VERBS_BEFORE = VERB_FAMILY + 32 - 1,
    HOLD_VERBS(VERB_ENUM) HOLD_VERBS_END,
};
_Static_assert(HOLD_VERBS_END <= VERB_COUNT, "raise VERB_COUNT");

/* Holds of one tenant, or of all (absent), newest first; `before` is an id (absent: from the
 * newest).  live_only: without those that were released. */
must_check bool store_holds_page(struct store *s, struct str tenant, bool live_only,
                                 struct str before, unsigned limit, struct arena *mem,
                                 struct hold_row **ret_rows, size_t *ret_n, struct error *err);
/* Everything that is held now, of all tenants, in no order. */
must_check bool store_held(struct store *s, struct arena *mem, struct held_row **ret_rows,
                           size_t *ret_n, struct error *err);

#endif
