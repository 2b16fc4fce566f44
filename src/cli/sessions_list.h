/* SPDX-License-Identifier: Apache-2.0 */
/* Reads pages of GET /api/v1/sessions/details, and one session of it. */
#ifndef HOLDFAST_CLI_SESSIONS_LIST_H
#define HOLDFAST_CLI_SESSIONS_LIST_H

#include "cli/control.h"
#include "json/read.h"

struct sessions_ask {
    struct str status, client, server, user, tenant; /* as in the query; absent: none */
    unsigned limit;
};
typedef bool sessions_each_fn(void *arg, const struct js_doc *doc, const struct js_node *session);
/* Calls `each` for each session, newest first, at most ask->limit times, until it returns false.
 * The document is valid during the call.  *ret_more: there are sessions beyond the limit. */
must_check bool sessions_list(struct control *c, const struct sessions_ask *ask,
                              sessions_each_fn *each, void *arg, bool *ret_more, struct error *err);
/* The session with this session_id, row id or beginning of one.  *ret_json is in mem. */
must_check bool sessions_get(struct control *c, struct str name, struct str tenant,
                             struct arena *mem, struct str *ret_json, struct error *err);

#endif
