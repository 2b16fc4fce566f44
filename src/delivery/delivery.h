/* SPDX-License-Identifier: Apache-2.0 */
/* The way back: upstream → owner → stream.  steps.c is the spine. */
#ifndef HOLDFAST_DELIVERY_DELIVERY_H
#define HOLDFAST_DELIVERY_DELIVERY_H

#include "delivery/hub.h"
#include "upstream/upstream.h"

/* The sink for upstreams_new(). */
struct upstream_sink delivery_sink(struct hub *hub);

#endif
