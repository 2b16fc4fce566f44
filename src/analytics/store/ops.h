/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of analytics.  Each function below makes one op for store_write(). */
#ifndef HOLDFAST_ANALYTICS_STORE_OPS_H
#define HOLDFAST_ANALYTICS_STORE_OPS_H

#include "analytics/store/rows.h"
#include "store/store.h"

enum analytics_op {
    OP_ROLLUPS_AGE = OP_FAMILY + 28,
    ANALYTICS_OPS_END,
};
_Static_assert(ANALYTICS_OPS_END <= OP_COUNT, "raise OP_COUNT");

/* Deletes at most age.most rollups of the tenant and step that begin before age.before, oldest first.
 * MISSING: there are none. */
static inline struct store_op op_rollups_age(struct rollup_age *age)
{
    return (struct store_op){.kind = OP_ROLLUPS_AGE, .row = age};
}

#endif
