/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of sinks.  Each function below makes one op for store_write(). */
#ifndef HOLDFAST_SINKS_STORE_OPS_H
#define HOLDFAST_SINKS_STORE_OPS_H

#include "sinks/store/rows.h"
#include "store/store.h"

enum sink_op {
    OP_SINK_TAKE = OP_FAMILY + 32,
    OP_SINK_SAVE,
    SINK_OPS_END,
};
_Static_assert(SINK_OPS_END <= OP_COUNT, "raise OP_COUNT");

/* Makes this process the one that sends, until the lease lapses.  DUPLICATE: another one has a lease
 * that runs, and its writer has not ended.  The position stays. */
static inline struct store_op op_sink_take(struct sink_claim *c)
{
    return (struct store_op){.kind = OP_SINK_TAKE, .row = c};
}
/* Saves the position and prolongs the lease.  MISSING: this process does not send any more, because
 * another one took the sink; then nothing is saved. */
static inline struct store_op op_sink_save(struct sink_claim *c)
{
    return (struct store_op){.kind = OP_SINK_SAVE, .row = c};
}

#endif
