/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers outside of /api/v1: health and metrics, and the control socket of the commands.  Their
 * errors are {"error":"…"}. */
#ifndef HOLDFAST_API_PLAIN_H
#define HOLDFAST_API_PLAIN_H

#include "api/services.h"
#include "front/front.h"
#include "front/plain.h"

/* Adds the routes of these handlers to sv->front. */
void plain_add_routes(struct api_services *sv);

/* operate.c */
admitted_fn operate_healthz;
admitted_fn operate_readyz;
admitted_fn operate_metrics;
void operate_start(struct api_services *sv); /* registers gauges that are filled at each scrape */
/* control.c */
admitted_fn control_events;
admitted_fn control_status;
/* control_keys.c */
admitted_fn control_key_create;
admitted_fn control_key_list;
admitted_fn control_key_revoke;
/* control_servers.c */
admitted_fn control_tools;
admitted_fn control_tool_diff;
admitted_fn control_approve;
/* control_users.c */
admitted_fn control_user_change;
admitted_fn control_user_sessions;

#endif
