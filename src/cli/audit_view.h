/* SPDX-License-Identifier: Apache-2.0 */
/* The audit on a terminal.  Every text from a peer is escaped, so that it cannot move the cursor,
 * reverse the text direction or set a title. */
#ifndef HOLDFAST_CLI_AUDIT_VIEW_H
#define HOLDFAST_CLI_AUDIT_VIEW_H

#include "audit/executions.h"
#include "base/buf.h"
#include "cli/table.h"
#include "cli/when.h"

/* A list: time, id, who, server, tool, outcome, duration, session.  A story: time, who, client,
 * outcome, duration, call with its error and arguments.  Events that are not calls: time, id, event,
 * sentence. */
enum audit_view_kind { AUDIT_VIEW_LIST, AUDIT_VIEW_STORY, AUDIT_VIEW_EVENTS };
struct audit_when {
    int64_t now_ms; /* times of the same day are shown without the date */
    bool utc;
};
void audit_view_begin(struct table *t, enum audit_view_kind kind, size_t width, bool colour);
void audit_view_list_row(struct table *t, const struct execution *x, struct audit_when when);
void audit_view_story_row(struct table *t, const struct execution *x, struct audit_when when);
void audit_view_event(struct table *t, const struct event_row *e, struct audit_when when);
/* The name of the caller: user, else key, else the owner itself. */
struct str audit_view_who(const struct execution *x);
/* One execution in full, bodies pretty-printed. */
void audit_view_execution(struct buf *out, const struct execution *x,
                          const struct event_row *events, size_t n, bool colour);
/* JSON with two-space indentation.  Scalars keep their bytes, except that characters unsafe for a
 * terminal are escaped.  Text that is not JSON is escaped as a whole. */
void audit_view_json(struct buf *out, struct str json);

#endif
