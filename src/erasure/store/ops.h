/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of erasures.  Each can be repeated after a crash: what is gone stays gone. */
#ifndef HOLDFAST_ERASURE_STORE_OPS_H
#define HOLDFAST_ERASURE_STORE_OPS_H

#include "erasure/store/rows.h"
#include "store/store.h"

enum erasure_op {
    OP_ERASURE_BEGIN = OP_FAMILY + 38,
    OP_ERASURE_MOVE,
    OP_ERASURE_ROWS,
    OP_ERASURE_AUTHORS,
    OP_ERASURE_NAMES,
    OP_ERASURE_DONE,
    ERASURE_OPS_END,
};
_Static_assert(ERASURE_OPS_END <= OP_COUNT, "raise OP_COUNT");

/* A new row.  Ends the user and the user's sign-ins, and revokes the user's keys.  MISSING: the tenant
 * has no such user; DUPLICATE: an erasure of the user is under way; NOT_ACTIVE: the user is held. */
static inline struct store_op op_erasure_begin(struct erasure_row *row)
{
    return (struct store_op){.kind = OP_ERASURE_BEGIN, .row = row, .required = true};
}
/* In the batch that removes bodies.  STALE when next_id is not `from`: another process goes on. */
static inline struct store_op op_erasure_move(struct erasure_move *row)
{
    return (struct store_op){.kind = OP_ERASURE_MOVE, .row = row, .required = true};
}
/* Deletes up to `most` sessions of the person that are not held, and all transports, undelivered
 * results, stored answers and bindings; removes the names of the clients with which the person joined
 * sessions of others.  Always OK. */
static inline struct store_op op_erasure_rows(struct erasure_rows *row)
{
    return (struct store_op){.kind = OP_ERASURE_ROWS, .row = row};
}
/* The revisions of these documents by this author are by ERASED_AUTHOR.  Always OK. */
static inline struct store_op op_erasure_authors(struct erasure_authors *row)
{
    return (struct store_op){.kind = OP_ERASURE_AUTHORS, .row = row};
}
/* id, tenant, user_id: the user is called erased-ID, the user's keys have no name, holds of the user
 * no reason, and the row no names.  Always OK. */
static inline struct store_op op_erasure_names(struct erasure_row *row)
{
    return (struct store_op){.kind = OP_ERASURE_NAMES, .row = row};
}
/* id, held.  STALE when it is done already. */
static inline struct store_op op_erasure_done(struct erasure_row *row)
{
    return (struct store_op){.kind = OP_ERASURE_DONE, .row = row, .required = true};
}

#endif
