/* SPDX-License-Identifier: Apache-2.0 */
/* /analytics: a part of REST (api/api.h). */
#ifndef HOLDFAST_ANALYTICS_API_TABLE_H
#define HOLDFAST_ANALYTICS_API_TABLE_H

#include "api/api.h"

extern const struct api_part analytics_api; /* for api_add() */

/* analytics.c */
void api_get_analytics(struct api_call *c);

#endif
