/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of analytics.  A rollup counts the calls of one span of time that have the same labels. */
#ifndef HOLDFAST_ANALYTICS_STORE_ROWS_H
#define HOLDFAST_ANALYTICS_STORE_ROWS_H

#include "store/rows.h"

/* Every call is counted in one rollup of each step.  The numbers are stored. */
enum rollup_step { STEP_5M, STEP_1H, STEP_1D, ROLLUP_STEPS };
/* Times of rollups are numbered in units of five minutes since 1970. */
#define SPAN_MS (INT64_C(5) * 60 * 1000)
extern const int64_t rollup_spans[ROLLUP_STEPS]; /* length of a step, in that unit */
/* A set of this many sessions is exact in the rollup of a step; a larger one becomes a sketch. */
extern const size_t rollup_sessions[ROLLUP_STEPS];
/* How long rollups of a step are kept; 0: for ever. */
extern const int64_t rollup_keep_ms[ROLLUP_STEPS];

/* A tenant has at most this many sets of labels in a day.  Further calls are counted with the tool,
 * client, era and carrier OTHER; with twice as many sets also with that server and user. */
#define ROLLUP_LABELS_MAX 1000
#define ROLLUP_OTHER "(other)"

struct rollup_row {
    int64_t span;          /* beginning */
    int64_t label, writer; /* with span, the key within a tenant and step */
    struct str server, tool, client, owner, era, carrier;
    struct str cells; /* analytics/store/cells.h; with the writer ROLLUP_PACKED: packed.h */
};
#define ROLLUP_PACKED (-1)

/* Rollups of one tenant and step.  Hours may be packed, so `since` is the beginning of a day there. */
struct rollup_filter {
    struct str tenant;
    int64_t step;
    int64_t since, until;                          /* spans; until is exclusive */
    int64_t after_span, after_label, after_writer; /* the page begins after this row */
    struct str owner;                              /* absent: of every owner */
};

/* Old rollups to delete. */
struct rollup_age {
    struct str tenant;
    int64_t step, before; /* a span */
    int64_t most;         /* rows */
};

#endif
