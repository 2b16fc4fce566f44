/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks in REST: their states, for the local admin and on /readyz. */
#ifndef HOLDFAST_SINKS_API_SINKS_API_H
#define HOLDFAST_SINKS_API_SINKS_API_H

#include "api/api.h"

extern const struct api_part sinks_api; /* for api_add() */

#endif
