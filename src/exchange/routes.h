/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_EXCHANGE_ROUTES_H
#define HOLDFAST_EXCHANGE_ROUTES_H

#include "exchange/services.h"
#include "front/admit.h"

/* control_pipe.c: the handler of POST /control/pipe; `arg` is the services. */
admitted_fn control_pipe;

/* Adds the routes of MCP to sv->front. */
void exchange_add_routes(struct services *sv);

#endif
