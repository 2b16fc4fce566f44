/* SPDX-License-Identifier: Apache-2.0 */
/* The plain form of a refusal, {"error":"…"}, for paths whose clients expect no other form. */
#ifndef HOLDFAST_FRONT_PLAIN_H
#define HOLDFAST_FRONT_PLAIN_H

#include "http/server.h"

struct str plain_refusal(struct http_request *r, const char *text); /* the body alone */
void plain_refuse(struct http_request *r, int status, struct str headers, const char *text);

#endif
