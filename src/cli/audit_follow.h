/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the events of a running Holdfast over GET /api/v1/events, those of all nodes on its
 * store. */
#ifndef HOLDFAST_CLI_AUDIT_FOLLOW_H
#define HOLDFAST_CLI_AUDIT_FOLLOW_H

#include "audit/position.h"
#include "cli/control.h"
#include "store/rows.h"

/* The position of the newest events.  False: this Holdfast does not stream them; the caller then
 * reads pages (audit_poll.h). */
must_check bool audit_follow_now(struct control *c, struct position *ret, struct error *err);
/* Calls `each` for every event after *at that `filters` ("types=outcome&server=files") let pass,
 * and moves *at along, until `each` returns false or nobody reads stdout any more.  When the stream
 * breaks, it connects again and goes on after the last event, also across a restart of Holdfast.
 * A row lives until `each` returns.  False: Holdfast refuses to stream. */
must_check bool audit_follow(struct control *c, struct str filters, struct position *at,
                             bool (*each)(void *arg, const struct event_row *e), void *arg,
                             struct error *err);

#endif
