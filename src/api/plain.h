/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers outside of /api/v1: health and metrics, and the pipe of `holdfast stdio`.  Their errors
 * are {"error":"…"}. */
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

#endif
