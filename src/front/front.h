/* SPDX-License-Identifier: Apache-2.0 */
/* The way in.  Modules register their routes with front_add().  front_gate() checks the head of a
 * request before its body is read and finds its route; front_handle() gets the whole request and
 * admits it (admit.h) before the route's handler runs. */
#ifndef HOLDFAST_FRONT_FRONT_H
#define HOLDFAST_FRONT_FRONT_H

#include "front/admit.h"
#include "http/router.h"

/* Flags of a route. */
enum {
    ROUTE_JSON_BODY = 1,   /* the request must have Content-Type: application/json */
    ROUTE_SOCKET_ONLY = 2, /* the route exists only on the unix socket */
    ROUTE_HEAD = 4,        /* a GET that also serves HEAD */
};

#define FRONT_NOTHING_HERE "there is nothing here; MCP servers are under /mcp and /mcp/{server}"

struct front_route {
    const char *method, *pattern; /* as in http/router.h */
    admitted_fn *fn;
    const char *summary; /* one line */
    unsigned flags;
    const struct need *need;
    refused_fn *refuse; /* NULL: plain_refuse() */
    const void *data;   /* for fn: what this row is */
    void *arg;          /* for fn and refuse; set by front_add() */
};

/* Routes under a prefix of their own, and the form of the refusals there. */
struct front_format {
    const char *prefix; /* "/api/" */
    /* As http_request.format_refusal. */
    struct str (*format_refusal)(struct http_request *r, int status, const char *reason);
    /* Answers 404, 400 or 405 (r->route); `allow` is the Allow line of a 405, or absent. */
    void (*refuse_path)(struct http_request *r, struct str allow);
};

struct front_table;
/* One per process, owned by the gateway. */
struct front {
    struct config *config; /* the current one; a caller keeps the one its request began with */
    struct identity *identity;
    struct quotas *quotas;
    bool draining;      /* the process stops: only requests on open connections are served */
    bool closing;       /* it has stopped: what arrives now is not served */
    unsigned under_way; /* requests that a stop waits for */
    /* private */
    struct front_table *tables[2]; /* of plain paths, and of those under a prefix */
};

/* Adds routes.  `words` NULL: plain paths.  `arg` goes to their handlers.  Rows are copied. */
void front_add(struct front *f, const struct front_format *words, const struct front_route *routes,
               size_t n, void *arg);
void front_release(struct front *f); /* frees the tables */

int front_gate(void *arg /* struct front */, struct http_request *r, struct str *ret_body);
void front_handle(void *arg /* struct front */, struct http_request *r);

#endif
