/* SPDX-License-Identifier: Apache-2.0 */
/* The front: what the HTTP server calls.  The gate sees heads, the handler whole requests. */
#ifndef HOLDFAST_FRONT_FRONT_H
#define HOLDFAST_FRONT_FRONT_H

#include "exchange/exchange.h"

void front_start(void); /* once, before the first request */
int front_gate(void *arg /* struct services */, struct http_request *r, struct str *ret_body);
void front_handle(void *arg /* struct services */, struct http_request *r);

#endif
