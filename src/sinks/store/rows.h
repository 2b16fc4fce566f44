/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of sinks: how far each sink is, and which process sends. */
#ifndef HOLDFAST_SINKS_STORE_ROWS_H
#define HOLDFAST_SINKS_STORE_ROWS_H

#include "store/rows.h"

#define SINK_LEASE_MS (INT64_C(15) * 1000)

struct sink_row {
    struct str name;
    struct str
        position; /* of audit/position.h: its receiver has everything up to here; absent: nothing was sent yet */
    int64_t writer; /* the process that sends; 0: none */
    int64_t saved_ms;
};

/* What one process asks for.  now_ms counts in the memory store and in SQLite; PostgreSQL uses its
 * own clock, so that the clocks of nodes do not matter. */
struct sink_claim {
    struct str name;
    struct str position; /* absent: it stays */
    int64_t writer;      /* of this process */
    int64_t lease_ms;    /* from now on; 0: the sink is released */
    int64_t now_ms;
    bool is_alone; /* no other process can use this store: the lease of another writer is void */
};

#endif
