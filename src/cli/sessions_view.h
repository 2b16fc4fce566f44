/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on a terminal, from the objects of GET /api/v1/sessions/details. */
#ifndef HOLDFAST_CLI_SESSIONS_VIEW_H
#define HOLDFAST_CLI_SESSIONS_VIEW_H

#include "cli/audit_view.h"
#include "json/read.h"

/* Columns: session, status, client, user, servers, calls, last use, age. */
void sessions_view_begin(struct table *t, size_t width, bool colour);
void sessions_view_row(struct table *t, const struct js_doc *doc, const struct js_node *session,
                       struct audit_when when);
/* One session in lines of "name  value". */
void sessions_view_one(struct buf *out, const struct js_doc *doc, const struct js_node *session,
                       struct audit_when when, bool colour);
/* The name of the caller: user, else key, else the owner itself; in mem. */
struct str sessions_view_who(const struct js_doc *doc, const struct js_node *session,
                             struct arena *mem);

#endif
