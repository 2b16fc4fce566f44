/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the audit of a running Holdfast over GET /control/follow. */
#ifndef HOLDFAST_CLI_AUDIT_FOLLOW_H
#define HOLDFAST_CLI_AUDIT_FOLLOW_H

#include "cli/control.h"
#include "store/rows.h"

/* Calls `each` for every event after *after, and moves *after along, until `each` returns false.
 * When the stream breaks, it connects again and goes on after the last event, also across a restart
 * of Holdfast.  A row lives until `each` returns.
 *
 * Returns true when `each` ended it.  Returns false when Holdfast refuses to stream: the caller
 * then reads pages. */
must_check bool audit_follow(struct control *c, int64_t *after,
                             bool (*each)(void *arg, const struct event_row *e), void *arg);

#endif
