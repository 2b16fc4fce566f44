/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers outside of /api/v1: health and metrics, and the control socket of the commands.  Their
 * errors are {"error":"…"}. */
#ifndef HOLDFAST_API_PLAIN_H
#define HOLDFAST_API_PLAIN_H

#include "exchange/services.h"
#include "http/router.h"
#include "identity/identity.h"

struct str plain_refusal(struct http_request *r, const char *text); /* the body alone */
void plain_refuse(struct http_request *r, int status, struct str headers, const char *text);

/* operate.c */
void operate_healthz(void *arg, struct http_request *r, const struct route_match *m);
void operate_readyz(void *arg, struct http_request *r, const struct route_match *m);
void operate_metrics(void *arg, struct http_request *r, const struct route_match *m);
void operate_start(struct services *sv); /* registers gauges that are filled at each scrape */
/* control.c */
void control_events(void *arg, struct http_request *r, const struct route_match *m);
void control_status(void *arg, struct http_request *r, const struct route_match *m);
/* control_pipe.c */
void control_pipe(void *arg, struct http_request *r, const struct route_match *m);
/* control_keys.c */
void control_key_create(void *arg, struct http_request *r, const struct route_match *m);
void control_key_list(void *arg, struct http_request *r, const struct route_match *m);
void control_key_revoke(void *arg, struct http_request *r, const struct route_match *m);
/* control_servers.c */
void control_tools(void *arg, struct http_request *r, const struct route_match *m);
void control_tool_diff(void *arg, struct http_request *r, const struct route_match *m);
void control_approve(void *arg, struct http_request *r, const struct route_match *m);
/* control_users.c */
void control_user_change(void *arg, struct http_request *r, const struct route_match *m);
void control_user_sessions(void *arg, struct http_request *r, const struct route_match *m);

#endif
