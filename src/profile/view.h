/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a profile that one caller sees, as a value for one request.  The exchange fills it;
 * the profile's own tools (tools.h) read it.  It borrows everything. */
#ifndef HOLDFAST_PROFILE_VIEW_H
#define HOLDFAST_PROFILE_VIEW_H

#include "base/principal.h"
#include "profile/plan.h"
#include "profile/profile.h"

struct profile_view {
    const struct profile_config *profile;
    const struct principal *who;
    uint64_t permitted; /* the toolsets that the caller may enable … */
    uint64_t toolsets;  /* … and those in effect */
    struct upstreams *upstreams;
    const struct plan *plan; /* NULL: the servers were not asked for their catalogs */
    struct arena *mem;       /* the request's */
    const void *request;     /* argument of the two functions below */
    /* The catalog of the plan's i-th server for the session of the request; NULL: not known. */
    struct catalog *(*listed)(const void *request, size_t i);
    /* Whether Holdfast adds the argument session_id to the tools of this server. */
    bool (*adds_session_id)(const void *request, const struct upstream *up,
                            const struct catalog *c);
};

/* The number of servers in the plan. */
static inline size_t profile_view_parts(const struct profile_view *v)
{
    return v->plan ? v->plan->n : 0;
}

/* False for servers outside of the caller's scopes or of the profile. */
bool profile_sees_server(const struct profile_view *v, struct str server);
/* Whether the profile, with these toolsets, and the caller's scopes show this tool. */
bool profile_sees_tool(const struct profile_view *v, uint64_t toolsets, const struct upstream *up,
                       struct str tool);

/* A tool that the caller sees, of a server with a known catalog. */
struct seen_tool {
    struct upstream *up;
    struct catalog *catalog; /* borrowed */
    size_t item;
};
static inline struct str seen_tool_name(const struct seen_tool *t)
{
    return t->catalog->lists[CATALOG_TOOLS].items[t->item].name;
}
/* Calls fn for each such tool until it returns false.  Covers the servers of the plan if there is
 * one, else every server with a known catalog. */
void profile_each_tool(const struct profile_view *v,
                       bool (*fn)(void *arg, const struct seen_tool *tool), void *arg);
/* "files, mail": the servers that the caller may see, in order; in mem. */
struct str profile_servers(const struct profile_view *v);

#endif
