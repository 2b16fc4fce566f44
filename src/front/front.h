/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the HTTP server.  front_gate() checks a request's head before the body is read;
 * front_handle() gets the whole request. */
#ifndef HOLDFAST_FRONT_FRONT_H
#define HOLDFAST_FRONT_FRONT_H

#include "exchange/services.h"
#include "http/server.h"

void front_start(void); /* once, before the first request */
int front_gate(void *arg /* struct services */, struct http_request *r, struct str *ret_body);
void front_handle(void *arg /* struct services */, struct http_request *r);

#endif
