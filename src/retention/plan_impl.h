/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the plan. */
#ifndef HOLDFAST_RETENTION_PLAN_IMPL_H
#define HOLDFAST_RETENTION_PLAN_IMPL_H

#include "base/map.h"
#include "retention/plan.h"

/* Of one slice.  A client that calls alone makes a segment of each event. */
#define PLAN_SEGMENTS STORE_PAGE_MAX
#define PLAN_EVENTS_PAGE 640
#define PLAN_OPS_MAX 480 /* less than a batch of the write lane */
#define PLAN_EVENTS_FEW 40

struct checkpoints;
enum plan_phase { PLAN_BODIES, PLAN_EVENTS, PLAN_DONE };
struct plan {
    struct chain *chain;
    struct rules *rules;
    struct arena *mem;
    int64_t version, now_ms;
    struct folded_row *writers;
    size_t n_writers;
    int64_t *open; /* intents without an outcome */
    size_t n_open;
    enum plan_phase phase;
    int64_t before_ms; /* nothing younger is removed in this phase */
    size_t at;         /* the writer */
    int64_t next;      /* its next segment; 0: it begins */
    unsigned segments_max;
    size_t events_max; /* of a slice may go */
    /* The walk through the events of one writer. */
    struct arena *walk_mem;
    struct checkpoints *known; /* of the writer, when the walk began */
    struct map links;          /* by tenant */
    char complaint[512];
};

/* What one call of plan_next() looks at. */
struct slice {
    struct arena *mem;
    struct segment_row *segments;
    size_t n_segments;
    struct event_row *events; /* of all segments */
    enum fate *fates;
    size_t n;
    int64_t last_id; /* of the writer */
};
must_check bool plan_read(struct plan *p, struct store *store, struct slice *sl, struct error *err);
void plan_next_phase(struct plan *p);
bool plan_is_open(const struct plan *p, const struct event_row *e);

/* plan_events.c */
must_check bool plan_begin_writer(struct plan *p, struct store *store, struct error *err);
/* Decides about the events of the slice, and adds their checkpoints.  ERR_CHAIN_BROKEN: one of them
 * was tampered with; nothing was decided. */
must_check bool plan_events(struct plan *p, struct store *store, struct slice *sl,
                            struct removal *r, struct error *err);

#endif
