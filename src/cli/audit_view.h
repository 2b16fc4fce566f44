/* SPDX-License-Identifier: Apache-2.0 */
/* The audit on a terminal.  Every text from a peer is escaped, so that it cannot move the cursor,
 * reverse the text direction or set a title. */
#ifndef HOLDFAST_CLI_AUDIT_VIEW_H
#define HOLDFAST_CLI_AUDIT_VIEW_H

#include "audit/executions.h"
#include "base/buf.h"

/* Aligned columns: time, id, server, tool, outcome, duration, session; with `head`, a head line.
 * Columns fit the rows and are never narrower than `widths` from an earlier call, so that a stream
 * of calls stays aligned.  `widths` is zeroed before the first call. */
struct audit_widths {
    size_t server, tool, id;
};
void audit_view_rows(struct buf *out, const struct execution *rows, size_t n,
                     struct audit_widths *widths, bool head, bool colour);
/* One event that is not a call, as a line: time, id, event, sentence. */
void audit_view_event(struct buf *out, const struct event_row *e, bool head);
/* One execution in full, bodies pretty-printed. */
void audit_view_execution(struct buf *out, const struct execution *x,
                          const struct event_row *events, size_t n, bool colour);
/* JSON with two-space indentation.  Scalars keep their bytes, except that characters unsafe for a
 * terminal are escaped.  Text that is not JSON is escaped as a whole. */
void audit_view_json(struct buf *out, struct str json);

#endif
