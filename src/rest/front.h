/* SPDX-License-Identifier: Apache-2.0 */
/* The front: what the HTTP server calls.  The gate sees heads, the handler whole requests. */
#ifndef HOLDFAST_REST_FRONT_H
#define HOLDFAST_REST_FRONT_H

#include "exchange/exchange.h"
#include "http/router.h"

void front_start(void); /* once, before the first request */
int front_gate(void *arg /* struct services */, struct http_request *r, struct str *ret_body);
void front_handle(void *arg /* struct services */, struct http_request *r);

/* operate.c */
void front_healthz(void *arg, struct http_request *r, const struct route_match *m);
void front_readyz(void *arg, struct http_request *r, const struct route_match *m);
void front_metrics(void *arg, struct http_request *r, const struct route_match *m);
void operate_start(struct services *sv); /* registers gauges that are filled at each scrape */
/* control.c */
void front_control_events(void *arg, struct http_request *r, const struct route_match *m);
void front_control_pipe(void *arg, struct http_request *r, const struct route_match *m);
/* control_keys.c */
void front_control_key_create(void *arg, struct http_request *r, const struct route_match *m);
void front_control_key_list(void *arg, struct http_request *r, const struct route_match *m);
void front_control_key_revoke(void *arg, struct http_request *r, const struct route_match *m);
/* control_servers.c */
void front_control_tools(void *arg, struct http_request *r, const struct route_match *m);
void front_control_tool_diff(void *arg, struct http_request *r, const struct route_match *m);
void front_control_approve(void *arg, struct http_request *r, const struct route_match *m);
/* control_users.c */
void front_control_user_change(void *arg, struct http_request *r, const struct route_match *m);
void front_control_user_sessions(void *arg, struct http_request *r, const struct route_match *m);
/* control.c again */
void front_control_status(void *arg, struct http_request *r, const struct route_match *m);

/* {"error":"…"} with a status. */
void front_refuse(struct http_request *r, int status, struct str headers, const char *text);

#endif
