/* SPDX-License-Identifier: Apache-2.0 */
/* Events that were appended together, as the bytes of one row: a row for every event would cost the
 * write lane more than all else it does with it.
 *
 * A segment is events of consecutive ids.  `records` holds for each its lengths, its seal and its
 * record (store/record.h); `bodies` the stored bodies, one behind the other, or is absent once they
 * were deleted.  The lengths are not sealed, and need not be: read wrongly, a record breaks its
 * seal and a body its digest. */
#ifndef HOLDFAST_STORE_SEGMENT_H
#define HOLDFAST_STORE_SEGMENT_H

#include "base/buf.h"
#include "store/rows.h"

/* A segment is closed once it is this long; a single event may be longer. */
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

/* Walks the events of a segment in order of their ids; spans point into its bytes. */
struct segment_walk {
    int64_t id; /* of the next event */
    struct str records, bodies;
};
/* An event whose record cannot be read has its id, its seal and no other fields: whoever verifies
 * names it.  false at the end. */
bool segment_next(struct segment_walk *w, struct event_row *ret);

/* The events from..upto of segments that a backend finds, told in order of their ids, or from the
 * end when `down`. */
struct segment_scan {
    int64_t from, upto;
    bool down;
    struct segment_walk walk; /* of the segment at hand */
    struct event_row *aside;  /* its events that are still to be told, when down */
    size_t n_aside, cap_aside;
};
/* The next event of the segment at hand; false: `walk` wants the next segment. */
bool segment_scan_next(struct segment_scan *s, struct event_row *ret);
void segment_scan_release(struct segment_scan *s);

#endif
