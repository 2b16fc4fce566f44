/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the row of a method and a path in a table of patterns.  A path that exists under another method is 405 with
 * Allow.  Fixed words win over captures:
 *
 *   {name}        one segment           {name:#}       one segment that is a number
 *   {+name}       one or more segments, with the slashes between them; once in a pattern
 *   {+name:.md}   likewise; the last segment has this ending, in any case */
#ifndef HOLDFAST_HTTP_ROUTER_H
#define HOLDFAST_HTTP_ROUTER_H

#include "http/server.h"

#define ROUTE_MAX_PARAMS 4
struct route_match {
    struct str
        params[ROUTE_MAX_PARAMS]; /* percent-decoded, in pattern order, in the request's arena */
    unsigned n;
};
/* The owner of a table keeps what else belongs to a row in an array of the same order. */
struct http_route {
    const char *method;  /* "GET"; "*" matches any method */
    const char *pattern; /* "/mcp/{server}" */
    bool has_head;       /* a GET that also handles HEAD: the server omits the body */
    unsigned segments;   /* set by router_prepare(); 0: any number, or not prepared */
};
/* The result of a lookup.  The gate stores it in http_request.route for the handler. */
struct route_found {
    const struct http_route *route; /* NULL: `status` says why */
    struct route_match match;
    int status;       /* without a route: 400, 404 or 405 */
    struct str allow; /* with 405: the methods of the path */
};
/* Counts the segments of each pattern once, so that router_find() skips rows of other lengths. */
void router_prepare(struct http_route *routes, size_t n);
/* Returns the row, or NULL with *ret_status 404, 405 (then *ret_allow lists methods, in r->mem) or
 * 400 for a path that cannot be decoded. */
const struct http_route *router_find(const struct http_route *routes, size_t n,
                                     struct http_request *r, struct route_match *ret,
                                     int *ret_status, struct str *ret_allow);

#endif
