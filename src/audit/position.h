/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a reader in the events of all writers, as text: "7.120,9.44".
 *
 * The events of one writer have consecutive ids and commit in their order, but several writers
 * (nodes that share a store) commit beside each other.  So a reader is at one place per writer:
 * "7.120" says that it has read the events of writer 7 up to the 120th.
 * - A writer that is not named and lower than the highest named one is read to its end.
 * - A writer above the highest named one is unread.
 * - The position "0" names no writer: nothing is read.
 *
 * With one writer, the position is the id of the last event that was read. */
#ifndef HOLDFAST_AUDIT_POSITION_H
#define HOLDFAST_AUDIT_POSITION_H

#include "audit/event_id.h"

/* Most writers in one position.  If a reader meets more, the lowest one counts as read to its
 * end. */
#define POSITION_WRITERS_MAX 64
#define POSITION_TEXT (POSITION_WRITERS_MAX * 22)

struct position {
    size_t n;
    int64_t last[POSITION_WRITERS_MAX]; /* event ids, the writers ascending */
};

/* How far position `a` is, seen from `b`. */
enum position_order {
    POSITION_SAME,
    POSITION_BEFORE, /* an event is unread at `a` and read at `b`, and none the other way round */
    POSITION_AFTER,  /* likewise, the other way round */
    POSITION_APART   /* each has read events that the other has not */
};

/* "0", or ids as event_id_parse() reads them, separated by commas, the writers ascending.  *ret is
 * untouched on failure. */
must_check bool position_parse(struct str text, struct position *ret);
/* Returns ret_text. */
const char *position_format(const struct position *p, char ret_text[POSITION_TEXT]);
/* The event is unread at this position. */
bool position_is_before(const struct position *p, int64_t id);
/* The reader has read the event `id`, and all earlier ones of its writer.  An event that was read
 * already changes nothing.  For a writer above all that are named, the writers in between are named
 * too, as unread: their first events may become visible later. */
void position_advance(struct position *p, int64_t id);
/* The writer has ended and is read to its end: it need not be named any more.  The highest named
 * writer stays. */
void position_forget(struct position *p, int64_t writer);
enum position_order position_compare(const struct position *a, const struct position *b);
/* Every unread event has an id greater than this one: where pages of all writers begin. */
int64_t position_lowest(const struct position *p);

#endif
