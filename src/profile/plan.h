/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: the servers behind the endpoint of all servers, and the present catalog of each.
 *
 * The plan waits once for a server that is still starting (upstream_patience_ms()).  For a server
 * that is down or slow it uses the last known catalog, or leaves the server out; the lists of other
 * servers are not affected.  Names of tools and prompts are "server__name" there; a resource keeps
 * its uri and belongs to the first server that lists it.  Lives in an exchange's arena; loop thread
 * only. */
#ifndef HOLDFAST_PROFILE_PLAN_H
#define HOLDFAST_PROFILE_PLAN_H

#include "upstream/upstream.h"

/* The requirement on the catalogs. */
enum plan_need {
    PLAN_KNOWN, /* the last known catalogs; never waits */
    PLAN_ANY,   /* a catalog of each server, of any age */
    PLAN_FRESH  /* current lists; servers left out are announced later */
};

struct plan_part {
    struct plan *plan;
    struct upstream *up;     /* holds a reference */
    struct catalog *catalog; /* holds a reference; NULL: not known, the server is left out */
    struct catalog_want want;
    bool waiting;
};

struct plan {
    struct loop *loop;
    struct arena *mem;
    struct plan_part *parts;
    size_t n;
    enum plan_need need;
    unsigned waiting;
    struct loop_timer *patience;
    void (*ready)(struct plan *p);
};

/* Chooses the servers for which `wants` returns true. */
typedef bool plan_wants_fn(void *arg, const struct upstream *u);
void plan_init(struct plan *p, struct loop *loop, struct upstreams *set, struct arena *mem,
               plan_wants_fn *wants, void *arg);
/* True: all catalogs are there.  False: the loop calls `ready` when the servers have answered or
 * the waiting time is over. */
must_check bool plan_gather(struct plan *p, enum plan_need need, void (*ready)(struct plan *p));
void plan_release(struct plan *p); /* also while it waits */

#define ROUTE_SEPARATOR "__"

/* "files__read" → server "files", name "read"; false: either is missing. */
must_check bool route_split(struct str full, struct str *ret_server, struct str *ret_name);
/* The server that lists this uri, else one with a matching template, else the only one with
 * resources; NULL: there is none. */
struct plan_part *plan_find_uri(struct plan *p, struct str uri);

#endif
