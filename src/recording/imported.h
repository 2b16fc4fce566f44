/* SPDX-License-Identifier: Apache-2.0 */
/* A call of another Holdfast as one event of this one (EVENT_IMPORT).
 *
 * Its texts, outcome, duration and tokens are in their columns.  `origin` has what no column holds:
 *
 *   {"kind":"call","id":"3.17","parent":"3.9","at_ms":…,"owner":"…",
 *    "params":{"state":"redacted","length":812,"sha256":"…"},"result":{"state":…}}
 *
 * The body of the event is {"params":{"json":…},"result":{"text":…}} (recording/bytes.h), with only
 * the bodies that there are.  So a removed body takes no digest, time or outcome along. */
#ifndef HOLDFAST_RECORDING_IMPORTED_H
#define HOLDFAST_RECORDING_IMPORTED_H

#include "recording/recording.h"

/* Sets kind, texts, outcome, `origin` and body with its digests; tenant, owner, session and time are
 * the caller's.  Spans are those of `c`, or in mem. */
void imported_call_write(const struct recorded_call *c, struct arena *mem, struct event_row *e);
/* The call without `number`; a body that is absent now was removed. */
void imported_call_read(const struct event_row *e, struct arena *mem, struct recorded_call *ret);
/* When the call of such an event began, by the clock of its origin. */
int64_t imported_call_at(const struct event_row *e);

#endif
