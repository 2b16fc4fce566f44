/* SPDX-License-Identifier: Apache-2.0 */
/* An event as bytes: what its seal covers is what is stored, so nothing stored is uncovered.
 *
 * A record holds every field of the event but its id (the key of the row, sealed beside the
 * record), its body (which may be deleted; the digest stands here) and the seal itself.  One event
 * has one record and one record one event: readers refuse any other spelling, so a changed byte
 * either changes a field or cannot be read. */
#ifndef HOLDFAST_STORE_RECORD_H
#define HOLDFAST_STORE_RECORD_H

#include "store/rows.h"

/* Bytes that the record of `e` takes at most. */
size_t record_room(const struct event_row *e);
/* Writes it to `to`, which has room; returns its length. */
size_t record_write(const struct event_row *e, char *to);
/* Fills every field of *ret that a record holds, and `id`; texts point into `record`.  false, and
 * *ret untouched, when these bytes are no record. */
must_check bool record_read(int64_t id, struct str record, struct event_row *ret);

#endif
