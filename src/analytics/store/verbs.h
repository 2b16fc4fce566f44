/* SPDX-License-Identifier: Apache-2.0 */
/* The read verbs of analytics: a list beside STORE_VERBS (store/verbs.h). */
#ifndef HOLDFAST_ANALYTICS_STORE_VERBS_H
#define HOLDFAST_ANALYTICS_STORE_VERBS_H

#include "analytics/store/rows.h"
#include "store/store.h"

#define ANALYTICS_VERBS(X)                                                                         \
    X(ROLLUPS_PAGE, rollups_page, PAGE)                                                            \
    X(ROLLUP_TENANT, rollup_tenant, ROW)                                                           \
    X(ROLLUPS_PACK, rollups_pack, OTHER)

enum analytics_verb {
    ANALYTICS_VERBS_BEFORE = VERB_FAMILY + 40 - 1,
    ANALYTICS_VERBS(VERB_ENUM) ANALYTICS_VERBS_END,
};
_Static_assert(ANALYTICS_VERBS_END <= VERB_COUNT, "raise VERB_COUNT");

/* Rollups by span, label and writer.  The fold makes them in the transaction that moves its mark. */
must_check bool store_rollups_page(struct store *s, const struct rollup_filter *filter,
                                   unsigned limit, struct arena *mem, struct rollup_row **ret_rows,
                                   size_t *ret_n, struct error *err);
/* The first tenant after `after` that has rollups; absent: there is none. */
must_check bool store_rollup_tenant(struct store *s, struct str after, struct arena *mem,
                                    struct str *ret, struct error *err);
/* Packs the hours of one past day that ended before the span `before` (the beginning of a day), for at
 * most `most` sets of labels, in one transaction.  *ret_more: there are others.  SQLite packs nothing.
 * Runs on the write connection. */
must_check bool store_rollups_pack(struct store *s, struct str tenant, int64_t before,
                                   unsigned most, bool *ret_more, struct error *err);

#endif
