/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of committed events: subscribers of the publish point (audit/publish.h) that pass events
 * on to clients. */
#ifndef HOLDFAST_FEEDS_FEEDS_H
#define HOLDFAST_FEEDS_FEEDS_H

#include "feeds/feed.h"
#include "front/front.h"

/* The parts that feeds use; owned and filled by the gateway. */
struct feeds {
    struct front *front;
    struct lanes *lanes;
    struct audit *audit;
    struct feed *feed;            /* owned by the gateway */
    bool is_store_shared;         /* other nodes may write to the store */
    struct deadline_class *quiet; /* silence after which a stream sends a keep-alive */
};

/* Adds the routes of the feeds to f->front. */
void feeds_add_routes(struct feeds *f);

#endif
