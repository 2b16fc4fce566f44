/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as GET /api/v1/audit/executions lists them, newest first. */
#ifndef HOLDFAST_CLI_AUDIT_LIST_H
#define HOLDFAST_CLI_AUDIT_LIST_H

#include "audit/executions.h"
#include "cli/control.h"

#define AUDIT_LIST_PIECE 500

struct audit_list_ask {
    /* As in the query; absent: any. */
    struct str server, tool, session, outcome, since, until, user;
    bool errors;
    unsigned limit;
    /* NULL: all rows are returned.  Otherwise rows are passed to each() in pieces of up to
     * AUDIT_LIST_PIECE.  A piece is valid until each() returns; false ends the list. */
    bool (*each)(void *arg, const struct execution *rows, size_t n);
    void *arg;
};
/* *ret_rows is in mem; NULL with each().  *ret_n counts all rows. */
must_check bool audit_list(struct control *c, const struct audit_list_ask *ask, struct arena *mem,
                           struct execution **ret_rows, size_t *ret_n, struct error *err);
/* GET /api/v1/audit/executions/{id}: the body of the answer, in mem. */
must_check bool audit_get(struct control *c, int64_t id, struct arena *mem, struct str *ret_body,
                          struct error *err);
/* … and what it says: the execution, and its events with their bodies. */
must_check bool audit_read_execution(struct str body, struct arena *mem, struct execution *ret,
                                     struct event_row **ret_events, size_t *ret_n,
                                     struct error *err);

#endif
