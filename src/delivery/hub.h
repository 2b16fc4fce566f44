/* SPDX-License-Identifier: Apache-2.0 */
/* The hub: who hears what an upstream says outside of a client's own request.
 *
 * A client behind a transport is told through its listener when it has one (a pipe, a stream of
 * 2024), else through its standalone stream.  Loop thread only. */
#ifndef HOLDFAST_DELIVERY_HUB_H
#define HOLDFAST_DELIVERY_HUB_H

#include "base/list.h"
#include "mcp/message.h"
#include "session/session.h"
#include "upstream/upstream.h"

struct hub;

struct hub *hub_new(struct loop *loop) must_check;
void hub_set_upstreams(struct hub *h,
                       struct upstreams *upstreams); /* once, after upstreams_new() */
void hub_free(struct hub *h);

/* Somebody who is always there to be told: embedded in a pipe or a 2024 stream. */
struct listener {
    struct list node;
    struct transport *transport; /* a reference, held while it listens */
    /* One JSON-RPC message; droppable: it may be left out when the reader is slow. */
    void (*tell)(struct listener *l, struct str json, bool droppable);
};
void hub_listen(struct hub *h, struct listener *l);
void hub_unlisten(struct hub *h, struct listener *l);

#endif
