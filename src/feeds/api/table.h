/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on live events: GET /api/v1/events. */
#ifndef HOLDFAST_FEEDS_API_TABLE_H
#define HOLDFAST_FEEDS_API_TABLE_H

#include "api/api.h"

extern const struct api_part events_api;

#endif
