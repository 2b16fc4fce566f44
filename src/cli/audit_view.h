/* SPDX-License-Identifier: Apache-2.0 */
/* How the audit looks on a terminal.  Everything a peer wrote is escaped: no byte of it can move
 * the cursor, turn the text around or set a title. */
#ifndef HOLDFAST_CLI_AUDIT_VIEW_H
#define HOLDFAST_CLI_AUDIT_VIEW_H

#include "audit/executions.h"
#include "base/buf.h"

/* Aligned columns: time, id, server, tool, outcome, duration, session; with a head line when asked.
 * Widths fit the rows given, never below `widths` of an earlier call, so that a stream of calls
 * stays aligned; start it zeroed. */
struct audit_widths {
    size_t server, tool, id;
};
void audit_view_rows(struct buf *out, const struct execution *rows, size_t n,
                     struct audit_widths *widths, bool head, bool colour);
/* One event that is no call, as a line: time, id, what, and its sentence. */
void audit_view_event(struct buf *out, const struct event_row *e, bool head);
/* One execution in full, bodies pretty-printed. */
void audit_view_execution(struct buf *out, const struct execution *x,
                          const struct event_row *events, size_t n, bool colour);
/* JSON with two-space indentation, scalars as they came but for what a terminal must not see; other
 * bytes as escaped text. */
void audit_view_json(struct buf *out, struct str json);

#endif
