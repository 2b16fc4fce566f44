/* SPDX-License-Identifier: Apache-2.0 */
/* The tool run of a search profile: reads the call, checks its parameters, rewrites the request. */
#ifndef HOLDFAST_PROFILE_RUN_H
#define HOLDFAST_PROFILE_RUN_H

#include "mcp/message.h"
#include "profile/tools.h"

/* A request's memory holds its body once.  The rewritten request needs as much again. */
#define RUN_MEMORY (64u << 20)
#define RUN_NAME_MAX 2048 /* no tool has a longer name */

extern const char run_definition[];

struct run_request {
    struct str full;         /* "server:tool", as the call has it */
    struct str server, tool; /* the parts of `full`; server absent: it has no parts */
    const struct js_doc *doc;
    const struct js_node *parameters; /* an object; NULL: none */
    bool is_dry;
};
/* The tool that a call names. */
struct run_target {
    const struct upstream *up;
    const struct catalog *catalog;
    const struct catalog_item *item;
};

/* Reads the arguments; returns the refusal, or NULL. */
const char *run_request_read(const struct profile_arguments *a, struct arena *mem,
                             struct run_request *ret);
/* Refusals, in the memory of the request: no such tool, with the names nearest to it; no such
 * server; a server whose catalog is not known, and what to do. */
struct str run_unknown_tool(const struct profile_view *v, const struct run_request *r);
struct str run_unknown_server(const struct profile_view *v, struct str server);
struct str run_unknown_catalog(const struct upstream *up, struct arena *mem);
/* False: the tool's schema refuses the parameters, and *ret_refusal says where.  *ret_unsure: why
 * it is not known whether they fit; absent when they do. */
must_check bool run_check(const struct profile_view *v, const struct run_request *r,
                          const struct run_target *t, struct str *ret_unsure,
                          struct profile_answer *ret_refusal);
/* The answer of a dry run: the request that would be sent. */
void run_preview(const struct run_request *r, struct str unsure, struct arena *mem,
                 struct profile_answer *ret);
/* The message `m` as the tool's own endpoint would have got it, in mem. */
struct str run_rewritten(const struct run_request *r, const struct mcp_message *m,
                         struct arena *mem);

#endif
