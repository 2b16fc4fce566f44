/* SPDX-License-Identifier: Apache-2.0 */
/* One removal: a batch of ops that takes events or their bodies out of stored segments.
 *
 *   store_retention_state(…)                     // first of all reads
 *   removal_init(&r, mem, state->version);
 *   for each segment: removal_segment(&r, segment, events, fates)
 *   removal_end(&r);
 *   lane_write() with r.ops, of which the first is required: STALE when somebody removed or held
 *   something since the version was read; read and plan again.
 *
 * Whoever removes events adds their checkpoints with removal_add().  Nothing else is needed to remove
 * bodies: their digests stay in the sealed records.  Only folded events may be changed
 * (store_folded()). */
#ifndef HOLDFAST_RETENTION_REMOVAL_H
#define HOLDFAST_RETENTION_REMOVAL_H

#include "retention/store/ops.h"
#include "retention/store/verbs.h"
#include "store/sizes.h"

enum fate { FATE_STAYS, FATE_LOSES_BODY, FATE_GOES };

struct removal {
    struct arena *mem; /* of the caller; holds everything below */
    struct retention_state state;
    struct store_op *ops;
    size_t n, cap;
    struct tally_row *tallies;
    size_t n_tallies, cap_tallies;
    struct size_gone *gone; /* of every change */
    size_t n_gone, cap_gone;
    struct execution_gone *removed;
    int64_t *bodies; /* executions */
    size_t n_removed, cap_removed, n_bodies, cap_bodies;
    size_t changes;      /* events that went or lost their body */
    size_t whole;        /* of these, events that went */
    int64_t freed_bytes; /* plain bytes of records and bodies */
};
void removal_init(struct removal *r, struct arena *mem, int64_t version);
/* The events of a segment, in `mem`; an event with an unreadable record has no tenant. */
struct event_row *segment_events(const struct segment_row *segment, struct arena *mem);
/* False: some of it cannot be read.  Such a segment is evidence, so nothing of it is removed. */
bool segment_is_sound(const struct segment_row *segment, const struct event_row *events);
/* Writes the segment anew; nothing if every fate is FATE_STAYS, or if it is not sound.
 * `segment` was read with its bodies. */
void removal_segment(struct removal *r, const struct segment_row *segment,
                     const struct event_row *events, const enum fate *fates);
void removal_add(struct removal *r, struct store_op op);
void removal_tally(struct removal *r, const struct tally_row *add);
/* Adds the ops for sums and executions. */
void removal_end(struct removal *r);

#endif
