/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as the fold counts them: each execution once, by the event that ended it, which is its
 * outcome, a note or a record.  A later outcome that replaces a guess ("indeterminate") takes the
 * guess back.  Families (store/family.h) count the calls of a slice in the transaction that moves
 * the mark of its writer, so each call is counted exactly once. */
#ifndef HOLDFAST_STORE_COUNTED_H
#define HOLDFAST_STORE_COUNTED_H

#include "base/arena.h"
#include "base/map.h"
#include "store/rows.h"

/* The texts of a call by which calls are grouped; absent texts are empty.  Equal texts have one
 * struct for each map of counted_labels_of(). */
struct counted_labels {
    struct str tenant, server, tool, client, owner, era, carrier;
};

/* event_row.outcome as a number.  The numbers are stored, so they never change. */
enum counted_outcome {
    COUNTED_OK,
    COUNTED_TOOL_ERROR,
    COUNTED_ERROR,
    COUNTED_TIMEOUT,
    COUNTED_CANCELLED,
    COUNTED_REFUSED,
    COUNTED_UPSTREAM_LOST,
    COUNTED_INDETERMINATE,
    COUNTED_REDELIVERED,
    COUNTED_OTHER,
    COUNTED_OUTCOMES,
};
extern const char *const counted_outcome_names[COUNTED_OUTCOMES + 1]; /* NULL ends the list */

struct counted_call {
    const struct counted_labels *labels;
    struct str session_id; /* absent: none */
    int64_t at_ms;         /* of the event */
    int64_t duration_us;   /* 0: not known */
    int64_t request_bytes, response_bytes;
    int64_t tokens; /* as reported; 0: not reported */
    uint8_t outcome;
    bool is_undone; /* takes back what was counted for the same event */
};

/* The last labels are mostly also those of the next call. */
struct counted_names {
    struct map map;
    const struct counted_labels *last;
};
const struct counted_labels *counted_labels_of(struct counted_names *names, struct arena *mem,
                                               const struct event_row *e);
/* Whether the event is of a kind that ends an execution. */
bool counted_is_end(const struct event_row *e);
/* Texts are borrowed. */
struct counted_call counted_call_of(const struct event_row *e, const struct counted_labels *labels);

#endif
