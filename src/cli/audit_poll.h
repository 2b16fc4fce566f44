/* SPDX-License-Identifier: Apache-2.0 */
/* New events by reading pages, for a store that a Holdfast does not stream.  Several nodes may
 * write to it at once, each with ids of its own, so there is one cursor per writer. */
#ifndef HOLDFAST_CLI_AUDIT_POLL_H
#define HOLDFAST_CLI_AUDIT_POLL_H

#include "audit/source.h"

/* The writers with the greatest numbers.  A new writer always has a greater number. */
#define AUDIT_POLL_WRITERS 16
struct audit_cursors {
    int64_t last[AUDIT_POLL_WRITERS]; /* the last event of each; the greatest id first */
    size_t n;
};
/* The newest event of each of the `max` writers with the greatest numbers. */
must_check bool audit_cursors_read(struct event_source *s, size_t max, struct audit_cursors *ret,
                                   struct error *err);
/* All events of this writer up to this id are known. */
void audit_cursors_move(struct audit_cursors *c, int64_t id);

/* Calls `each` for every event after the cursors that passes the filter, and moves the cursors
 * along, until `each` returns false.  Returns false on an error. */
must_check bool audit_poll(struct event_source *s, const struct event_filter *filter,
                           struct audit_cursors *cursors,
                           bool (*each)(void *arg, const struct event_row *e), void *arg,
                           struct error *err);

#endif
