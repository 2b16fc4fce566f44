/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of the calls of one span with the same labels: one cell for each outcome.  Stored
 * as a few bytes (cells_write). */
#ifndef HOLDFAST_ANALYTICS_STORE_CELLS_H
#define HOLDFAST_ANALYTICS_STORE_CELLS_H

#include "analytics/store/distinct.h"
#include "analytics/store/durations.h"
#include "base/buf.h"
#include "store/counted.h"

struct cell {
    int64_t calls, request_bytes, response_bytes;
    int64_t tokens;             /* as reported */
    int64_t tokens_estimated;   /* of calls that reported none: a quarter of their bytes */
    struct durations durations; /* of calls with a known duration */
    struct distinct sessions;   /* of calls whose outcome is known */
};

struct cells {
    struct cell *of[COUNTED_OUTCOMES]; /* on the heap; NULL: no calls */
};

void cell_release(struct cell *c);
void cells_release(struct cells *c);
void cells_count(struct cells *c, const struct counted_call *call, size_t most_sessions);
/* Adds a cell to another; both then count all calls. */
void cell_merge(struct cell *c, const struct cell *more, size_t most_sessions);
/* Adds stored cells.  false: the bytes are none that cells_write() made; nothing was added. */
must_check bool cells_add_stored(struct cells *c, struct str bytes, size_t most_sessions);
/* Appends the bytes.  Returns the number of calls; with 0 there is nothing to store. */
int64_t cells_write(struct cells *c, size_t most_sessions, struct buf *out);

#endif
