/* SPDX-License-Identifier: Apache-2.0 */
/* CORS headers let a browser show answers to pages of an origin that is listed by name under
 * "origins", never with credentials (threats H11).  Other origins get no such header. */
#ifndef HOLDFAST_FRONT_CORS_H
#define HOLDFAST_FRONT_CORS_H

#include "config/config.h"
#include "http/server.h"

/* The CORS header lines of every answer to this request, in r->mem; absent when its origin is not
 * listed. */
struct str cors_lines(const struct config *c, struct http_request *r);
/* Whether the request is a preflight from a listed origin.  `methods` are the methods of the path
 * ("POST, DELETE").  If true, *ret_lines has the header lines of the 204 besides cors_lines(). */
bool cors_is_preflight(const struct config *c, struct http_request *r, struct str methods,
                       struct str *ret_lines);

#endif
