/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser may read: only pages of an origin that is listed under "origins", by name, never
 * with credentials (threats H11).  Every other answer is without a word of CORS. */
#ifndef HOLDFAST_API_CORS_H
#define HOLDFAST_API_CORS_H

#include "config/config.h"
#include "http/server.h"

/* The header lines that each answer to this request carries; absent when its origin is not listed.
 * In r->mem. */
struct str cors_lines(const struct config *c, struct http_request *r);
/* True for a preflight of a listed origin; `methods` is what the path takes ("POST, DELETE").  Then
 * *ret_lines is what its 204 says besides cors_lines(). */
bool cors_is_preflight(const struct config *c, struct http_request *r, struct str methods,
                       struct str *ret_lines);

#endif
