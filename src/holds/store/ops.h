/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of holds.  Each function below makes one op for store_write(). */
#ifndef HOLDFAST_HOLDS_STORE_OPS_H
#define HOLDFAST_HOLDS_STORE_OPS_H

#include "holds/store/rows.h"
#include "store/store.h"

enum hold_op {
    OP_HOLD_PUT = OP_FAMILY + 22,
    OP_HOLD_RELEASE,
    HOLD_OPS_END,
};
_Static_assert(HOLD_OPS_END <= OP_COUNT, "raise OP_COUNT");

/* All columns but released_ms and released_by.  MISSING when the tenant has no such session or user;
 * DUPLICATE when it is held already; LIMIT when the tenant has HOLDS_MAX live holds. */
static inline struct store_op op_hold_put(struct hold_row *row)
{
    return (struct store_op){.kind = OP_HOLD_PUT, .row = row};
}
/* id, tenant, released_ms, released_by.  The row stays for the record, the newest
 * HOLDS_RELEASED_KEPT of them.  MISSING when unknown or released. */
static inline struct store_op op_hold_release(struct hold_row *row)
{
    return (struct store_op){.kind = OP_HOLD_RELEASE, .row = row};
}

#endif
