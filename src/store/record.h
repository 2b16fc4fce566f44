/* SPDX-License-Identifier: Apache-2.0 */
/* An event as bytes.  The seal covers exactly the stored bytes, so no stored field is unprotected.
 *
 * A record holds every field of the event except for three: the id (the key of the row, sealed
 * beside the record), the body (which may be deleted; the record has its digest) and the seal
 * itself.  Each event has exactly one record, and each record one event.  Readers refuse any other
 * encoding, so a changed byte either changes a field or makes the record unreadable. */
#ifndef HOLDFAST_STORE_RECORD_H
#define HOLDFAST_STORE_RECORD_H

#include "store/rows.h"

/* The maximum length of the record of `e`. */
size_t record_room(const struct event_row *e);
/* The exact length of the record of `e`. */
size_t record_length(const struct event_row *e);
/* Writes the record to `to`, which has record_room() bytes; returns its length. */
size_t record_write(const struct event_row *e, char *to);
/* Sets every field of *ret that a record holds, and `id`; texts point into `record`.  Returns false
 * and leaves *ret untouched when the bytes are not a record. */
must_check bool record_read(int64_t id, struct str record, struct event_row *ret);

#endif
