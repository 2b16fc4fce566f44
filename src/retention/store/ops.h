/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of retention.  A batch that removes something begins with op_retention_begin(), so that
 * nothing is removed that changed since it was read. */
#ifndef HOLDFAST_RETENTION_STORE_OPS_H
#define HOLDFAST_RETENTION_STORE_OPS_H

#include "retention/store/rows.h"
#include "store/store.h"

enum retention_op {
    OP_RETENTION_BEGIN = OP_FAMILY + 16,
    OP_SEGMENT_DROP,
    OP_SEGMENT_PUT,
    OP_REMOVED_PUT,
    OP_TALLY_ADD,
    OP_EXECUTIONS_GONE,
    RETENTION_OPS_END,
};
_Static_assert(RETENTION_OPS_END <= OP_COUNT, "raise OP_COUNT");

/* version: as store_retention_state() returned it before anything else was read.  The version becomes
 * version + 1.  STALE, and with it the whole batch, when something was removed or held since. */
static inline struct store_op op_retention_begin(struct retention_state *row)
{
    return (struct store_op){.kind = OP_RETENTION_BEGIN, .row = row, .required = true};
}
/* id: deletes the segment.  Always OK. */
static inline struct store_op op_segment_drop(struct segment_row *row)
{
    return (struct store_op){.kind = OP_SEGMENT_DROP, .row = row};
}
/* All members; bodies absent: it has none.  Replaces a segment of that id.  The events must be those
 * that are stored, or some of them, with or without their bodies. */
static inline struct store_op op_segment_put(struct segment_row *row)
{
    return (struct store_op){.kind = OP_SEGMENT_PUT, .row = row};
}
/* All members.  Replaces the checkpoints of the chain between first_seq and last_seq. */
static inline struct store_op op_removed_put(struct removed_row *row)
{
    return (struct store_op){.kind = OP_REMOVED_PUT, .row = row};
}
/* Adds to the sums; a row with only zeros is deleted. */
static inline struct store_op op_tally_add(struct tally_row *row)
{
    return (struct store_op){.kind = OP_TALLY_ADD, .row = row};
}
/* The projections of executions follow: of `removed` nothing stays, of `bodies` neither arguments nor
 * result. */
static inline struct store_op op_executions_gone(struct executions_gone *row)
{
    return (struct store_op){.kind = OP_EXECUTIONS_GONE, .row = row};
}

#endif
