/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: the servers behind the endpoint of all servers, and what each offers right now.
 *
 * A server that is still starting is waited for once (upstream_patience_ms()); of one that is down
 * or slow what was known before stands in, or it is left out, and never spoils the others' lists.
 * Names of tools and prompts are "server__name" there; resources keep their uri and belong to the
 * first server that lists it.  Lives in an exchange's arena; loop thread only. */
#ifndef HOLDFAST_ROUTE_PLAN_H
#define HOLDFAST_ROUTE_PLAN_H

#include "upstream/upstream.h"

/* What a plan is needed for. */
enum plan_need {
    PLAN_KNOWN, /* whatever is known now; never waits */
    PLAN_ANY,   /* a catalog of each server, however old */
    PLAN_FRESH  /* lists as the servers have them now; what is left out is announced later */
};

struct plan_part {
    struct plan *plan;
    struct upstream *up;     /* a reference */
    struct catalog *catalog; /* a reference; NULL: not known, the server is left out */
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

/* Of those servers that `wants` says true for. */
typedef bool plan_wants_fn(void *arg, const struct upstream *u);
void plan_init(struct plan *p, struct loop *loop, struct upstreams *set, struct arena *mem,
               plan_wants_fn *wants, void *arg);
/* true: everything is known now.  false: `ready` comes from the loop, when the servers have
 * answered or none of them is to be waited for any longer. */
must_check bool plan_gather(struct plan *p, enum plan_need need, void (*ready)(struct plan *p));
void plan_release(struct plan *p); /* also while it waits */

#define ROUTE_SEPARATOR "__"

/* "files__read" → server "files", name "read"; false: one of the two is missing. */
must_check bool route_split(struct str full, struct str *ret_server, struct str *ret_name);
/* The server that lists this uri, else one with a template that makes it, else the only one with
 * resources; NULL: nobody. */
struct plan_part *plan_find_uri(struct plan *p, struct str uri);

#endif
