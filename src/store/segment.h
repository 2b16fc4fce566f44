/* SPDX-License-Identifier: Apache-2.0 */
/* A segment holds events that were appended together as the bytes of one row.  One row per event
 * would cost the write lane more than all its other work on the event.
 *
 * A segment has events of consecutive ids.  `records` holds the lengths, the seal and the record
 * (store/record.h) of each event.  `bodies` holds the stored bodies one after the other, or is
 * absent once they were deleted.  The lengths are not sealed and need not be: with a wrong length a
 * record breaks its seal, and a body its digest. */
#ifndef HOLDFAST_STORE_SEGMENT_H
#define HOLDFAST_STORE_SEGMENT_H

#include "base/buf.h"
#include "store/rows.h"

/* Bytes that a segment holds of each event beside its record and body: the lengths and the seal. */
#define SEGMENT_FRAME 40
/* A segment is closed once it is this long; a single event may make it longer. */
#define SEGMENT_BYTES (64 * 1024)

struct segment {
    struct buf records, bodies;
    size_t n;
};
void segment_init(struct segment *s);
void segment_release(struct segment *s);
void segment_reset(struct segment *s);
void segment_add(struct segment *s, const struct event_row *e);
bool segment_is_full(const struct segment *s);

/* Iterates over the events of a segment in order of their ids; spans point into the segment's
 * bytes. */
struct segment_walk {
    int64_t id; /* id of the next event */
    struct str records, bodies;
};
/* An event with an unreadable record has only its id and, if its frame is whole, its seal, so that
 * verification can name the event.  Returns false at the end. */
bool segment_next(struct segment_walk *w, struct event_row *ret);

/* Returns the events from..upto of the segments that a backend finds, in order of their ids, or in
 * reverse when `down`. */
struct segment_scan {
    int64_t from, upto;
    bool down;
    struct segment_walk walk; /* of the current segment */
    struct event_row *aside;  /* when down: its events that are still to be returned */
    size_t n_aside, cap_aside;
};
/* The next event of the current segment; false: set `walk` to the next segment. */
bool segment_scan_next(struct segment_scan *s, struct event_row *ret);
void segment_scan_release(struct segment_scan *s);

#endif
