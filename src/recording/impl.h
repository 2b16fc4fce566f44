/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder. */
#ifndef HOLDFAST_RECORDING_IMPL_H
#define HOLDFAST_RECORDING_IMPL_H

#include "recording/recording.h"

/* The events of one call, with their bodies. */
struct joined {
    struct event_row *begin;   /* intent, note or record */
    struct event_row *outcome; /* NULL: a note or a record, or open */
};
/* call.c: everything but `number`.  Spans point into the events or into `mem`. */
void recorded_call_join(const struct joined *j, struct arena *mem, struct recorded_call *ret);
/* A member of a JSON object, as it is; absent: there is none.  In mem. */
struct str recorded_member(struct str json, struct str name, struct arena *mem);

#endif
