/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes rollups that are older than their step is kept (rollup_keep_ms), and packs the hours of past
 * days (store/packed.h), some rows at a time. */
#ifndef HOLDFAST_ANALYTICS_AGES_H
#define HOLDFAST_ANALYTICS_AGES_H

#include "store/lanes.h"

struct rollup_ages;
struct rollup_ages *rollup_ages_new(struct loop *loop, struct lanes *lanes) must_check;
void rollup_ages_free(struct rollup_ages *a); /* after lanes_free */

/* One round, for each tenant; blocking.  Deletes at most ROLLUP_AGES_MOST rows per tenant and step. */
#define ROLLUP_AGES_MOST 2000
must_check bool rollup_ages_run(struct store *store, int64_t now_ms, struct error *err);

/* Packs some hours of one tenant; blocking.  *ret_more: there may be others. */
must_check bool rollup_pack_run(struct store *store, int64_t now_ms, bool *ret_more,
                                struct error *err);

#endif
