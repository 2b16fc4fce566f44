/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_EXCHANGE_ROUTES_H
#define HOLDFAST_EXCHANGE_ROUTES_H

#include "exchange/services.h"

/* Adds the routes of MCP to sv->front. */
void exchange_add_routes(struct services *sv);

#endif
